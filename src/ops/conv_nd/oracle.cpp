// SPDX-License-Identifier: MIT
// The oracles of ConvolutionND and TransposedConvolutionND: every product of the definition, in
// double.
#include "graph/oracle_loops.hpp"
#include "ops/conv_nd/geometry.hpp"

#include <cmath>

namespace dlprim::conv_nd {

namespace {

/// Calls visit(element of the larger images, of the weight, of the smaller images) for each
/// product.
template <typename Visit>
void each_product(const Geometry& g, Visit&& visit) {
    const auto& [d, h, w] = g.axes;
    // The smaller images have the weight's first channels, the larger ones its second.
    const std::int64_t small = g.transposed ? g.in : g.out, large = g.transposed ? g.out : g.in;
    const std::int64_t share = large / g.groups;
    const std::int64_t pixels = d.small * h.small * w.small, taps = d.kernel * h.kernel * w.kernel;
    for (std::int64_t n = 0; n < g.batch; ++n)
        for (std::int64_t o = 0; o < small; ++o)
            for (std::int64_t c = 0; c < share; ++c)
                for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
                    for (std::int64_t tap = 0; tap < taps; ++tap) {
                        const auto meets = [](const Axis& a, std::int64_t at, std::int64_t k) {
                            const std::int64_t i = at * a.stride - a.pad + k * a.dilate;
                            return i < a.large ? i : -1;
                        };
                        const std::int64_t z = meets(d, pixel / w.small / h.small,
                                                     tap / w.kernel / h.kernel),
                                           y = meets(h, pixel / w.small % h.small,
                                                     tap / w.kernel % h.kernel),
                                           x = meets(w, pixel % w.small, tap % w.kernel);
                        if (z < 0 || y < 0 || x < 0) continue;
                        const std::int64_t channel = o / (small / g.groups) * share + c;
                        visit(static_cast<std::size_t>(
                                  (((n * large + channel) * d.large + z) * h.large + y) * w.large +
                                  x),
                              static_cast<std::size_t>((o * share + c) * taps + tap),
                              static_cast<std::size_t>((n * small + o) * pixels + pixel));
                    }
}

HostArray zeros(const HostArray& like) {
    HostArray result = like;
    result.data.assign(like.data.size(), 0);
    return result;
}

}  // namespace

void oracle(OracleCall& call, bool transposed) {
    const HostArray &x = call.inputs[0], &weight = call.inputs[1];
    const Geometry g(call.attrs, x.shape, transposed);
    HostArray& y = call.outputs[0];
    y.shape = g.output();
    y.dtype = x.dtype;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0);
    const auto area = static_cast<std::size_t>(y.shape.product(2, y.shape.rank()));
    if (g.bias)
        for (std::size_t i = 0; i < y.data.size(); ++i)
            y.data[i] = call.inputs[2].data[i / area % static_cast<std::size_t>(g.out)];
    each_product(g, [&](std::size_t large, std::size_t at, std::size_t small) {
        if (transposed)
            y.data[large] += x.data[small] * weight.data[at];
        else
            y.data[small] += x.data[large] * weight.data[at];
    });
}

void oracle_backward(OracleBackwardCall& call, bool transposed) {
    const HostArray &x = call.inputs[0], &weight = call.inputs[1], &dy = call.output_gradients[0];
    const Geometry g(call.attrs, x.shape, transposed);
    call.input_gradients.clear();
    for (const HostArray& input : call.inputs) call.input_gradients.push_back(zeros(input));
    std::vector<double>&dx = call.input_gradients[0].data, &dw = call.input_gradients[1].data;
    // Sums for a weight and a bias may cancel.
    HostArray& dw_terms = make_array(call.terms, 1, weight.shape, weight.dtype);
    each_product(g, [&](std::size_t large, std::size_t at, std::size_t small) {
        const std::size_t from = transposed ? large : small, to = transposed ? small : large;
        dx[to] += dy.data[from] * weight.data[at];
        dw[at] += dy.data[from] * x.data[to];
        dw_terms.data[at] += std::abs(dy.data[from] * x.data[to]);
    });
    if (!g.bias) return;
    HostArray& db_terms = make_array(call.terms, 2, call.inputs[2].shape, call.inputs[2].dtype);
    const auto area = static_cast<std::size_t>(dy.shape.product(2, dy.shape.rank()));
    for (std::size_t i = 0; i < dy.data.size(); ++i) {
        const std::size_t channel = i / area % static_cast<std::size_t>(g.out);
        call.input_gradients[2].data[channel] += dy.data[i];
        db_terms.data[channel] += std::abs(dy.data[i]);
    }
}

}  // namespace dlprim::conv_nd
