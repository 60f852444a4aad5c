// SPDX-License-Identifier: MIT
// The oracles of LayerNorm, RMSNorm, GroupNorm and their gradients.
#include "graph/oracle_loops.hpp"
#include "ops/norm/rows.hpp"

#include <cmath>

namespace dlprim::norm {

namespace {

/// One row of x and its statistics.
struct Row {
    const double* x;
    std::size_t columns, number;
    double mean = 0, rstd = 0;

    Row(const HostArray& array, const Rows& rows, std::size_t r)
        : columns(static_cast<std::size_t>(rows.matrix[1])), number(r) {
        x = array.data.data() + r * columns;
    }
    void measure(const Rows& rows) {
        double squares = 0;
        for (std::size_t k = 0; k < columns && rows.centered; ++k) mean += x[k];
        mean /= static_cast<double>(columns);
        for (std::size_t k = 0; k < columns; ++k) squares += (x[k] - mean) * (x[k] - mean);
        rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + rows.eps);
    }
    double normal(std::size_t k) const { return (x[k] - mean) * rstd; }
};

std::size_t count_of(const Rows& rows) {
    return static_cast<std::size_t>(rows.matrix[0]);
}

/// The gradients of one row. Those of weight and bias are added to, where they are wanted. `terms`
/// gets the sizes of what the gradients of x and the weight are made of. In rows of two, nearly all
/// of dx cancels, and in rows of one nearly all of the weight's may.
void add_gradients(const Rows& rows, const Row& row, const HostArray& dy, const HostArray* weight,
                   HostArray& dx, HostArray* dweight, HostArray* dbias,
                   std::vector<HostArray>* terms) {
    const std::size_t start = row.number * row.columns;
    const auto flow = [&](std::size_t k) {
        return dy.data[start + k] * (weight ? weight->data[rows.weight_of(row.number, k)] : 1);
    };
    double sum = 0, with_x = 0;
    for (std::size_t k = 0; k < row.columns; ++k) {
        const std::size_t at = rows.weight_of(row.number, k);
        sum += flow(k);
        with_x += flow(k) * row.normal(k);
        const double part = dy.data[start + k] * row.normal(k);
        if (dweight) dweight->data[at] += part;
        if (dweight && terms) (*terms)[1].data[at] += std::abs(part);
        if (dbias) dbias->data[at] += dy.data[start + k];
    }
    const auto count = static_cast<double>(row.columns);
    for (std::size_t k = 0; k < row.columns; ++k) {
        const double mean = rows.centered ? sum / count : 0, along = row.normal(k) * with_x / count;
        dx.data[start + k] = (flow(k) - mean - along) * row.rstd;
        if (terms)
            (*terms)[0].data[start + k] =
                (std::abs(flow(k)) + std::abs(mean) + std::abs(along)) * row.rstd;
    }
}

}  // namespace

void oracle(const Rows& rows, OracleCall& call) {
    const HostArray& x = call.inputs[0];
    const bool more = call.attrs.boolean("return_statistics");
    const std::size_t deviation = rows.statistics();  // the last output
    call.outputs.resize(more ? 1 + deviation : 1);
    const DType type = x.dtype == DType::f64 ? DType::f64 : DType::f32;
    for (std::size_t i = 1; i < call.outputs.size(); ++i)
        make_array(call.outputs, i, rows.statistic, type);
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t r = 0; r < count_of(rows); ++r) {
        Row row(x, rows, r);
        row.measure(rows);
        if (more && rows.centered) call.outputs[1].data[r] = row.mean;
        if (more) call.outputs[deviation].data[r] = row.rstd;
        for (std::size_t k = 0; k < row.columns; ++k) {
            double value = row.normal(k);
            if (rows.parameters > 0) value *= call.inputs[1].data[rows.weight_of(r, k)];
            if (rows.parameters > 1) value += call.inputs[2].data[rows.weight_of(r, k)];
            y.data[r * row.columns + k] = value;
        }
    }
}

void oracle_backward(const Rows& rows, OracleBackwardCall& call) {
    const HostArray& x = call.inputs[0];
    call.input_gradients.assign(call.inputs.size(), {});
    make_array(call.input_gradients, 0, x.shape, x.dtype);
    make_array(call.terms, 0, x.shape, x.dtype);
    if (rows.parameters > 0) make_array(call.terms, 1, rows.weight, x.dtype);
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
        make_array(call.input_gradients, i, rows.weight, x.dtype);
    const auto given = [&](auto& arrays, std::size_t i) {
        return i <= rows.parameters ? &arrays[i] : nullptr;
    };
    for (std::size_t r = 0; r < count_of(rows); ++r) {
        Row row(x, rows, r);
        row.measure(rows);
        add_gradients(rows, row, call.output_gradients[0], given(call.inputs, 1),
                      call.input_gradients[0], given(call.input_gradients, 1),
                      given(call.input_gradients, 2), &call.terms);
    }
}

void gradient_oracle(const Rows& rows, OracleCall& call) {
    const HostArray& x = call.inputs[1];
    const DType dtype = call.inputs.back().dtype;
    const std::size_t weight = 2 + rows.statistics();
    call.outputs.resize(rows.centered ? 3 : 2);
    make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 1; i < call.outputs.size(); ++i)
        make_array(call.outputs, i, rows.weight, dtype);
    for (std::size_t r = 0; r < count_of(rows); ++r) {
        Row row(x, rows, r);
        if (rows.centered) row.mean = call.inputs[2].data[r];
        row.rstd = call.inputs[weight - 1].data[r];
        add_gradients(rows, row, call.inputs[0],
                      call.inputs.size() > weight ? &call.inputs[weight] : nullptr, call.outputs[0],
                      &call.outputs[1], rows.centered ? &call.outputs[2] : nullptr, nullptr);
    }
}

}  // namespace dlprim::norm
