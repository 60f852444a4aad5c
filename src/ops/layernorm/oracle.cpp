// SPDX-License-Identifier: MIT
// LayerNorm: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/layernorm/operator.hpp"
#include "ops/layernorm/options.hpp"

#include <cmath>

namespace dlprim::layernorm {

namespace {

struct Row {
    double mean = 0, rstd = 0;
};

Row row_of(const double* x, std::size_t columns, double eps) {
    Row row;
    double squares = 0;
    for (std::size_t k = 0; k < columns; ++k) row.mean += x[k];
    row.mean /= static_cast<double>(columns);
    for (std::size_t k = 0; k < columns; ++k) squares += (x[k] - row.mean) * (x[k] - row.mean);
    row.rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + eps);
    return row;
}

}  // namespace

void LayerNorm::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape);
    const bool more = call.attrs.boolean("return_statistics");
    call.outputs.resize(more ? 3 : 1);
    const DType type = x.dtype == DType::f64 ? DType::f64 : DType::f32;
    if (more) make_array(call.outputs, 1, options.statistic, type);
    if (more) make_array(call.outputs, 2, options.statistic, type);
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    const auto rows = static_cast<std::size_t>(options.matrix[0]),
               columns = static_cast<std::size_t>(options.matrix[1]);
    for (std::size_t r = 0; r < rows; ++r) {
        const Row row = row_of(x.data.data() + r * columns, columns, options.eps);
        if (more) call.outputs[1].data[r] = row.mean;
        if (more) call.outputs[2].data[r] = row.rstd;
        for (std::size_t k = 0; k < columns; ++k) {
            double value = (x.data[r * columns + k] - row.mean) * row.rstd;
            if (options.parameters() > 0) value *= call.inputs[1].data[k];
            if (options.parameters() > 1) value += call.inputs[2].data[k];
            y.data[r * columns + k] = value;
        }
    }
}

void LayerNorm::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    const Options options(call.attrs, x.shape);
    call.input_gradients.assign(call.inputs.size(), {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
        make_array(call.input_gradients, i, options.normalized, x.dtype);
    const auto rows = static_cast<std::size_t>(options.matrix[0]),
               columns = static_cast<std::size_t>(options.matrix[1]);
    for (std::size_t r = 0; r < rows; ++r) {
        const Row row = row_of(x.data.data() + r * columns, columns, options.eps);
        auto normal = [&](std::size_t k) {
            return (x.data[r * columns + k] - row.mean) * row.rstd;
        };
        auto flow = [&](std::size_t k) {
            return dy.data[r * columns + k] *
                   (options.parameters() > 0 ? call.inputs[1].data[k] : 1);
        };
        double sum = 0, with_x = 0;
        for (std::size_t k = 0; k < columns; ++k) {
            sum += flow(k);
            with_x += flow(k) * normal(k);
            if (options.parameters() > 0)
                call.input_gradients[1].data[k] += dy.data[r * columns + k] * normal(k);
            if (options.parameters() > 1)
                call.input_gradients[2].data[k] += dy.data[r * columns + k];
        }
        const auto count = static_cast<double>(columns);
        for (std::size_t k = 0; k < columns; ++k)
            dx.data[r * columns + k] =
                (flow(k) - sum / count - normal(k) * with_x / count) * row.rstd;
    }
}

}  // namespace dlprim::layernorm
