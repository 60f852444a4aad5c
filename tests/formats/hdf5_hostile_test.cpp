// SPDX-License-Identifier: MIT
// HDF5 files that try to use other files, plugins, or much memory or time are refused with a clear
// message.
#include "formats/support.hpp"

#include <dlprim/tensor_file.hpp>

#include <hdf5.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

using namespace dlprim;

namespace {

/// Ends the program if reading a file takes too long instead of being refused.
struct Deadline {
    explicit Deadline(unsigned seconds) { alarm(seconds); }
    ~Deadline() { alarm(0); }
};

/// A file under construction.
struct Made {
    hid_t id;
    explicit Made(const std::string& path, hid_t creation = H5P_DEFAULT, bool latest = false) {
        const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
        if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
        id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
        H5Pclose(access);
        REQUIRE(id >= 0);
    }
    ~Made() { H5Fclose(id); }
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;

    /// Adds a dataset of `size` values. If it is written, all have the given value.
    void dataset(const char* name, hsize_t size, const std::function<void(hid_t)>& how = {},
                 bool written = true, hid_t type = H5T_IEEE_F32LE, float value = 3) const {
        const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        if (how) how(creation);
        const hid_t space = H5Screate_simple(1, &size, nullptr);
        const hid_t set = H5Dcreate2(id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
        REQUIRE(set >= 0);
        const std::vector<float> values(written ? size : 0, value);
        if (written)
            REQUIRE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >=
                    0);
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(creation);
    }
};

std::function<void(hid_t)> chunks(hsize_t size, const std::function<void(hid_t)>& filters = {}) {
    return [=](hid_t how) {
        H5Pset_chunk(how, 1, &size);
        if (filters) filters(how);
    };
}

/// Checks that each way to read the dataset is refused, and why.
void check_refused(const std::string& path, const std::string& name,
                   const std::vector<std::string>& words) {
    const Hdf5Reader reader(path);
    CHECK(reader.has(name));
    std::vector<float> values(1024);
    for (const std::string& what :
         {message_of(ErrorKind::unsupported, [&] { reader.info(name); }),
          message_of(ErrorKind::unsupported, [&] { reader.read(name); }),
          message_of(ErrorKind::unsupported, [&] { reader.position(name); }),
          message_of(ErrorKind::unsupported, [&] {
              reader.read(name, DType::f32, values.data(), values.size() * sizeof(float));
          })}) {
        CHECK_THAT(what, ContainsSubstring("'" + path + "'"));
        for (const std::string& word : words) CHECK_THAT(what, ContainsSubstring(word));
    }
}

std::size_t filter_calls = 0;
std::size_t count_call(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                       void**) {
    ++filter_calls;
    return bytes;
}

/// Nests groups "g/g/..." to this depth, with a dataset "x" in the innermost.
void write_nested(const std::string& path, int depth) {
    const Made file(path);
    hid_t group = H5Gopen2(file.id, "/", H5P_DEFAULT);
    for (int i = 0; i < depth; ++i) {
        const hid_t next = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        group = next;
    }
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(group, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Gclose(group);
}

}  // namespace

TEST_CASE("what is no file is refused at once", "[hdf5]") {
    const Folder folder;
    const std::string fifo = folder.file("fifo");
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    const Deadline deadline(60);
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Reader reader(fifo); }),
               ContainsSubstring("is not a file") && ContainsSubstring("a FIFO"));
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Writer writer(fifo); }),
               ContainsSubstring("cannot write") && ContainsSubstring("a FIFO"));
    CHECK(fs::is_fifo(fifo));
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Reader reader("/dev/null"); }),
               ContainsSubstring("a device"));
}

TEST_CASE("the file that was opened is read, whatever its path names by now", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    Made(path).dataset("x", 4);
    const auto file = std::make_shared<const InputFile>(path);
    fs::rename(path, path + ".moved");
    Made(path).dataset("other", 4);
    CHECK_FALSE(Hdf5Reader(path).has("x"));
    CHECK(Hdf5Reader(file).has("x"));
    fs::remove(path + ".moved");  // HDF5 cannot open a file without a name
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Reader reader(file); }),
               ContainsSubstring("removed or replaced"));
}

TEST_CASE("values that stand in another file are not read", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5"), secret = folder.file("secret");
    spill(secret, "a secret of the user's");
    {
        const Made file(path);
        file.dataset(
            "x", 4, [&](hid_t how) { H5Pset_external(how, secret.c_str(), 0, 16); }, false);
        file.dataset("plain", 4);
    }
    check_refused(path, "x", {"'x'", "in another file", "not read"});
    CHECK(Hdf5Reader(path).read("plain").size() == 16);
    CHECK_THAT(message_of(ErrorKind::unsupported, [&] { load_tensors(path); }),
               ContainsSubstring("'x'"));
}

