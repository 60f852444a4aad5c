// SPDX-License-Identifier: MIT
// The oracles of LinearCrossEntropy: all logits at once.
#include "graph/oracle_loops.hpp"
#include "ops/linear_cross_entropy/operator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::linear_cross_entropy {

namespace {

/// A row of x, its logits and its label.
struct Row {
    std::size_t number, label;
    const double* x;
    std::vector<double> logits;
    double lse = 0;
    double share(std::size_t c) const { return std::exp(logits[c] - lse); }
};

struct Sizes {
    std::size_t rows, features, outputs;
    explicit Sizes(const std::vector<HostArray>& inputs)
        : rows(inputs[1].data.size()),
          features(static_cast<std::size_t>(inputs[2].shape[1])),
          outputs(static_cast<std::size_t>(inputs[2].shape[0])) {}
};

/// Calls visit(row) for each row whose label counts, and returns their number.
template <typename Visit>
std::size_t for_each_row(const Attrs& attrs, const std::vector<HostArray>& inputs, Visit&& visit) {
    const Sizes s(inputs);
    std::size_t count = 0;
    for (std::size_t r = 0; r < s.rows; ++r) {
        const double label = inputs[1].data[r];
        if (label == static_cast<double>(attrs.integer("ignore_index"))) continue;
        Row row{r, static_cast<std::size_t>(label), inputs[0].data.data() + r * s.features, {}};
        row.logits.assign(s.outputs, 0);
        for (std::size_t c = 0; c < s.outputs; ++c) {
            if (inputs.size() > 3) row.logits[c] = inputs[3].data[c];
            for (std::size_t k = 0; k < s.features; ++k)
                row.logits[c] += row.x[k] * inputs[2].data[c * s.features + k];
        }
        const double top = *std::max_element(row.logits.begin(), row.logits.end());
        for (const double logit : row.logits) row.lse += std::exp(logit - top);
        row.lse = top + std::log(row.lse);
        visit(row);
        ++count;
    }
    return count;
}

}  // namespace

void oracle(OracleCall& call) {
    const std::string& reduce = call.attrs.text("reduce");
    const bool each = reduce == "none";
    HostArray& y =
        make_array(call.outputs, 0, each ? call.inputs[1].shape : Shape{1}, call.inputs[0].dtype);
    const std::size_t count = for_each_row(call.attrs, call.inputs, [&](const Row& row) {
        y.data[each ? row.number : 0] += row.lse - row.logits[row.label];
    });
    if (reduce == "mean") y.data[0] /= static_cast<double>(count);
}

void oracle_backward(OracleBackwardCall& call) {
    const Sizes s(call.inputs);
    const std::string& reduce = call.attrs.text("reduce");
    const HostArray &weight = call.inputs[2], &dy = call.output_gradients[0];
    call.input_gradients.assign(call.inputs.size(), {});
    call.terms.assign(call.inputs.size(), {});
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        if (i == 1) continue;
        make_array(call.input_gradients, i, call.inputs[i].shape, call.inputs[i].dtype);
        make_array(call.terms, i, call.inputs[i].shape, call.inputs[i].dtype);
    }
    const std::size_t count =
        reduce == "mean" ? for_each_row(call.attrs, call.inputs, [](const Row&) {}) : 1;
    const auto add = [&](std::size_t input, std::size_t at, double term, double size) {
        call.input_gradients[input].data[at] += term;
        call.terms[input].data[at] += size;
    };
    for_each_row(call.attrs, call.inputs, [&](const Row& row) {
        const double flow = dy.data[reduce == "none" ? row.number : 0] / static_cast<double>(count);
        for (std::size_t c = 0; c < s.outputs; ++c) {
            const double p = row.share(c), wanted = c == row.label ? 1 : 0;
            const double g = flow * (p - wanted), size = std::abs(flow) * (p + wanted);
            if (call.inputs.size() > 3) add(3, c, g, size);
            for (std::size_t k = 0; k < s.features; ++k) {
                const double w = weight.data[c * s.features + k];
                add(0, row.number * s.features + k, g * w, size * std::abs(w));
                add(2, c * s.features + k, g * row.x[k], size * std::abs(row.x[k]));
            }
        }
    });
}

}  // namespace dlprim::linear_cross_entropy
