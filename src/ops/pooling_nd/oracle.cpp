// SPDX-License-Identifier: MIT
// The oracles of PoolingND and AdaptivePooling: plain loops over the positions of every window, in
// double. Ties are PyTorch's: the first maximum, or the last NaN if there is one.
#include "ops/pooling_nd/operators.hpp"
#include "ops/pooling_nd/windows.hpp"

#include <cmath>
#include <limits>

namespace dlprim::pooling_nd {

namespace {

/// The positions along one dimension that are inside the input, and how many the window has if the
/// padding counts.
struct Span {
    std::vector<std::int64_t> inside;
    std::int64_t padded = 0;
};

Span span_of(const Axis& axis, bool adaptive, std::int64_t at) {
    Span span;
    if (adaptive) {
        const double share = static_cast<double>(axis.in);
        const auto from = static_cast<std::int64_t>(
            std::floor(static_cast<double>(at) * share / static_cast<double>(axis.out)));
        const auto to = static_cast<std::int64_t>(
            std::ceil(static_cast<double>(at + 1) * share / static_cast<double>(axis.out)));
        for (std::int64_t i = from; i < to; ++i) span.inside.push_back(i);
        return span;
    }
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
        const std::int64_t i = at * axis.stride - axis.pad + tap * axis.dilate;
        if (i < axis.in + axis.pad_end) ++span.padded;
        if (i >= 0 && i < axis.in) span.inside.push_back(i);
    }
    return span;
}

/// Calls visit(output, elements of its window in the plane, divisor) for each output of a plane.
template <typename Visit>
void each_window(const Windows& w, Visit&& visit) {
    const auto& [d, h, v] = w.axes;
    std::int64_t next = 0;
    for (std::int64_t z = 0; z < d.out; ++z)
        for (std::int64_t y = 0; y < h.out; ++y)
            for (std::int64_t x = 0; x < v.out; ++x) {
                const Span a = span_of(d, w.adaptive, z), b = span_of(h, w.adaptive, y),
                           c = span_of(v, w.adaptive, x);
                std::vector<std::size_t> elements;
                for (const std::int64_t i : a.inside)
                    for (const std::int64_t j : b.inside)
                        for (const std::int64_t k : c.inside)
                            elements.push_back(static_cast<std::size_t>((i * h.in + j) * v.in + k));
                double share = static_cast<double>(elements.size());
                if (w.count_include_pad)
                    share = static_cast<double>(a.padded * b.padded * c.padded);
                if (w.divisor > 0) share = static_cast<double>(w.divisor);
                visit(static_cast<std::size_t>(next++), elements, share);
            }
}

/// The element of the window that is its maximum.
std::size_t arg_max(const std::vector<std::size_t>& elements, const double* plane) {
    std::size_t at = elements.at(0);
    double best = -std::numeric_limits<double>::infinity();
    for (const std::size_t i : elements)
        if (plane[i] > best || std::isnan(plane[i])) {
            best = plane[i];
            at = i;
        }
    return at;
}

}  // namespace

void oracle(OracleCall& call, bool adaptive) {
    const HostArray& x = call.inputs[0];
    const Windows w(call.attrs, x.shape, adaptive);
    HostArray y{w.output, std::vector<double>(static_cast<std::size_t>(w.output.numel())), x.dtype};
    HostArray index{w.output, y.data, index_type};
    const auto in = static_cast<std::size_t>(w.in_elements()),
               out = static_cast<std::size_t>(w.out_elements());
    for (std::size_t p = 0; p < static_cast<std::size_t>(w.planes); ++p) {
        const double* plane = x.data.data() + p * in;
        each_window(w, [&](std::size_t at, const auto& elements, double share) {
            const std::size_t to = p * out + at;
            if (w.average) {
                double sum = 0;
                for (const std::size_t i : elements) sum += plane[i];
                y.data[to] = sum / share;
            } else {
                const std::size_t best = arg_max(elements, plane);
                y.data[to] = plane[best];
                index.data[to] = static_cast<double>(best);
            }
        });
    }
    call.outputs[0] = y;
    if (w.indices) call.outputs.at(1) = index;
}

void oracle_backward(OracleBackwardCall& call, bool adaptive) {
    const HostArray &x = call.inputs[0], &dy = call.output_gradients[0];
    const Windows w(call.attrs, x.shape, adaptive);
    HostArray& dx = call.input_gradients[0];
    dx = x;
    dx.data.assign(x.data.size(), 0.0);
    const auto in = static_cast<std::size_t>(w.in_elements()),
               out = static_cast<std::size_t>(w.out_elements());
    for (std::size_t p = 0; p < static_cast<std::size_t>(w.planes); ++p)
        each_window(w, [&](std::size_t at, const auto& elements, double share) {
            const double g = dy.data[p * out + at];
            if (w.average)
                for (const std::size_t i : elements) dx.data[p * in + i] += g / share;
            else
                dx.data[p * in + arg_max(elements, x.data.data() + p * in)] += g;
        });
}

}  // namespace dlprim::pooling_nd
