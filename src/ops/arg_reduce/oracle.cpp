// SPDX-License-Identifier: MIT
// ArgReduce's oracles: each line is read from its front, and an element counts where it is more
// extreme than those before it.
#include "ops/arg_reduce/operator.hpp"

#include "graph/oracle_loops.hpp"
#include "ops/arg_reduce/options.hpp"

#include <cmath>

namespace dlprim::arg_reduce {

void oracle(OracleCall& call) {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    call.outputs.resize(options.values ? 2 : 1);
    if (options.values) make_array(call.outputs, 0, options.result, x.dtype);
    HostArray& positions =
        make_array(call.outputs, call.outputs.size() - 1, options.result, DType::i64);
    for (std::int64_t line = 0; line < options.lines.count(); ++line) {
        std::int64_t best = 0;
        const auto element = [&](std::int64_t j) {
            return x.data[static_cast<std::size_t>(options.lines.at(line, j))];
        };
        for (std::int64_t j = 1; j < options.lines.length; ++j) {
            const double a = element(j), b = element(best);
            if (std::isnan(b)) break;
            if (std::isnan(a) || (options.largest ? a > b : a < b)) best = j;
        }
        const auto at = static_cast<std::size_t>(line);
        if (options.values) call.outputs[0].data[at] = element(best);
        positions.data[at] = static_cast<double>(best);
    }
}

void oracle_backward(OracleBackwardCall& call) {
    const Options options(call.attrs, call.inputs[0].shape);
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    if (!options.values) return;
    const HostArray &dy = call.output_gradients[0], &positions = call.outputs[1];
    for (std::int64_t line = 0; line < options.lines.count(); ++line) {
        const auto at = static_cast<std::size_t>(line);
        const auto j = static_cast<std::int64_t>(positions.data[at]);
        dx.data[static_cast<std::size_t>(options.lines.at(line, j))] = dy.data[at];
    }
}

}  // namespace dlprim::arg_reduce
