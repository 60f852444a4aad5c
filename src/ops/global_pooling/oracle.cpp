// SPDX-License-Identifier: MIT
// GlobalPooling: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/global_pooling/operator.hpp"
#include "ops/global_pooling/options.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::global_pooling {

void GlobalPooling::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const bool maximum = Options(call.attrs).maximum;
    HostArray& y = make_array(call.outputs, 0, Shape{x.shape[0], x.shape[1], 1, 1}, x.dtype);
    const auto plane = static_cast<std::size_t>(x.shape[2] * x.shape[3]);
    for (std::size_t c = 0; c < y.data.size(); ++c) {
        // The maximum of no elements is that of an empty reduction.
        constexpr double lowest = -std::numeric_limits<double>::infinity();
        double sum = 0, top = plane == 0 ? lowest : x.data[c * plane];
        for (std::size_t i = 0; i < plane; ++i) {
            sum += x.data[c * plane + i];
            top = std::max(top, x.data[c * plane + i]);
        }
        y.data[c] = maximum ? top : sum / static_cast<double>(plane);
    }
}

void GlobalPooling::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const bool maximum = Options(call.attrs).maximum;
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    const auto plane = static_cast<std::size_t>(x.shape[2] * x.shape[3]);
    if (plane == 0) return;
    for (std::size_t c = 0; c < dy.data.size(); ++c) {
        const double* values = x.data.data() + c * plane;
        if (maximum) {
            dx.data[c * plane + static_cast<std::size_t>(std::max_element(values, values + plane) -
                                                         values)] = dy.data[c];
        } else {
            for (std::size_t i = 0; i < plane; ++i)
                dx.data[c * plane + i] = dy.data[c] / static_cast<double>(plane);
        }
    }
}

}  // namespace dlprim::global_pooling
