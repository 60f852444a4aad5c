// SPDX-License-Identifier: MIT
// Pad's oracle: finds the input element of every output element, one coordinate at a time.
#include "ops/pad/operator.hpp"

namespace dlprim::pad {

namespace {

/// Visits output elements: f(index in the input or -1, index in the output).
template <typename F>
void visit(const Shape& x, const Shape& y, const Options& options, F&& f) {
    const Ints strides = x.strides();
    for (std::int64_t to = 0; to < y.numel(); ++to) {
        std::int64_t rest = to, from = 0;
        bool inside = true;
        for (int d = y.rank(); d-- > 0;) {
            const auto at = static_cast<std::size_t>(d);
            std::int64_t c = rest % y[d] - options.before[at];
            rest /= y[d];
            if (c < 0 || c >= x[d]) {
                switch (options.mode) {
                    case PaddedCopy::Mode::constant:
                        inside = false;
                        break;
                    case PaddedCopy::Mode::reflect:
                        c = c < 0 ? -c : 2 * (x[d] - 1) - c;
                        break;
                    case PaddedCopy::Mode::replicate:
                        c = c < 0 ? 0 : x[d] - 1;
                        break;
                    case PaddedCopy::Mode::circular:
                        c = (c + x[d]) % x[d];
                        break;
                }
            }
            from += c * strides[at];
        }
        f(inside ? from : -1, static_cast<std::size_t>(to));
    }
}

}  // namespace

void Pad::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& y = call.outputs[0];
    const Options options(call.attrs, x.shape);
    y.shape = options.output_shape(x.shape);
    y.dtype = x.dtype;
    y.data.resize(static_cast<std::size_t>(y.shape.numel()));
    visit(x.shape, y.shape, options, [&](std::int64_t from, std::size_t to) {
        y.data[to] = from < 0 ? options.value : x.data[static_cast<std::size_t>(from)];
    });
}

void Pad::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    visit(dx.shape, dy.shape, Options(call.attrs, dx.shape),
          [&](std::int64_t from, std::size_t to) {
              if (from >= 0) dx.data[static_cast<std::size_t>(from)] += dy.data[to];
          });
}

}  // namespace dlprim::pad
