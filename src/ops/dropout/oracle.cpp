// SPDX-License-Identifier: MIT
// Dropout: the oracle. The random bits come from the pointwise language's uniform(), evaluated on
// the host. A test case gives the stream explicitly, because the oracle does not know the
// operator's name.
#include "engine/pointwise/program.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/dropout/operator.hpp"

namespace dlprim::dropout {

namespace {

/// The factor of each element: in training 0 or 1 / (1 - p), otherwise 1.
std::vector<double> factors(const Attrs& attrs, bool training, const Shape& shape,
                            std::uint64_t seed, std::uint64_t step) {
    const double p = attrs.number("p");
    std::vector<double> result(static_cast<std::size_t>(shape.numel()), 1.0);
    if (!training || p == 0) return result;
    namespace pw = pointwise;
    const pw::ExprPtr uniform = pw::call(
        "uniform",
        {pw::input(0), pw::input(1), pw::constant(static_cast<double>(attrs.integer("stream")))});
    const std::vector<double> key{static_cast<double>(seed), static_cast<double>(step)};
    for_each_position(shape, [&](const auto& index, std::size_t i) {
        const bool kept = pw::evaluate(uniform, key, {}, index, shape) >=
                          static_cast<double>(static_cast<float>(p));
        result[i] = kept && p < 1 ? 1 / (1 - p) : 0;
    });
    return result;
}

}  // namespace

void Dropout::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    const auto by = factors(call.attrs, call.training, x.shape, call.seed, call.step);
    for (std::size_t i = 0; i < x.data.size(); ++i) y.data[i] = x.data[i] * by[i];
}

void Dropout::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    const auto by = factors(call.attrs, call.training, x.shape, call.seed, call.step);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        dx.data[i] = call.output_gradients[0].data[i] * by[i];
}

}  // namespace dlprim::dropout
