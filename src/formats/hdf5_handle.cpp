// SPDX-License-Identifier: MIT
// Types, lock and error text of the HDF5 library.
#include "formats/hdf5_handle.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace dlprim::hdf5 {

std::unique_lock<std::mutex> lock() {
    static std::mutex mutex;
    std::unique_lock<std::mutex> held(mutex);
    // A thread-safe HDF5 has one error stack per thread, so printing is turned off on every call.
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return held;
}

Handle half_type() {
    Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    // Sign at bit 15, exponent of 5 bits at 10 with bias 15, mantissa of 10 bits at 0.
    if (H5Tset_fields(type.id(), 15, 10, 5, 0, 10) < 0 || H5Tset_size(type.id(), 2) < 0 ||
        H5Tset_ebias(type.id(), 15) < 0)
        fail(ErrorKind::io, "HDF5 cannot make the 16-bit float type: ", last_error());
    return type;
}

Handle bool_type() {
    Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
    const std::int8_t no = 0, yes = 1;
    if (H5Tenum_insert(type.id(), "FALSE", &no) < 0 || H5Tenum_insert(type.id(), "TRUE", &yes) < 0)
        fail(ErrorKind::io, "HDF5 cannot make the boolean type: ", last_error());
    return type;
}

namespace {

/// The types of a dtype in memory and, little-endian, in files. HDF5's names are calls.
std::pair<hid_t, hid_t> types_of(DType dtype) {
    const std::tuple<DType, hid_t, hid_t> rows[] = {{DType::f32, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
                                                    {DType::f64, H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE},
                                                    {DType::bf16, H5T_NATIVE_UINT16, H5T_STD_U16LE},
                                                    {DType::i8, H5T_NATIVE_INT8, H5T_STD_I8LE},
                                                    {DType::u8, H5T_NATIVE_UINT8, H5T_STD_U8LE},
                                                    {DType::i16, H5T_NATIVE_INT16, H5T_STD_I16LE},
                                                    {DType::u16, H5T_NATIVE_UINT16, H5T_STD_U16LE},
                                                    {DType::i32, H5T_NATIVE_INT32, H5T_STD_I32LE},
                                                    {DType::u32, H5T_NATIVE_UINT32, H5T_STD_U32LE},
                                                    {DType::i64, H5T_NATIVE_INT64, H5T_STD_I64LE},
                                                    {DType::u64, H5T_NATIVE_UINT64, H5T_STD_U64LE}};
    for (const auto& [known, memory, file] : rows)
        if (known == dtype) return {memory, file};
    fail(ErrorKind::invalid_argument, "a dtype that HDF5 files do not hold");
}

}  // namespace

Handle memory_type(DType dtype) {
    if (dtype == DType::f16) return half_type();
    if (dtype == DType::boolean) return bool_type();
    return {H5Tcopy(types_of(dtype).first), H5Tclose};
}

Handle file_type(DType dtype) {
    if (dtype == DType::f16) return half_type();
    if (dtype == DType::boolean) return bool_type();
    return {H5Tcopy(types_of(dtype).second), H5Tclose};
}

std::optional<DType> dtype_of(hid_t type) {
    const std::size_t size = H5Tget_size(type);
    switch (H5Tget_class(type)) {
        case H5T_FLOAT:
            if (size == 4) return DType::f32;
            if (size == 8) return DType::f64;
            if (size == 2) {
                std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0,
                            mantissa_size = 0;
                H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size);
                if (exponent_size == 5 && mantissa_size == 10) return DType::f16;
            }
            return std::nullopt;
        case H5T_INTEGER: {
            const bool has_sign = H5Tget_sign(type) != H5T_SGN_NONE;
            if (size == 1) return has_sign ? DType::i8 : DType::u8;
            if (size == 2) return has_sign ? DType::i16 : DType::u16;
            if (size == 4) return has_sign ? DType::i32 : DType::u32;
            if (size == 8) return has_sign ? DType::i64 : DType::u64;
            return std::nullopt;
        }
        case H5T_ENUM:
            if (size == 1 && H5Tget_nmembers(type) == 2) return DType::boolean;
            return std::nullopt;
        default:
            return std::nullopt;
    }
}

std::string last_error() {
    std::string text;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
            auto& description = *static_cast<std::string*>(out);
            if (description.empty() && error->desc != nullptr) description = error->desc;
            return 0;
        },
        &text);
    H5Eclear2(H5E_DEFAULT);
    // Where the system refuses a write, HDF5 describes it with the time, which ends a line.
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return text;
}

}  // namespace dlprim::hdf5
