// SPDX-License-Identifier: MIT
// The oracles of Convolution and TransposedConvolution: every product of the definition, in double.
#include "engine/activations.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/conv2d/sizes.hpp"

#include <vector>

namespace dlprim::conv2d {

namespace {

/// An element of the smaller image, a tap of the kernel and the element of the larger image that
/// they meet, along one dimension.
struct Meeting {
    std::int64_t small, tap, large;
};

std::vector<Meeting> meetings(const Axis& a) {
    std::vector<Meeting> all;
    for (std::int64_t at = 0; at < a.small; ++at)
        for (std::int64_t tap = 0; tap < a.kernel; ++tap) {
            const std::int64_t large = at * a.stride - a.pad + tap * a.dilate;
            if (large >= 0 && large < a.large) all.push_back({at, tap, large});
        }
    return all;
}

/// Calls visit(element of the larger images, of the weight, of the smaller images) for each
/// product.
template <typename Visit>
void each_product(const Sizes& g, Visit&& visit) {
    const auto& [d, h, w] = g.axes;
    const std::vector<Meeting> depth = meetings(d), rows = meetings(h), columns = meetings(w);
    // The smaller images have the weight's first channels, the larger ones its second.
    const std::int64_t small = g.transposed ? g.in : g.out, large = g.transposed ? g.out : g.in;
    const std::int64_t share = large / g.groups;
    const auto at = [](std::int64_t image, std::int64_t z, std::int64_t y, std::int64_t x,
                       std::int64_t Axis::*size, const std::array<Axis, 3>& axes) {
        return static_cast<std::size_t>(
            ((image * axes[0].*size + z) * axes[1].*size + y) * axes[2].*size + x);
    };
    for (std::int64_t i = 0; i < g.batch * small * share; ++i) {
        const std::int64_t c = i % share, o = i / share % small, n = i / share / small;
        const std::int64_t channel = o / (small / g.groups) * share + c;
        for (const Meeting& z : depth)
            for (const Meeting& y : rows)
                for (const Meeting& x : columns)
                    visit(at(n * large + channel, z.large, y.large, x.large, &Axis::large, g.axes),
                          at(o * share + c, z.tap, y.tap, x.tap, &Axis::kernel, g.axes),
                          at(n * small + o, z.small, y.small, x.small, &Axis::small, g.axes));
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
    each_product(g, [&](std::size_t large, std::size_t at, std::size_t small) {
        y[g.transposed ? large : small] += x[g.transposed ? small : large] * weight[at];
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
    each_product(g, [&](std::size_t large, std::size_t at, std::size_t small) {
        const std::size_t from = transposed ? large : small, to = transposed ? small : large;
        dx[to] += dy[from] * weight.data[at];
        dw[at] += dy[from] * x.data[to];
    });
    if (!g.bias) return;
    const Shape& shape = call.output_gradients[0].shape;
    for (std::size_t i = 0; i < dy.size(); ++i)
        call.input_gradients[2].data[channel_of(i, shape)] += dy[i];
}

}  // namespace dlprim::conv2d
