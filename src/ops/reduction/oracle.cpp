// SPDX-License-Identifier: MIT
// Reduction: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/reduction/operator.hpp"
#include "ops/reduction/options.hpp"

#include <cmath>

namespace dlprim::reduction {

void Reduction::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    HostArray& y = make_array(call.outputs, 0, options.output, x.dtype);
    for_each_position(x.shape, [&](const auto& index, std::size_t i) {
        const double v = x.data[i];
        double& sum = y.data[broadcast_offset(options.kept, index)];
        switch (options.method) {
            case Method::sum:
            case Method::mean:
                sum += v;
                break;
            case Method::sumsq:
                sum += v * v;
                break;
            case Method::abssum:
                sum += std::fabs(v);
                break;
        }
    });
    for (double& value : y.data) value *= options.scale;
}

void Reduction::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const Options options(call.attrs, x.shape);
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for_each_position(x.shape, [&](const auto& index, std::size_t i) {
        const double v = x.data[i];
        double slope = 1;
        if (options.method == Method::sumsq) slope = 2 * v;
        if (options.method == Method::abssum) slope = v > 0 ? 1 : v < 0 ? -1 : 0;
        dx.data[i] = dy.data[broadcast_offset(options.kept, index)] * options.scale * slope;
    });
}

}  // namespace dlprim::reduction
