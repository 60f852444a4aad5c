// SPDX-License-Identifier: MIT
// Softmax: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/softmax/operator.hpp"
#include "ops/softmax/options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::softmax {

void Softmax::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    const AxisView view(x.shape, options.axis);
    for (std::size_t o = 0; o < view.outer; ++o) {
        for (std::size_t i = 0; i < view.inner; ++i) {
            double top = -std::numeric_limits<double>::infinity(), sum = 0;
            for (std::size_t k = 0; k < view.size; ++k)
                top = std::max(top, x.data[view.at(o, k, i)]);
            for (std::size_t k = 0; k < view.size; ++k)
                sum += std::exp(x.data[view.at(o, k, i)] - top);
            for (std::size_t k = 0; k < view.size; ++k) {
                const double shifted = x.data[view.at(o, k, i)] - top;
                y.data[view.at(o, k, i)] =
                    options.log ? shifted - std::log(sum) : std::exp(shifted) / sum;
            }
        }
    }
}

void oracle_from_output(const Options& options, const HostArray& y, const HostArray& dy,
                        HostArray& dx, HostArray* terms) {
    const AxisView view(y.shape, options.axis);
    for (std::size_t o = 0; o < view.outer; ++o) {
        for (std::size_t i = 0; i < view.inner; ++i) {
            double sum = 0, size = 0;
            for (std::size_t k = 0; k < view.size; ++k) {
                const std::size_t at = view.at(o, k, i);
                const double term = options.log ? dy.data[at] : dy.data[at] * y.data[at];
                sum += term;
                size += std::abs(term);
            }
            for (std::size_t k = 0; k < view.size; ++k) {
                const std::size_t at = view.at(o, k, i);
                dx.data[at] = options.log ? dy.data[at] - std::exp(y.data[at]) * sum
                                          : y.data[at] * (dy.data[at] - sum);
                if (terms != nullptr)
                    terms->data[at] = options.log
                                          ? std::abs(dy.data[at]) + std::exp(y.data[at]) * size
                                          : y.data[at] * (std::abs(dy.data[at]) + size);
            }
        }
    }
}

void Softmax::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    HostArray& terms = make_array(call.terms, 0, x.shape, x.dtype);
    oracle_from_output(Options(call.attrs, x.shape), call.outputs[0], call.output_gradients[0], dx,
                       &terms);
}

}  // namespace dlprim::softmax