TEST_CASE("virtual datasets are not read, nor their files opened", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5"), other = folder.file("other.h5"),
                      fifo = folder.file("fifo");
    Made(other).dataset("y", 4);
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    const Deadline deadline(60);
    {
        const Made file(path);
        const hsize_t size = 4;
        const hid_t space = H5Screate_simple(1, &size, nullptr);
        const auto from = [&](const std::string& source) {
            return [=](hid_t how) { H5Pset_virtual(how, space, source.c_str(), "y", space); };
        };
        file.dataset("other", 4, from(other), false);
        file.dataset("waiting", 4, from(fifo), false);
        file.dataset("itself", 4, from("."), false);
        // Its size depends on that of its sources, which HDF5 opens to find out.
        const hsize_t unlimited = H5S_UNLIMITED, start = 0, stride = 4, count = H5S_UNLIMITED;
        const hid_t endless = H5Screate_simple(1, &size, &unlimited);
        H5Sselect_hyperslab(endless, H5S_SELECT_SET, &start, &stride, &count, &size);
        const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
        REQUIRE(H5Pset_virtual(how, endless, (fifo + "%b").c_str(), "y", space) >= 0);
        H5Dclose(
            H5Dcreate2(file.id, "endless", H5T_IEEE_F32LE, endless, H5P_DEFAULT, how, H5P_DEFAULT));
        H5Pclose(how);
        H5Sclose(endless);
        H5Sclose(space);
    }
    fs::rename(fifo, fifo + "0");
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    for (const char* name : {"other", "waiting", "itself", "endless"})
        check_refused(path, name, {name, "is virtual"});
}

