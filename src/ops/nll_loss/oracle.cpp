// SPDX-License-Identifier: MIT
// NLLLoss: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/nll_loss/operator.hpp"
#include "ops/nll_loss/options.hpp"

namespace dlprim::nll_loss {

namespace {

/// Calls visit(position of a label, position of its entry in the input).
template <typename Visit>
void for_each_label(const HostArray& x, const HostArray& label, Visit&& visit) {
    const AxisView view(x.shape, 1);
    for (std::size_t o = 0; o < view.outer; ++o) {
        for (std::size_t i = 0; i < view.inner; ++i) {
            const std::size_t at = o * view.inner + i;
            const double wanted = label.data[at];
            require(wanted >= 0 && wanted < static_cast<double>(view.size), "label ", wanted,
                    " is out of range: there are ", view.size, " classes");
            visit(at, view.at(o, static_cast<std::size_t>(wanted), i));
        }
    }
}

}  // namespace

void NLLLoss::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    HostArray& y = make_array(call.outputs, 0, options.output(), x.dtype);
    for_each_label(x, call.inputs[1], [&](std::size_t at, std::size_t entry) {
        y.data[options.reduce == Reduce::none ? at : 0] -= x.data[entry] * options.factor;
    });
}

void NLLLoss::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const Options options(call.attrs, x.shape);
    call.input_gradients.assign(2, {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for_each_label(x, call.inputs[1], [&](std::size_t at, std::size_t entry) {
        dx.data[entry] -= dy.data[options.reduce == Reduce::none ? at : 0] * options.factor;
    });
}

}  // namespace dlprim::nll_loss
