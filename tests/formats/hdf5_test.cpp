// SPDX-License-Identifier: MIT
// HDF5: written values are read back, and damaged files, cut files and a full disk are reported.
#include "formats/support.hpp"

#include <hdf5.h>
#include <sys/resource.h>
#include <csignal>
#include <cstring>

using namespace dlprim;

namespace {

void write_sample(const std::string& path) {
    const float weights[6] = {1, -2, 3.5f, 0, 1e-8f, 1e30f};
    const std::uint16_t half[2] = {float_to_half(1.5f), float_to_half(-0.25f)};
    const std::uint16_t bf16[2] = {float_to_bfloat16(3.0f), float_to_bfloat16(-1.0f)};
    const std::int64_t step = 1234567890123;
    const std::uint8_t flags[3] = {1, 0, 1};
    Hdf5Writer writer(path);
    writer.write("conv.0", {2, 3}, DType::f32, weights);
    writer.write("layer1/block/half", {2}, DType::f16, half);
    writer.write("layer1/bf16", {1, 2}, DType::bf16, bf16);
    writer.write("step", {}, DType::i64, &step);
    writer.write("flags", {3}, DType::boolean, flags);
    writer.write("none", {0, 4}, DType::f32, nullptr);
    writer.attribute("", "format", std::string("dlprim checkpoint"));
    writer.attribute("solver/adam", "step", std::int64_t{7});
    writer.attribute("conv.0", "scale", 0.5);
    writer.attribute("conv.0", "sizes", Ints{1, 2, 3});
    writer.attribute("conv.0", "empty", std::string());
    writer.commit();
}

}  // namespace

TEST_CASE("what is written is read back", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    write_sample(path);
    CHECK(folder.count() == 1);

    const Hdf5Reader reader(path);
    REQUIRE(reader.datasets().size() == 6);
    CHECK(reader.info("conv.0").shape == Shape{2, 3});
    CHECK(reader.info("conv.0").dtype == DType::f32);
    CHECK(reader.info("layer1/block/half").dtype == DType::f16);
    CHECK(reader.info("layer1/bf16").dtype == DType::bf16);
    CHECK(reader.info("step").shape == Shape{});
    CHECK(reader.info("flags").dtype == DType::boolean);
    CHECK(reader.info("none").shape == Shape{0, 4});
    CHECK(reader.read("none").empty());

    float weights[6];
    reader.read("conv.0", DType::f32, weights, sizeof weights);
    CHECK(weights[5] == 1e30f);
    float half[2];
    reader.read("layer1/block/half", DType::f32, half, sizeof half);
    CHECK(half[0] == 1.5f);
    CHECK(half[1] == -0.25f);
    reader.read("layer1/bf16", DType::f32, half, sizeof half);
    CHECK(half[0] == 3.0f);
    std::int64_t step = 0;
    reader.read("step", DType::i64, &step, sizeof step);
    CHECK(step == 1234567890123);
    const auto flags = reader.read("flags");
    CHECK(flags == std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{1}});

    CHECK(reader.attribute("", "format") == Attr(std::string("dlprim checkpoint")));
    CHECK(reader.attribute("solver/adam", "step") == Attr(std::int64_t{7}));
    CHECK(reader.attribute("conv.0", "scale") == Attr(0.5));
    CHECK(reader.attribute("conv.0", "sizes") == Attr(Ints{1, 2, 3}));
    CHECK(reader.attribute("conv.0", "empty") == Attr(std::string()));
    CHECK_FALSE(reader.attribute("conv.0", "absent"));
    CHECK_FALSE(reader.attribute("no/such/object", "absent"));
}

TEST_CASE("where values stand in a file as in memory", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    write_sample(path);
    {
        const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        const hsize_t size = 6;
        const hid_t space = H5Screate_simple(1, &size, nullptr);
        const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(chunked, 1, &size);
        const float values[6] = {};
        for (const auto& [name, type, how] :
             {std::tuple("chunked", H5T_IEEE_F32LE, chunked),
              std::tuple("reversed", H5T_IEEE_F32BE, hid_t{H5P_DEFAULT})}) {
            const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
            REQUIRE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
            H5Dclose(set);
        }
        H5Pclose(chunked);
        H5Sclose(space);
        H5Fclose(file);
    }
    const Hdf5Reader reader(path);
    CHECK_FALSE(reader.position("chunked"));
    CHECK_FALSE(reader.position("reversed"));
    CHECK_FALSE(reader.position("none"));
    for (const char* const name : {"conv.0", "layer1/block/half", "layer1/bf16", "step"}) {
        INFO(name);
        const auto position = reader.position(name);
        REQUIRE(position);
        std::vector<std::byte> values(reader.info(name).bytes());
        std::ifstream file(path, std::ios::binary);
        file.seekg(static_cast<std::streamoff>(*position));
        file.read(reinterpret_cast<char*>(values.data()),
                  static_cast<std::streamsize>(values.size()));
        CHECK((values == reader.read(name)));
    }
}

