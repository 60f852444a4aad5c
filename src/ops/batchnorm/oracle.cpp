// SPDX-License-Identifier: MIT
// BatchNorm: the oracle.
#include "base/text.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/batchnorm/operator.hpp"

#include <cmath>

namespace dlprim::batchnorm {

namespace {

struct Statistics {
    std::vector<double> mean, variance;  ///< the statistics that the forward pass uses
    std::size_t count = 0;               ///< elements per channel
};

Statistics statistics(const std::vector<HostArray>& inputs, bool batch) {
    const HostArray& x = inputs[0];
    const AxisView view(x.shape, 1);
    Statistics result{inputs[1].data, inputs[2].data, view.outer * view.inner};
    if (!batch) return result;
    require(result.count > 1, "training needs more than one value per channel");
    for (std::size_t c = 0; c < view.size; ++c) {
        double sum = 0, squares = 0;
        for (std::size_t o = 0; o < view.outer; ++o)
            for (std::size_t i = 0; i < view.inner; ++i) sum += x.data[view.at(o, c, i)];
        const double mean = sum / static_cast<double>(result.count);
        for (std::size_t o = 0; o < view.outer; ++o) {
            for (std::size_t i = 0; i < view.inner; ++i) {
                const double d = x.data[view.at(o, c, i)] - mean;
                squares += d * d;
            }
        }
        result.mean[c] = mean;
        result.variance[c] = squares / static_cast<double>(result.count);
    }
    return result;
}

}  // namespace

void BatchNorm::oracle(OracleCall& call) const {
    const auto options = read<ops::BatchNorm>(call.attrs);
    const HostArray& x = call.inputs[0];
    const bool batch = call.training && !options.use_global_stats;
    const Statistics by = statistics(call.inputs, batch);
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    const AxisView view(x.shape, 1);
    for (std::size_t c = 0; c < view.size; ++c) {
        const double rstd = 1 / std::sqrt(by.variance[c] + options.eps);
        const double scale = options.affine ? call.inputs[3].data[c] : 1;
        const double offset = options.affine ? call.inputs[4].data[c] : 0;
        for (std::size_t o = 0; o < view.outer; ++o)
            for (std::size_t i = 0; i < view.inner; ++i)
                y.data[view.at(o, c, i)] =
                    (x.data[view.at(o, c, i)] - by.mean[c]) * rstd * scale + offset;
    }
    if (options.return_statistics) {
        HostArray& means = make_array(call.outputs, 1, Shape{x.shape[1]}, statistic_type(x.dtype));
        HostArray& rstds = make_array(call.outputs, 2, means.shape, means.dtype);
        means.data = by.mean;
        for (std::size_t c = 0; c < view.size; ++c)
            rstds.data[c] = 1 / std::sqrt(by.variance[c] + options.eps);
    }
    if (!batch) return;
    HostArray mean = call.inputs[1], variance = call.inputs[2];
    const double unbiased = static_cast<double>(by.count) / static_cast<double>(by.count - 1);
    for (std::size_t c = 0; c < view.size; ++c) {
        mean.data[c] = (1 - options.momentum) * mean.data[c] + options.momentum * by.mean[c];
        variance.data[c] = (1 - options.momentum) * variance.data[c] +
                           options.momentum * by.variance[c] * unbiased;
    }
    call.updated = {{1, mean}, {2, variance}};
}

void BatchNorm::oracle_backward(OracleBackwardCall& call) const {
    const auto options = read<ops::BatchNorm>(call.attrs);
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const bool batch = call.training && !options.use_global_stats;
    const Statistics by = statistics(call.inputs, batch);
    call.input_gradients.assign(call.inputs.size(), {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    // Of few values per channel, nearly all of the gradient cancels (of two, all but for eps).
    HostArray& terms = make_array(call.terms, 0, x.shape, x.dtype);
    if (options.affine) {
        make_array(call.input_gradients, 3, call.inputs[3].shape, x.dtype);
        make_array(call.input_gradients, 4, call.inputs[4].shape, x.dtype);
    }
    const AxisView view(x.shape, 1);
    for (std::size_t c = 0; c < view.size; ++c) {
        const double rstd = 1 / std::sqrt(by.variance[c] + options.eps);
        const double scale = options.affine ? call.inputs[3].data[c] : 1;
        double sum = 0, with_x = 0;
        for (std::size_t o = 0; o < view.outer; ++o) {
            for (std::size_t i = 0; i < view.inner; ++i) {
                const std::size_t at = view.at(o, c, i);
                sum += dy.data[at];
                with_x += dy.data[at] * (x.data[at] - by.mean[c]) * rstd;
            }
        }
        if (options.affine) {
            call.input_gradients[3].data[c] = with_x;
            call.input_gradients[4].data[c] = sum;
        }
        const auto count = static_cast<double>(by.count);
        for (std::size_t o = 0; o < view.outer; ++o) {
            for (std::size_t i = 0; i < view.inner; ++i) {
                const std::size_t at = view.at(o, c, i);
                const double normal = (x.data[at] - by.mean[c]) * rstd;
                const double shared = batch ? sum / count : 0;
                const double along = batch ? normal * with_x / count : 0;
                dx.data[at] = (dy.data[at] - shared - along) * rstd * scale;
                terms.data[at] = (std::abs(dy.data[at]) + std::abs(shared) + std::abs(along)) *
                                 rstd * std::abs(scale);
            }
        }
    }
}

}  // namespace dlprim::batchnorm
