// SPDX-License-Identifier: MIT
// libFuzzer: the bytes choose groups, links, datasets and attributes of a file that HDF5 writes.
// Reading such a file must give values or an Error, and must never give bytes of another file or
// load a filter that HDF5 does not have itself. (Using the bytes as a file would mostly test how
// HDF5 itself survives them.)
#include "formats/hdf5_file.hpp"

#include <dlprim/error.hpp>

#include <fuzzer/FuzzedDataProvider.h>
#include <hdf5.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>

namespace {

using dlprim::Hdf5Reader;

constexpr H5Z_filter_t foreign = 300;
bool reading = false;

std::size_t foreign_filter(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                           void**) {
    if (reading) std::abort();
    return bytes;
}

std::string temporary(const char* name) {
    return "/tmp/dlprim-hdf5-fuzz-" + std::to_string(getpid()) + name;
}

class Maker {
  public:
    Maker(FuzzedDataProvider& choose, const std::string& path, const std::string& secret)
        : choose_(choose), secret_(secret) {
        const hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
        if (choose_.ConsumeBool()) H5Pset_userblock(creation, 512);
        if (choose_.ConsumeBool())
            H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
        file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
        H5Pclose(access);
        H5Pclose(creation);
        if (file_ < 0) std::abort();
    }
    ~Maker() { H5Fclose(file_); }
    Maker(const Maker&) = delete;
    Maker& operator=(const Maker&) = delete;

    void run() {
        for (int i = 0; i < 40 && choose_.remaining_bytes() > 0; ++i) step();
    }

  private:
    std::string name() {
        static const char* const parts[] = {"a",     "b",   "c",   "a/b", "b/c",
                                            "a/b/c", "c/a", "d\n", "x"};
        return choose_.PickValueInArray(parts);
    }

    void step() {
        const std::string at = name(), to = name();
        switch (choose_.ConsumeIntegralInRange(0, 8)) {
            case 0:
                return close(H5Gcreate2(file_, at.c_str(), 0, 0, 0), H5Gclose);
            case 1:
                H5Lcreate_hard(file_, choose_.ConsumeBool() ? "/" : to.c_str(), file_, at.c_str(),
                               0, 0);
                return;
            case 2:
                H5Lcreate_soft(to.c_str(), file_, at.c_str(), 0, 0);
                return;
            case 3:
                H5Lcreate_external(secret_.c_str(), to.c_str(), file_, at.c_str(), 0, 0);
                return;
            case 4: {
                const hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
                H5Tcommit2(file_, at.c_str(), type, 0, 0, 0);
                return close(type, H5Tclose);
            }
            case 5:
                return attribute(at);
            default:
                return dataset(at);
        }
    }

    static void close(hid_t id, herr_t (*how)(hid_t)) {
        if (id >= 0) how(id);
    }

    hid_t type() {
        switch (choose_.ConsumeIntegralInRange(0, 7)) {
            case 0: {
                const hid_t text = H5Tcopy(H5T_C_S1);
                H5Tset_size(text, choose_.ConsumeBool() ? H5T_VARIABLE : 5);
                return text;
            }
            case 1: {
                const hid_t values = H5Tenum_create(H5T_STD_I8LE);
                for (signed char i = 0; i < choose_.ConsumeIntegralInRange<signed char>(1, 3); ++i)
                    H5Tenum_insert(values, std::string(1, static_cast<char>('A' + i)).c_str(), &i);
                return values;
            }
            case 2: {
                const hid_t odd = H5Tcopy(H5T_STD_I32LE);
                H5Tset_precision(odd, choose_.ConsumeIntegralInRange<std::size_t>(1, 32));
                return odd;
            }
            case 3: {
                const hid_t odd = H5Tcopy(H5T_IEEE_F64LE);
                H5Tset_fields(odd, 30, 20, 10, 0, 20);
                H5Tset_size(odd, choose_.ConsumeIntegralInRange<std::size_t>(4, 8));
                return odd;
            }
            default: {
                const hid_t plain[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE,
                                       H5T_STD_I8LE,   H5T_STD_U16BE,  H5T_STD_I32LE,
                                       H5T_STD_U64LE,  H5T_STD_REF_OBJ};
                return H5Tcopy(choose_.PickValueInArray(plain));
            }
        }
    }

    hid_t space(std::vector<hsize_t>& sizes, bool may_grow) {
        const int kind = choose_.ConsumeIntegralInRange(0, 9);
        if (kind == 0) return H5Screate(H5S_NULL);
        if (kind == 1) return H5Screate(H5S_SCALAR);
        sizes.resize(choose_.ConsumeIntegralInRange<std::size_t>(1, 9));
        for (hsize_t& size : sizes) size = choose_.ConsumeIntegralInRange<hsize_t>(0, 3);
        if (kind == 2) sizes.back() = choose_.ConsumeIntegral<hsize_t>();
        const std::vector<hsize_t> endless(sizes.size(), H5S_UNLIMITED);
        return H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(),
                                may_grow ? endless.data() : nullptr);
    }