TEST_CASE("links other than hard ones are not followed", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5"), other = folder.file("other.h5");
    Made(other).dataset("y", 4);
    {
        const Made file(path);
        file.dataset("plain", 4);
        H5Lcreate_external(other.c_str(), "y", file.id, "external", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_external(other.c_str(), "/", file.id, "group", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/plain", file.id, "soft", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/circle", file.id, "circle", H5P_DEFAULT, H5P_DEFAULT);
    }
    check_refused(path, "external", {"'external'", "link to another file", "not followed"});
    check_refused(path, "group/y", {"'group'", "link to another file"});
    check_refused(path, "soft", {"'soft'", "a soft link"});
    const Hdf5Reader reader(path);
    CHECK(reader.datasets().size() == 1);
    CHECK_FALSE(reader.has("plain/y"));
    CHECK_FALSE(reader.attribute("external", "a"));
    CHECK_FALSE(reader.attribute("group", "a"));
}

TEST_CASE("hard links may share and circle", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    {
        const Made file(path);
        H5Gclose(H5Gcreate2(file.id, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Gclose(H5Gcreate2(file.id, "a/b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        file.dataset("a/b/x", 4);
        H5Lcreate_hard(file.id, "/", file.id, "a/b/root", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_hard(file.id, "a", file.id, "a/b/up", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_hard(file.id, "a/b/x", file.id, "tied", H5P_DEFAULT, H5P_DEFAULT);
    }
    const Hdf5Reader reader(path);
    REQUIRE(reader.datasets().size() == 2);
    CHECK(reader.datasets()[0].name == "a/b/x");
    CHECK((reader.read("a/b/x") == reader.read("tied")));
}

TEST_CASE("filters of plugins do not run, HDF5's own do", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    constexpr H5Z_filter_t foreign = 300;
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, foreign, 1,       1,
                                 "some filter",    nullptr, nullptr, count_call};
    REQUIRE(H5Zregister(&filter) >= 0);
    {
        const Made file(path);
        file.dataset("foreign", 4, chunks(4, [](hid_t how) {
                         H5Pset_deflate(how, 1);
                         H5Pset_filter(how, foreign, H5Z_FLAG_OPTIONAL, 0, nullptr);
                     }));
        file.dataset("usual", 100, chunks(30, [](hid_t how) {
                         H5Pset_shuffle(how);
                         H5Pset_deflate(how, 9);
                         H5Pset_fletcher32(how);
                     }));
        file.dataset("nbit", 100, chunks(30, [](hid_t how) { H5Pset_nbit(how); }));
        file.dataset("nbit_int", 100, chunks(30, [](hid_t how) { H5Pset_nbit(how); }), true,
                     H5T_STD_I32LE);
        file.dataset("scale", 100, chunks(30, [](hid_t how) {
                         H5Pset_scaleoffset(how, H5Z_SO_FLOAT_DSCALE, 3);
                         H5Pset_deflate(how, 9);
                     }));
        file.dataset("scale_int", 100,
                     chunks(30,
                            [](hid_t how) {
                                H5Pset_scaleoffset(how, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
                            }),
                     true, H5T_STD_I16LE);
#ifdef H5_HAVE_FILTER_SZIP
        if (H5Zfilter_avail(H5Z_FILTER_SZIP) > 0)
            file.dataset("szip", 100, chunks(64, [](hid_t how) {
                             H5Pset_szip(how, H5_SZIP_NN_OPTION_MASK, 32);
                         }));
#endif
    }
    const std::size_t before = filter_calls;
    CHECK(before > 0);
    check_refused(path, "foreign", {"filter 300", "some filter", "not supported"});
    CHECK(filter_calls == before);
    H5Zunregister(foreign);

    const Hdf5Reader reader(path);
    for (const Hdf5Dataset& dataset : reader.datasets()) {
        if (dataset.name == "foreign") continue;
        INFO(dataset.name);
        std::vector<float> values(100);
        if (is_float(dataset.dtype)) {
            reader.read(dataset.name, DType::f32, values.data(), 400);
            CHECK(std::count(values.begin(), values.end(), 3.0f) == 100);
        } else {
            CHECK(reader.read(dataset.name).at(0) == std::byte{3});
        }
    }
}

TEST_CASE("groups may be nested, but not for ever", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    const Deadline deadline(60);
    std::string deep;
    for (int i = 0; i < 511; ++i) deep += "g/";
    write_nested(path, 511);
    CHECK(Hdf5Reader(path).has(deep + "x"));
    for (const int depth : {512, 2000}) {
        write_nested(path, depth);
        CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
                   ContainsSubstring("too deep") && ContainsSubstring("512 parts"));
    }
    {
        const Made file(path);
        file.dataset(std::string(5000, 'n').c_str(), 1);
    }
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("4096 bytes"));

    // What Hdf5Writer writes can be read.
    const float x = 1;
    {
        Hdf5Writer writer(path);
        writer.write(deep + "x", {1}, DType::f32, &x);
        for (const std::string& name :
             {deep + "g/x", std::string(5000, 'n'), std::string("a\0b", 3)})
            message_of(ErrorKind::invalid_argument,
                       [&] { writer.write(name, {1}, DType::f32, &x); });
        writer.commit();
    }
    CHECK(Hdf5Reader(path).datasets().size() == 1);
}

TEST_CASE("what would take far more memory than its file", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    const auto refused = [&](const char* name) {
        return message_of(ErrorKind::format, [&] { Hdf5Reader(path).read(name); });
    };
    {
        const Made file(path);
        file.dataset("compact", 4, [](hid_t how) { H5Pset_layout(how, H5D_COMPACT); });
        file.dataset("twice", 6000, chunks(6000, [](hid_t how) {
                         H5Pset_deflate(how, 9);
                         H5Pset_filter(how, H5Z_FILTER_SHUFFLE, 0, 0, nullptr);
                         const unsigned level = 9;
                         H5Pset_filter(how, H5Z_FILTER_DEFLATE, 0, 1, &level);
                     }));
        file.dataset("nbit", 6152, chunks(6152, [](hid_t how) { H5Pset_nbit(how); }));
        // A single value with a chunk of 1 GiB, which HDF5 would allocate.
        const hsize_t size = 4, most = H5S_UNLIMITED, chunk = 1 << 28;
        const hid_t space = H5Screate_simple(1, &size, &most), how = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(how, 1, &chunk);
        H5Dclose(
            H5Dcreate2(file.id, "chunk", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT));
        H5Pclose(how);
        H5Sclose(space);
        file.dataset("scale", 6151,
                     chunks(6151,
                            [](hid_t list) {
                                H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
                            }),
                     true, H5T_STD_I32LE);
    }
    CHECK(Hdf5Reader(path).read("compact").size() == 16);
    CHECK(Hdf5Reader(path).read("scale").size() == 4 * 6151);
    CHECK(Hdf5Reader(path).read("nbit").size() == 4 * 6152);
    CHECK_THAT(refused("twice"), ContainsSubstring("filter deflate twice"));
    CHECK_THAT(refused("chunk"), ContainsSubstring("chunks of 268435456 elements"));
    // The filters' own settings for the elements of a chunk: their number, kind and size.
    const auto patch = [&](const std::string& before, const std::string& after) {
        std::string bytes = slurp(path);
        const std::size_t at = bytes.find(before);
        REQUIRE(at != std::string::npos);
        spill(path, bytes.replace(at, after.size(), after));
    };
    patch(std::string("\x07\x18\0\0\0\0\0\0\x04\0\0\0", 12), "\xff\xff\xff\x7f");
    CHECK_THAT(refused("scale"), ContainsSubstring("set up for other chunks"));
    patch(std::string("\x08\x18\0\0\1\0\0\0\x04\0\0\0", 12),
          std::string("\x08\x18\0\0\3\0\0\0", 8));  // a compound type, whose members would follow
    CHECK_THAT(refused("nbit"), ContainsSubstring("set up for other chunks"));
}

TEST_CASE("many datasets that were never written", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    {
        const Made file(path);
        for (const char* name : {"a", "b", "c"}) file.dataset(name, 8 << 20, chunks(1024), false);
    }
    const Hdf5Reader reader(path);
    CHECK(reader.read("a").size() == 32u << 20);
    CHECK_THAT(message_of(ErrorKind::format, [&] { load_tensors(path); }),
               ContainsSubstring("take 100663296 bytes in all"));
}

TEST_CASE("elements without a value are zero, not what was in memory", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    Made(path).dataset(
        "x", 8, chunks(4, [](hid_t how) { H5Pset_fill_time(how, H5D_FILL_TIME_NEVER); }), false);
    std::vector<float> values(8, 7);
    Hdf5Reader(path).read("x", DType::f32, values.data(), 32);
    CHECK(std::count(values.begin(), values.end(), 0.0f) == 8);
}

TEST_CASE("attributes of absurd size are none", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    {
        const Made file(path, H5P_DEFAULT, true);
        const hid_t text = H5Tcopy(H5T_C_S1), one = H5Screate(H5S_SCALAR);
        H5Tset_size(text, 2 << 20);
        const std::string value(2 << 20, 'v');
        const hid_t long_text = H5Acreate2(file.id, "text", text, one, H5P_DEFAULT, H5P_DEFAULT);
        REQUIRE(H5Awrite(long_text, text, value.data()) >= 0);
        H5Aclose(long_text);
        H5Tclose(text);
        H5Sclose(one);
        const hsize_t size = 1 << 20;
        const hid_t many = H5Screate_simple(1, &size, nullptr);
        const std::vector<double> numbers(size);
        const hid_t list =
            H5Acreate2(file.id, "list", H5T_IEEE_F64LE, many, H5P_DEFAULT, H5P_DEFAULT);
        REQUIRE(H5Awrite(list, H5T_NATIVE_DOUBLE, numbers.data()) >= 0);
        H5Aclose(list);
        H5Sclose(many);
    }
    const Hdf5Reader reader(path);
    CHECK_FALSE(reader.attribute("", "text"));
    CHECK_FALSE(reader.attribute("", "list"));
}

TEST_CASE("user blocks, named types and references", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, 1024);
    {
        const Made file(path, creation);
        const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
        REQUIRE(H5Tcommit2(file.id, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        file.dataset("x", 4, {}, true, type);
        file.dataset("reference", 4, {}, false, H5T_STD_REF_OBJ);
        H5Tclose(type);
    }
    H5Pclose(creation);
    const Hdf5Reader reader(path);
    REQUIRE(reader.datasets().size() == 1);
    const auto position = reader.position("x");
    REQUIRE(position);
    const std::string bytes = slurp(path).substr(*position, 16);
    CHECK(std::memcmp(bytes.data(), reader.read("x").data(), 16) == 0);
}

TEST_CASE("a file that is written to while it is read", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    Made(path).dataset("x", 4);
    const Hdf5Reader reader(path);
    CHECK(reader.read("x").size() == 16);
    usleep(20000);  // two kernel ticks, the resolution of file times
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).put('\x89');
    CHECK_THAT(message_of(ErrorKind::io, [&] { reader.read("x"); }),
               ContainsSubstring("written to while it was read"));
}

TEST_CASE("the same content is the same bytes", "[hdf5]") {
    const Folder folder;
    const auto write = [&](const std::string& path) {
        const std::vector<float> x(100, 1);
        Hdf5Writer writer(path);
        writer.write("a/b/x", {100}, DType::f32, x.data());
        writer.write("bf16", {2}, DType::bf16, x.data());
        writer.attribute("", "n", std::int64_t{1});
        writer.attribute("a", "text", std::string("t"));
        writer.attribute("new/group", "list", Doubles{1, 2});
        writer.commit();
        return slurp(path);
    };
    const std::string first = write(folder.file("1.h5"));
    sleep(1);  // HDF5 stores times in whole seconds
    usleep(100000);
    CHECK((write(folder.file("2.h5")) == first));
}
