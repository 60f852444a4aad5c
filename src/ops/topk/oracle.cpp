// SPDX-License-Identifier: MIT
// The oracles of TopK and Sort: a stable sort of each line's positions.
#include "ops/topk/operators.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlprim::topk {

void oracle(OracleCall& call, const Lines& lines) {
    const HostArray& x = call.inputs[0];
    const Shape shape = lines.result;
    const auto size = static_cast<std::size_t>(shape.numel());
    call.outputs[0] = {shape, std::vector<double>(size), x.dtype};
    call.outputs[1] = {shape, std::vector<double>(size), DType::i64};
    for (std::int64_t line = 0; line < lines.count(); ++line) {
        const std::int64_t o = line / lines.inner, i = line % lines.inner;
        const auto element = [&](std::int64_t j) {
            return x.data[static_cast<std::size_t>((o * lines.length + j) * lines.inner + i)];
        };
        const auto is_below = [](double a, double b) {
            return std::isnan(b) ? !std::isnan(a) : a < b;
        };
        std::vector<std::int64_t> order(static_cast<std::size_t>(lines.length));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return lines.largest ? is_below(element(b), element(a))
                                 : is_below(element(a), element(b));
        });
        for (std::int64_t j = 0; j < lines.k; ++j) {
            const auto at = static_cast<std::size_t>((o * lines.k + j) * lines.inner + i);
            const std::int64_t from = order[static_cast<std::size_t>(j)];
            call.outputs[0].data[at] = element(from);
            call.outputs[1].data[at] = static_cast<double>(from);
        }
    }
}

void oracle_backward(OracleBackwardCall& call, const Lines& lines) {
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0);
    const HostArray &positions = call.outputs[1], &dy = call.output_gradients[0];
    for (std::size_t at = 0; at < dy.data.size(); ++at) {
        const std::int64_t flat = static_cast<std::int64_t>(at);
        const std::int64_t i = flat % lines.inner, o = flat / lines.inner / lines.k;
        const auto j = static_cast<std::int64_t>(positions.data[at]);
        dx.data[static_cast<std::size_t>((o * lines.length + j) * lines.inner + i)] = dy.data[at];
    }
}

}  // namespace dlprim::topk
