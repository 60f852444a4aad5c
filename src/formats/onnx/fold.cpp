// SPDX-License-Identifier: MIT
// Constants on the host: conversions, and folding by oracles.
#include "base/text.hpp"
#include "formats/onnx/builder.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

/// Oracles are naive: what is larger is left to the device, where it is computed once
/// (docs/onnx.md).
constexpr std::int64_t largest_folded = 1 << 16;
constexpr double exact_integers = 9007199254740992.0;      // 2^53: what a double counts to
constexpr double end_of_integers = 9223372036854775808.0;  // 2^63: where the largest one becomes it

/// Whether a double holds every element, or the largest integer stands for "to the end", as
/// exporters write it, and becomes itself again.
bool fits_double(const HostTensor& value) {
    if (value.dtype != DType::i64 && value.dtype != DType::u64) return true;
    const std::vector<std::int64_t> integers = to_integers(value);
    return std::all_of(integers.begin(), integers.end(), [](std::int64_t v) {
        return v == std::numeric_limits<std::int64_t>::max() ||
               v == std::numeric_limits<std::int64_t>::min() ||
               std::abs(static_cast<double>(v)) < exact_integers;
    });
}

/// Whether results are exact too. Computed in double, one beyond 2^53 may have lost digits. The
/// largest of no elements is -infinity, which becomes the least integer.
bool is_exact(const HostArray& result) {
    return (result.dtype != DType::i64 && result.dtype != DType::u64) ||
           std::all_of(result.data.begin(), result.data.end(), [](double v) {
               return std::abs(v) < exact_integers || std::abs(v) == end_of_integers ||
                      std::isinf(v);
           });
}

}  // namespace

std::vector<double> to_numbers(const HostTensor& value) {
    std::vector<double> result(static_cast<std::size_t>(value.shape.numel()));
    convert(value.data.data(), value.dtype, result.data(), DType::f64, result.size());
    return result;
}

std::vector<std::int64_t> to_integers(const HostTensor& value) {
    require(!is_float(value.dtype), "integers are needed, got ", name_of(value.dtype));
    std::vector<std::int64_t> result(static_cast<std::size_t>(value.shape.numel()));
    convert(value.data.data(), value.dtype, result.data(), DType::i64, result.size());
    return result;
}

HostValue host_integers(const Shape& shape, const std::vector<std::int64_t>& values, DType dtype) {
    auto result = std::make_shared<HostTensor>();
    result->shape = shape;
    result->dtype = dtype;
    result->data.resize(values.size() * size_of(dtype));
    convert(values.data(), DType::i64, result->data.data(), dtype, values.size());
    return result;
}

HostValue host_numbers(const Shape& shape, const std::vector<double>& values, DType dtype) {
    auto result = std::make_shared<HostTensor>();
    result->shape = shape;
    result->dtype = dtype;
    result->data.resize(values.size() * size_of(dtype));
    convert(values.data(), DType::f64, result->data.data(), dtype, values.size());
    return result;
}

std::vector<HostValue> fold(const Operator& op, const Attrs& options,
                            const std::vector<HostValue>& inputs,
                            const std::vector<TensorSpec>& outputs) {
    const auto small = [](const Shape& shape) { return shape.numel() <= largest_folded; };
    for (const HostValue& input : inputs)
        if (!small(input->shape) || !fits_double(*input)) return {};
    for (const TensorSpec& output : outputs)
        if (!small(output.shape)) return {};
    OracleCall call{options};
    for (const HostValue& input : inputs)
        call.inputs.push_back({input->shape, to_numbers(*input), input->dtype});
    for (const TensorSpec& output : outputs)
        call.outputs.push_back({output.shape,
                                std::vector<double>(static_cast<std::size_t>(output.shape.numel())),
                                output.dtype});
    op.oracle(call);
    if (!std::all_of(call.outputs.begin(), call.outputs.end(), is_exact)) return {};
    std::vector<HostValue> results;
    for (std::size_t i = 0; i < outputs.size(); ++i)
        results.push_back(host_numbers(outputs[i].shape, call.outputs[i].data, outputs[i].dtype));
    return results;
}

}  // namespace dlprim::onnx