    void filters(hid_t how) {
        // HDF5 1.10 writes beyond its buffers if these come after another filter.
        switch (choose_.ConsumeIntegralInRange(0, 5)) {
            case 0:
                H5Pset_nbit(how);
                break;
            case 1:
                H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
                break;
            default:
                break;
        }
        for (int i = choose_.ConsumeIntegralInRange(0, 4); i > 0; --i) {
            switch (choose_.ConsumeIntegralInRange(0, 3)) {
                case 0:
                    H5Pset_shuffle(how);
                    break;
                case 1:
                    H5Pset_deflate(how, 1);
                    break;
                case 2:
                    H5Pset_fletcher32(how);
                    break;
                default:
                    H5Pset_filter(how, foreign, H5Z_FLAG_OPTIONAL, 0, nullptr);
            }
        }
    }

    void layout(hid_t how, hid_t extent, std::vector<hsize_t>& sizes, bool chunked) {
        if (chunked) {
            for (hsize_t& size : sizes) size = choose_.ConsumeIntegralInRange<hsize_t>(1, 4);
            // Data that HDF5 would keep in memory as a whole are only declared, not written.
            may_write_ = choose_.ConsumeIntegralInRange(0, 7) != 0;
            if (!may_write_ && !sizes.empty())
                sizes[0] = choose_.ConsumeIntegralInRange<hsize_t>(1, 1 << 26);
            if (!sizes.empty()) H5Pset_chunk(how, static_cast<int>(sizes.size()), sizes.data());
            return filters(how);
        }
        switch (choose_.ConsumeIntegralInRange(0, 5)) {
            case 0:
                H5Pset_layout(how, H5D_COMPACT);
                return;
            case 1:
                H5Pset_external(how, secret_.c_str(), 0, H5F_UNLIMITED);
                return;
            case 2:
                may_write_ = false;  // HDF5 recurses endlessly if the source is the dataset itself
                H5Pset_virtual(how, extent, choose_.ConsumeBool() ? secret_.c_str() : ".", "x",
                               extent);
                return;
            default:
                return;
        }
    }

    void dataset(const std::string& at) {
        const bool chunked = choose_.ConsumeBool();
        std::vector<hsize_t> sizes;
        const hid_t of = type(), extent = space(sizes, chunked),
                    how = H5Pcreate(H5P_DATASET_CREATE);
        may_write_ = true;
        layout(how, extent, sizes, chunked);
        if (choose_.ConsumeBool()) H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
        const hid_t set = H5Dcreate2(file_, at.c_str(), of, extent, 0, how, 0);
        const hssize_t count = extent < 0 ? -1 : H5Sget_simple_extent_npoints(extent);
        if (set >= 0 && count > 0 && count < 4096 && may_write_ && choose_.ConsumeBool()) {
            const std::vector<float> values(static_cast<std::size_t>(count), 3);
            H5Dwrite(set, H5T_NATIVE_FLOAT, 0, 0, 0, values.data());
        }
        close(set, H5Dclose);
        close(how, H5Pclose);
        close(extent, H5Sclose);
        close(of, H5Tclose);
    }

    void attribute(const std::string& at) {
        std::vector<hsize_t> sizes;
        const hid_t object = H5Oopen(file_, choose_.ConsumeBool() ? "/" : at.c_str(), 0);
        const hid_t of = type(), extent = space(sizes, false);
        if (object >= 0 && extent >= 0 && H5Sget_simple_extent_npoints(extent) < 1 << 20)
            close(H5Acreate2(object, choose_.ConsumeBool() ? "dtype" : "a", of, extent, 0, 0),
                  H5Aclose);
        close(extent, H5Sclose);
        close(of, H5Tclose);
        close(object, H5Oclose);
    }

    FuzzedDataProvider& choose_;
    std::string secret_;
    hid_t file_ = -1;
    bool may_write_ = true;
};

/// Reads all values, and checks that none are bytes of the secret file.
void read_all(const std::string& path) {
    const Hdf5Reader reader(path);
    for (const dlprim::Hdf5Dataset& dataset : reader.datasets()) {
        try {
            if (reader.info(dataset.name).bytes() > 1 << 20) continue;
            const std::vector<std::byte> values = reader.read(dataset.name);
            if (values.size() != dataset.bytes()) std::abort();
            for (const std::byte value : values)
                if (value == std::byte{0x5a}) std::abort();
            reader.position(dataset.name);
            reader.attribute(dataset.name, "a");
        } catch (const dlprim::Error&) {
        }
    }
    for (const char* name : {"", "a", "b", "c", "a/b", "x"}) reader.attribute(name, "a");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string secret = temporary("-secret"), path = temporary(".h5");
    static const bool ready = [] {
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, foreign, 1,       1,
                                     "foreign",        nullptr, nullptr, foreign_filter};
        std::ofstream(secret) << std::string(1 << 16, '\x5a');
        return H5Zregister(&filter) >= 0;
    }();
    if (!ready) std::abort();
    FuzzedDataProvider choose(data, size);
    reading = false;
    Maker(choose, path, secret).run();
    reading = true;
    try {
        read_all(path);
    } catch (const dlprim::Error&) {
    }
    return 0;
}
