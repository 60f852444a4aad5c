// SPDX-License-Identifier: MIT
// Cast: the oracle, which uses the host's conversions between the types themselves.
#include "graph/oracle_loops.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim::cast {

namespace {

/// The values, converted from type `from` to type `to`, as doubles.
std::vector<double> through(const std::vector<double>& values, DType from, DType to,
                            bool reinterpret = false) {
    const std::size_t count = values.size();
    std::vector<std::byte> first(count * size_of(from)), second(count * size_of(to));
    std::vector<double> result(count);
    convert(values.data(), DType::f64, first.data(), from, count);
    if (reinterpret)
        second = first;
    else
        convert(first.data(), from, second.data(), to, count);
    convert(second.data(), to, result.data(), DType::f64, count);
    return result;
}

}  // namespace

void Cast::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const DType to = parse_dtype(call.attrs.text("dtype"));
    make_array(call.outputs, 0, x.shape, to).data =
        through(x.data, x.dtype, to, call.attrs.boolean("reinterpret"));
}

void Cast::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const DType to = parse_dtype(call.attrs.text("dtype"));
    call.input_gradients.assign(1, {});
    if (!is_float(x.dtype) || !is_float(to) || call.attrs.boolean("reinterpret")) return;
    make_array(call.input_gradients, 0, x.shape, x.dtype).data =
        through(call.output_gradients[0].data, to, x.dtype);
}

}  // namespace dlprim::cast
