// SPDX-License-Identifier: MIT
// The oracles of Convolution and TransposedConvolution: every product of the definition, in double.
#include "engine/activations.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/conv2d/sizes.hpp"

#include <vector>

namespace dlprim::conv2d {

namespace {

/// Elements of the smaller image, taps of the kernel and elements of the larger image that meet
/// along one dimension, as parts of their offsets: `count` elements of the images that one tap
/// brings together, from these on.
struct Meeting {
    std::int64_t small, tap, large, count = 1;
};

/// For each tap. `step` counts the elements that one step along the axis passes over.
std::vector<Meeting> meetings(const Axis& a, const Meeting& step) {
    std::vector<Meeting> all;
    for (std::int64_t tap = 0; tap < a.kernel; ++tap) {
        const std::int64_t shift = tap * a.dilate - a.pad;
        std::int64_t first = 0, last = a.small;
        while (first < last && first * a.stride + shift < 0) ++first;
        while (last > first && (last - 1) * a.stride + shift >= a.large) --last;
        if (first < last)
            all.push_back({first * step.small, tap * step.tap,
                           (first * a.stride + shift) * step.large, last - first});
    }
    return all;
}

/// Calls visit(m) for all products: element m.large + i * stride of the larger images meets
/// m.small + i of the smaller ones at element m.tap of the weight, i < m.count.
template <typename Visit>
void each_product(const Sizes& g, Visit&& visit) {
    const auto& [d, h, w] = g.axes;
    const Meeting row{w.small, w.kernel, w.large};
    const Meeting plane{h.small * row.small, h.kernel * row.tap, h.large * row.large};
    const std::vector<Meeting> depth = meetings(d, plane), rows = meetings(h, row),
                               columns = meetings(w, {1, 1, 1});
    // The smaller images have the weight's first channels, the larger ones its second.
    const std::int64_t small = g.transposed ? g.in : g.out, large = g.transposed ? g.out : g.in;
    const std::int64_t share = large / g.groups;
    const auto visit_rows = [&](const Meeting& at, const Meeting& y) {
        for (std::int64_t j = 0; j < y.count; ++j)
            for (const Meeting& x : columns)
                visit({at.small + y.small + j * row.small + x.small, at.tap + y.tap + x.tap,
                       at.large + y.large + j * h.stride * row.large + x.large, x.count});
    };
    for (std::int64_t i = 0; i < g.batch * small * share; ++i) {
        const std::int64_t c = i % share, o = i / share % small, n = i / share / small;
        const std::int64_t channel = o / (small / g.groups) * share + c;
        for (const Meeting& z : depth)
            for (std::int64_t k = 0; k < z.count; ++k) {
                const Meeting at{
                    (n * small + o) * d.small * plane.small + z.small + k * plane.small,
                    (o * share + c) * d.kernel * plane.tap + z.tap,
                    (n * large + channel) * d.large * plane.large + z.large +
                        k * d.stride * plane.large};
                for (const Meeting& y : rows) visit_rows(at, y);
            }
    }
}

/// The channel that element i of the result belongs to.
std::size_t channel_of(std::size_t i, const Shape& result) {
    const auto area = static_cast<std::size_t>(result.product(2, result.rank()));
    return i / area % static_cast<std::size_t>(result[1]);
}

/// The result before its activation.
std::vector<double> linear(const Sizes& g, const std::vector<HostArray>& inputs) {
    const std::vector<double>&x = inputs[0].data, &weight = inputs[1].data;
    const Shape shape = g.output();
    std::vector<double> y(static_cast<std::size_t>(shape.numel()), 0);
    if (g.bias)
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = inputs[2].data[channel_of(i, shape)];
    const std::int64_t stride = g.axes[2].stride;
    each_product(g, [&](const Meeting& m) {
        const double factor = weight[static_cast<std::size_t>(m.tap)];
        const double* from = x.data() + (g.transposed ? m.small : m.large);
        double* to = y.data() + (g.transposed ? m.large : m.small);
        const std::int64_t read = g.transposed ? 1 : stride, write = g.transposed ? stride : 1;
        for (std::int64_t i = 0; i < m.count; ++i) to[i * write] += from[i * read] * factor;
    });
    return y;
}

}  // namespace

void oracle(OracleCall& call, bool transposed) {
    const Sizes g(call.attrs, call.inputs[0].shape, transposed);
    const Activation& f = find_activation(call.attrs.text("activation"));
    std::vector<double> y = linear(g, call.inputs);
    for (double& v : y) v = activate(f.name, v, f.alpha, f.beta);
    call.outputs[0] = {g.output(), std::move(y), call.inputs[0].dtype};
}

void oracle_backward(OracleBackwardCall& call, bool transposed) {
    const HostArray &x = call.inputs[0], &weight = call.inputs[1];
    const Sizes g(call.attrs, x.shape, transposed);
    std::vector<double> dy = call.output_gradients[0].data;
    const Activation& f = find_activation(call.attrs.text("activation"));
    if (f.name != "identity") {
        const std::vector<double> before = linear(g, call.inputs);
        for (std::size_t i = 0; i < dy.size(); ++i)
            dy[i] *= activate_gradient(f.name, before[i], f.alpha, f.beta);
    }
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        make_array(call.input_gradients, i, call.inputs[i].shape, call.inputs[i].dtype);
    std::vector<double>&dx = call.input_gradients[0].data, &dw = call.input_gradients[1].data;
    const std::int64_t stride = g.axes[2].stride;
    each_product(g, [&](const Meeting& m) {
        const auto tap = static_cast<std::size_t>(m.tap);
        const std::int64_t x_at = transposed ? m.small : m.large, x_step = transposed ? 1 : stride,
                           dy_at = transposed ? m.large : m.small,
                           dy_step = transposed ? stride : 1;
        const double* from = dy.data() + dy_at;
        double sum = 0;
        for (std::int64_t i = 0; i < m.count; ++i) {
            dx.data()[x_at + i * x_step] += from[i * dy_step] * weight.data[tap];
            sum += from[i * dy_step] * x.data.data()[x_at + i * x_step];
        }
        dw[tap] += sum;
    });
    if (!g.bias) return;
    const Shape& shape = call.output_gradients[0].shape;
    for (std::size_t i = 0; i < dy.size(); ++i)
        call.input_gradients[2].data[channel_of(i, shape)] += dy[i];
}

}  // namespace dlprim::conv2d
