// SPDX-License-Identifier: MIT
// Interpolation's oracle: computes every output element from its source position in double. Source
// positions are those that PyTorch uses for float64 tensors.
#include "ops/interpolation/operator.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace dlprim::interpolation {

namespace {

struct Source {
    std::int64_t a, b;
    double share_of_b;
};

/// The source position of output `o` along one dimension.
Source source(const Attrs& attrs, const char* scale_option, std::int64_t o, std::int64_t in,
              std::int64_t out) {
    const std::string mode = attrs.text("method");
    const double given = attrs.number(scale_option);
    const double step = given > 0 ? 1.0 / given : double(in) / double(out);
    if (mode == "nearest") {
        const std::int64_t i =
            std::min<std::int64_t>(std::int64_t(std::floor(double(o) * step)), in - 1);
        return {i, i, 0};
    }
    if (mode == "nearest-exact") {
        const std::int64_t i =
            std::min<std::int64_t>(std::int64_t(std::floor((double(o) + 0.5) * step)), in - 1);
        return {i, i, 0};
    }
    double real = (double(o) + 0.5) * step - 0.5;
    if (attrs.boolean("align_corners"))
        real = out > 1 ? double(o) * (double(in - 1) / double(out - 1)) : 0;
    real = std::min(std::max(real, 0.0), double(in - 1));
    const auto i = std::int64_t(std::floor(real));
    return {i, std::min(i + 1, in - 1), real - double(i)};
}

/// Visits every (input element, output element, weight).
template <typename F>
void visit(const Attrs& attrs, const Shape& x, const Shape& y, F&& f) {
    std::size_t to = 0;
    for (std::int64_t p = 0; p < y[0] * y[1]; ++p)
        for (std::int64_t i = 0; i < y[2]; ++i)
            for (std::int64_t j = 0; j < y[3]; ++j, ++to) {
                const Source r = source(attrs, "scale_y", i, x[2], y[2]);
                const Source c = source(attrs, "scale_x", j, x[3], y[3]);
                const auto at = [&](std::int64_t row, std::int64_t column) {
                    return static_cast<std::size_t>((p * x[2] + row) * x[3] + column);
                };
                f(at(r.a, c.a), to, (1 - r.share_of_b) * (1 - c.share_of_b));
                if (attrs.text("method") != "bilinear") continue;
                f(at(r.a, c.b), to, (1 - r.share_of_b) * c.share_of_b);
                f(at(r.b, c.a), to, r.share_of_b * (1 - c.share_of_b));
                f(at(r.b, c.b), to, r.share_of_b * c.share_of_b);
            }
}

}  // namespace

void Interpolation::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& y = call.outputs[0];
    const TensorSpec spec{x.shape, x.dtype};
    y.shape = infer(call.attrs, {&spec, 1})[0].shape;
    y.dtype = x.dtype;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0.0);
    visit(call.attrs, x.shape, y.shape, [&](std::size_t from, std::size_t to, double weight) {
        y.data[to] += weight * x.data[from];
    });
}

void Interpolation::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    visit(call.attrs, dx.shape, dy.shape, [&](std::size_t from, std::size_t to, double weight) {
        dx.data[from] += weight * dy.data[to];
    });
}

}  // namespace dlprim::interpolation
