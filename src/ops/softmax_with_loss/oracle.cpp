// SPDX-License-Identifier: MIT
// SoftmaxWithLoss: the oracle.
#include "base/text.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/softmax_with_loss/operator.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::softmax_with_loss {

namespace {

struct Row {
    double top = 0, sum = 0;  ///< the maximum, and the sum of exp(x - top)
    std::size_t label = 0;
};

Row row_of(const HostArray& x, const HostArray& labels, std::size_t n) {
    const auto classes = static_cast<std::size_t>(x.shape[1]);
    const double* values = x.data.data() + n * classes;
    Row row;
    row.top = *std::max_element(values, values + classes);
    for (std::size_t c = 0; c < classes; ++c) row.sum += std::exp(values[c] - row.top);
    const double label = labels.data[n];
    require(label >= 0 && label < static_cast<double>(classes), "label ", label,
            " is out of range: there are ", classes, " classes");
    row.label = static_cast<std::size_t>(label);
    return row;
}

}  // namespace

void SoftmaxWithLoss::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, Shape{1}, x.dtype);
    const auto batch = static_cast<std::size_t>(x.shape[0]),
               classes = static_cast<std::size_t>(x.shape[1]);
    for (std::size_t n = 0; n < batch; ++n) {
        const Row row = row_of(x, call.inputs[1], n);
        y.data[0] += row.top + std::log(row.sum) - x.data[n * classes + row.label];
    }
    y.data[0] /= static_cast<double>(batch);
}

void SoftmaxWithLoss::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    call.input_gradients.assign(2, {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    HostArray& terms = make_array(call.terms, 0, x.shape, x.dtype);
    const auto batch = static_cast<std::size_t>(x.shape[0]),
               classes = static_cast<std::size_t>(x.shape[1]);
    const double flow = call.output_gradients[0].data[0] / static_cast<double>(batch);
    for (std::size_t n = 0; n < batch; ++n) {
        const Row row = row_of(x, call.inputs[1], n);
        for (std::size_t c = 0; c < classes; ++c) {
            const double p = std::exp(x.data[n * classes + c] - row.top) / row.sum;
            const double wanted = c == row.label ? 1 : 0;
            dx.data[n * classes + c] = flow * (p - wanted);
            terms.data[n * classes + c] = std::abs(flow) * (p + wanted);
        }
    }
}

}  // namespace dlprim::softmax_with_loss
