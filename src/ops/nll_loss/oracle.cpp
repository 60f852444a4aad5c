// SPDX-License-Identifier: MIT
// NLLLoss: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/nll_loss/operator.hpp"
#include "ops/nll_loss/options.hpp"

namespace dlprim::nll_loss {

namespace {

/// Calls visit(position of a label, position of its entry in the input, weight) for labels that
/// count.
template <typename Visit>
void for_each_label(const std::vector<HostArray>& inputs, const Options& options, Visit&& visit) {
    const HostArray &x = inputs[0], &label = inputs[1];
    const AxisView view(x.shape, 1);
    for (std::size_t o = 0; o < view.outer; ++o) {
        for (std::size_t i = 0; i < view.inner; ++i) {
            const std::size_t at = o * view.inner + i;
            const double wanted = label.data[at];
            if (wanted == static_cast<double>(options.ignore_index)) continue;
            require(wanted >= 0 && wanted < static_cast<double>(view.size), "label ", wanted,
                    " is out of range: there are ", view.size, " classes");
            const auto c = static_cast<std::size_t>(wanted);
            visit(at, view.at(o, c, i), inputs.size() > 2 ? inputs[2].data[c] : 1.0);
        }
    }
}

double total_of(const std::vector<HostArray>& inputs, const Options& options) {
    double total = 0;
    for_each_label(inputs, options,
                   [&](std::size_t, std::size_t, double weight) { total += weight; });
    return total;
}

}  // namespace

void NLLLoss::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    call.outputs.resize(options.return_weight ? 2 : 1);
    HostArray& y = make_array(call.outputs, 0, options.output(), x.dtype);
    const double total = total_of(call.inputs, options);
    for_each_label(call.inputs, options, [&](std::size_t at, std::size_t entry, double weight) {
        y.data[options.reduce == Reduce::none ? at : 0] -= x.data[entry] * weight;
    });
    if (options.reduce == Reduce::mean) y.data[0] /= total;
    if (options.return_weight) make_array(call.outputs, 1, Shape{1}, x.dtype).data[0] = total;
}

void NLLLoss::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const Options options(call.attrs, x.shape);
    call.input_gradients.assign(call.inputs.size(), {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    const double factor = options.reduce == Reduce::mean ? 1 / total_of(call.inputs, options) : 1;
    for_each_label(call.inputs, options, [&](std::size_t at, std::size_t entry, double weight) {
        dx.data[entry] -= dy.data[options.reduce == Reduce::none ? at : 0] * weight * factor;
    });
}

}  // namespace dlprim::nll_loss
