// SPDX-License-Identifier: MIT
// Conversions that refuse values which would silently change.
#include "net_values.hpp"

#include <nanobind/ndarray.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace dlprim::python {
namespace {

bool is_unsigned(DType dtype) {
    return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
}

/// The first number of an integer type, and one past its last.
std::pair<double, double> range_of(DType dtype) {
    const double bits = 8.0 * static_cast<double>(size_of(dtype));
    if (dtype == DType::boolean) return {0, 2};
    if (is_unsigned(dtype)) return {0, std::exp2(bits)};
    return {-std::exp2(bits - 1), std::exp2(bits - 1)};
}

void check_held(const HostArray& array, DType dtype, const std::string& what) {
    std::vector<double> values(static_cast<std::size_t>(array.shape.numel()));
    convert(array.data, array.dtype, values.data(), DType::f64, values.size());
    const auto [lowest, end] = range_of(dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        if (value >= lowest && value < end && value == std::floor(value)) continue;
        throw Error(ErrorKind::invalid_argument,
                    what + " holds " + std::to_string(value) + " at position " + std::to_string(i) +
                        ", which " + dtype_name(dtype) + " cannot hold");
    }
}

/// The type in DLPack. What numpy itself lacks, such as bfloat16, is given as bit patterns.
nb::dlpack::dtype dlpack_dtype(DType dtype) {
    using Code = nb::dlpack::dtype_code;
    const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
    const Code code = dtype == DType::boolean                        ? Code::Bool
                      : is_held_by_bits(dtype) || is_unsigned(dtype) ? Code::UInt
                      : is_float(dtype)                              ? Code::Float
                                                                     : Code::Int;
    return {static_cast<std::uint8_t>(code), bits, 1};
}

}  // namespace

std::vector<std::byte> converted(const HostArray& array, DType dtype, const std::string& what) {
    const auto count = static_cast<std::size_t>(array.shape.numel());
    // Without ml_dtypes, the bits of bfloat16 are uint16, as for Tensor.
    if (array.dtype == dtype || (dtype == DType::bf16 && array.dtype == DType::u16)) {
        const auto* const bytes = static_cast<const std::byte*>(array.data);
        if (count == 0) return {};
        return {bytes, bytes + count * size_of(dtype)};
    }
    std::vector<std::byte> result(count * size_of(dtype));
    if (is_narrow(dtype))
        throw Error(ErrorKind::invalid_argument,
                    what + " is " + dtype_name(array.dtype) + ", not " + dtype_name(dtype));
    if (!is_float(dtype)) check_held(array, dtype, what);
    convert(array.data, array.dtype, result.data(), dtype, count);
    return result;
}

nb::object to_array(HostTensor&& tensor) {
    auto* const memory = new std::vector<std::byte>(std::move(tensor.data));
    const nb::capsule owner(
        memory, [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
    std::vector<std::size_t> sizes;
    for (const std::int64_t size : tensor.shape.dims())
        sizes.push_back(static_cast<std::size_t>(size));
    const nb::ndarray<nb::numpy> array(memory->data(), sizes.size(), sizes.data(), owner, nullptr,
                                       dlpack_dtype(tensor.dtype));
    return typed_bits(nb::cast(array), tensor.dtype);
}

}  // namespace dlprim::python
