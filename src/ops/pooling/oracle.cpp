// SPDX-License-Identifier: MIT
// The oracles of pooling: plain loops over the positions of every window, in double. Ties are
// PyTorch's: the first maximum, or the last NaN if there is one.
#include "graph/oracle_loops.hpp"
#include "ops/pooling/operator.hpp"
#include "ops/pooling/windows.hpp"

#include <cmath>
#include <limits>

namespace dlprim::pooling {

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

/// A window: the elements of the plane of x that it has, and the divisor of their mean.
struct Window {
    std::vector<std::size_t> elements;
    double divisor = 0;
    std::int64_t top = 0, left = 0;  ///< its first row and column, which may be in the padding

    /// The element that is the maximum. -1: the window has none.
    std::int64_t arg_max(const double* plane) const {
        std::int64_t at = elements.empty() ? -1 : static_cast<std::int64_t>(elements[0]);
        double best = -std::numeric_limits<double>::infinity();
        for (const std::size_t i : elements)
            if (plane[i] > best || std::isnan(plane[i])) {
                best = plane[i];
                at = static_cast<std::int64_t>(i);
            }
        return at;
    }
};

/// Calls visit(plane of x, element of y, window) for each element of y.
template <typename Visit>
void each_window(const Windows& w, Visit&& visit) {
    const auto& [d, h, v] = w.axes;
    std::size_t next = 0;
    for (std::int64_t plane = 0; plane < w.planes; ++plane)
        for (std::int64_t z = 0; z < d.out; ++z)
            for (std::int64_t y = 0; y < h.out; ++y)
                for (std::int64_t x = 0; x < v.out; ++x) {
                    const Span a = span_of(d, w.adaptive, z), b = span_of(h, w.adaptive, y),
                               c = span_of(v, w.adaptive, x);
                    Window window;
                    window.top = y * h.stride - h.pad;
                    window.left = x * v.stride - v.pad;
                    for (const std::int64_t i : a.inside)
                        for (const std::int64_t j : b.inside)
                            for (const std::int64_t k : c.inside)
                                window.elements.push_back(
                                    static_cast<std::size_t>((i * h.in + j) * v.in + k));
                    window.divisor = static_cast<double>(
                        w.count_include_pad
                            ? static_cast<std::size_t>(a.padded * b.padded * c.padded)
                            : window.elements.size());
                    if (w.divisor > 0) window.divisor = static_cast<double>(w.divisor);
                    visit(static_cast<std::size_t>(plane * w.in_elements()), next++, window);
                }
}

/// Adds the gradient of an element of y to the elements of its window, of which `at` is the
/// maximum.
void spread(const Windows& w, const Window& window, std::int64_t at, double g, double* dx) {
    if (w.average)
        for (const std::size_t i : window.elements) dx[i] += g / window.divisor;
    else if (at >= 0)
        dx[at] += g;
}

}  // namespace

void Pooling::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Windows w(call.attrs, x.shape);
    HostArray& y = make_array(call.outputs, 0, w.output, x.dtype);
    HostArray index{w.output, y.data, w.index_type(w.positions)};
    each_window(w, [&](std::size_t plane, std::size_t to, const Window& window) {
        const double* values = x.data.data() + plane;
        if (w.average) {
            double sum = 0;
            for (const std::size_t i : window.elements) sum += values[i];
            y.data[to] = sum / window.divisor;
            return;
        }
        const std::int64_t at = window.arg_max(values), width = w.w().in;
        y.data[to] = at < 0 ? -std::numeric_limits<double>::infinity() : values[at];
        index.data[to] = static_cast<double>(w.positions == Positions::window
                                                 ? (at / width - window.top) * w.w().kernel +
                                                       at % width - window.left
                                                 : at);
    });
    if (w.positions != Positions::none) call.outputs.at(1) = index;
}

void Pooling::oracle_backward(OracleBackwardCall& call) const {
    const HostArray &x = call.inputs[0], &dy = call.output_gradients[0];
    const Windows w(call.attrs, x.shape);
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    each_window(w, [&](std::size_t plane, std::size_t from, const Window& window) {
        spread(w, window, window.arg_max(x.data.data() + plane), dy.data[from],
               dx.data.data() + plane);
    });
}

void PoolingBackward::oracle(OracleCall& call) const {
    const HostArray& dy = call.inputs[0];
    const Shape x = input_shape(call.attrs, dy.shape);
    const Windows w(call.attrs, x);
    HostArray& dx = make_array(call.outputs, 0, x, dy.dtype);
    each_window(w, [&](std::size_t plane, std::size_t from, const Window& window) {
        auto at = w.average ? -1 : static_cast<std::int64_t>(call.inputs[1].data[from]);
        if (w.positions == Positions::window)
            at = (window.top + at / w.w().kernel) * w.w().in + window.left + at % w.w().kernel;
        spread(w, window, at, dy.data[from], dx.data.data() + plane);
    });
}

}  // namespace dlprim::pooling