TEST_CASE("names that are not there, sizes that do not fit", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    write_sample(path);
    const Hdf5Reader reader(path);
    CHECK_FALSE(reader.has("conv.1"));
    CHECK_THAT(
        message_of(ErrorKind::not_found, [&] { reader.info("conv.1"); }),
        ContainsSubstring("no dataset 'conv.1'") && ContainsSubstring("did you mean 'conv.0'?"));
    float few[2];
    CHECK_THAT(message_of(ErrorKind::invalid_argument,
                          [&] { reader.read("conv.0", DType::f32, few, sizeof few); }),
               ContainsSubstring("[2, 3]"));
}

TEST_CASE("files that cannot be read say how", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    CHECK_THAT(message_of(ErrorKind::not_found, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("there is no file"));
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Reader reader(folder.path().string()); }),
               ContainsSubstring("is not a file"));
    spill(path, "");
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("is empty"));
    spill(path, "{\"inputs\": []}");
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("seems to be JSON, and an HDF5 file"));
    spill(path, "something else");
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("is not an HDF5 file"));
    write_sample(path);
    const std::string whole = slurp(path);
    spill(path, whole.substr(0, whole.size() / 2));
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("is cut short"));
    spill(path, whole.substr(0, 20));
    CHECK_THAT(message_of(ErrorKind::format, [&] { Hdf5Reader reader(path); }),
               ContainsSubstring("is cut short"));
}

// Flipped bits inside HDF5's own records are not tested, because its library does not always
// survive them (1.10).
TEST_CASE("a file cut anywhere is an error", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    write_sample(path);
    const std::string whole = slurp(path);
    for (std::size_t length = 0; length < whole.size(); length += 97) {
        spill(path, whole.substr(0, length));
        CHECK_THROWS_AS(Hdf5Reader(path), Error);
    }
}

TEST_CASE("a dataset that declares more than its file can hold", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("huge.h5");
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t size = hsize_t{1} << 40;
    const hsize_t chunk = 1024;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(layout, 1, &chunk);
    H5Dclose(H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, layout, H5P_DEFAULT));
    H5Pclose(layout);
    H5Sclose(space);
    H5Fclose(file);
    const Hdf5Reader reader(path);
    CHECK_THAT(message_of(ErrorKind::format, [&] { reader.read("x"); }),
               ContainsSubstring("cannot be in"));
}

TEST_CASE("writing is all or nothing", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    spill(path, "old");
    {
        Hdf5Writer writer(path);
        const float x = 1;
        writer.write("a", {1}, DType::f32, &x);
    }
    CHECK(slurp(path) == "old");
    CHECK(folder.count() == 1);

    const float x = 1;
    {
        Hdf5Writer writer(path);
        writer.write("a", {1}, DType::f32, &x);
        CHECK_THROWS_AS(writer.write("a", {1}, DType::f32, &x), Error);
        CHECK_THROWS_AS(writer.write("b//c", {1}, DType::f32, &x), Error);
        CHECK_THROWS_AS(writer.write("", {1}, DType::f32, &x), Error);
        CHECK_THROWS_AS(writer.write("a/b", {1}, DType::f32, &x), Error);
        writer.commit();
    }
    CHECK(Hdf5Reader(path).has("a"));
    CHECK_THAT(message_of(ErrorKind::io, [&] { Hdf5Writer writer(folder.file("no/such/w.h5")); }),
               ContainsSubstring("folder does not exist"));
}

TEST_CASE("no room for the file", "[hdf5]") {
    const Folder folder;
    const std::string path = folder.file("w.h5");
    spill(path, "old");
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    rlimit small = old;
    small.rlim_cur = 1 << 20;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::vector<float> data(1 << 20, 1.0f);
    const std::string what = message_of(ErrorKind::io, [&] {
        Hdf5Writer writer(path);
        writer.write("small", {1000}, DType::f32, data.data());
        writer.write("big", {1 << 20}, DType::f32, data.data());
        writer.commit();
    });
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_THAT(what, ContainsSubstring("cannot write '" + path + "'"));
    CHECK(slurp(path) == "old");
    CHECK(folder.count() == 1);
    // The library still works afterwards.
    write_sample(path);
    CHECK(Hdf5Reader(path).has("conv.0"));
}
