// SPDX-License-Identifier: MIT
// GroupNorm: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/groupnorm/operator.hpp"
#include "ops/groupnorm/options.hpp"

#include <cmath>

namespace dlprim::groupnorm {

namespace {

/// A group of one sample: its offset and its statistics.
struct Group {
    std::size_t start, columns, plane, first_channel;
    double mean = 0, rstd = 0;

    Group(const HostArray& x, const Options& options, std::size_t row)
        : columns(static_cast<std::size_t>(options.matrix[1])),
          plane(static_cast<std::size_t>(x.shape.product(2, x.shape.rank()))) {
        start = row * columns;
        const auto groups = static_cast<std::size_t>(options.groups);
        first_channel = row % groups * (static_cast<std::size_t>(options.channels) / groups);
        for (std::size_t k = 0; k < columns; ++k) mean += x.data[start + k];
        mean /= static_cast<double>(columns);
        double squares = 0;
        for (std::size_t k = 0; k < columns; ++k)
            squares += (x.data[start + k] - mean) * (x.data[start + k] - mean);
        rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + options.eps);
    }
    std::size_t channel(std::size_t k) const { return first_channel + k / plane; }
};

}  // namespace

void GroupNorm::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    const bool more = call.attrs.boolean("return_statistics");
    call.outputs.resize(more ? 3 : 1);
    const DType type = x.dtype == DType::f64 ? DType::f64 : DType::f32;
    if (more) make_array(call.outputs, 1, options.statistic, type);
    if (more) make_array(call.outputs, 2, options.statistic, type);
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t row = 0; row < static_cast<std::size_t>(options.matrix[0]); ++row) {
        const Group group(x, options, row);
        if (more) call.outputs[1].data[row] = group.mean;
        if (more) call.outputs[2].data[row] = group.rstd;
        for (std::size_t k = 0; k < group.columns; ++k) {
            double value = (x.data[group.start + k] - group.mean) * group.rstd;
            if (options.affine)
                value = value * call.inputs[1].data[group.channel(k)] +
                        call.inputs[2].data[group.channel(k)];
            y.data[group.start + k] = value;
        }
    }
}

void GroupNorm::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const Options options(call.attrs, x.shape);
    call.input_gradients.assign(call.inputs.size(), {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
        make_array(call.input_gradients, i, Shape{options.channels}, x.dtype);
    for (std::size_t row = 0; row < static_cast<std::size_t>(options.matrix[0]); ++row) {
        const Group group(x, options, row);
        double sum = 0, with_x = 0;
        for (std::size_t k = 0; k < group.columns; ++k) {
            const double normal = (x.data[group.start + k] - group.mean) * group.rstd;
            double flow = dy.data[group.start + k];
            if (options.affine) {
                call.input_gradients[1].data[group.channel(k)] += flow * normal;
                call.input_gradients[2].data[group.channel(k)] += flow;
                flow *= call.inputs[1].data[group.channel(k)];
            }
            sum += flow;
            with_x += flow * normal;
        }
        const auto count = static_cast<double>(group.columns);
        for (std::size_t k = 0; k < group.columns; ++k) {
            const double normal = (x.data[group.start + k] - group.mean) * group.rstd;
            const double flow = dy.data[group.start + k] *
                                (options.affine ? call.inputs[1].data[group.channel(k)] : 1);
            dx.data[group.start + k] = (flow - sum / count - normal * with_x / count) * group.rstd;
        }
    }
}

}  // namespace dlprim::groupnorm
