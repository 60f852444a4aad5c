// SPDX-License-Identifier: MIT
// Scatter's oracles: for each element of the updates in order, the element of data that it changes.
#include "ops/scatter/operator.hpp"

#include "graph/indexed_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace dlprim::scatter {

namespace {

double combined(const std::string& how, double a, double b) {
    if (how == "none") return b;
    if (how == "add" || how == "mean") return a + b;
    if (how == "mul") return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return how == "max" ? std::fmax(a, b) : std::fmin(a, b);
}

}  // namespace

void oracle(OracleCall& call) {
    const bool has_data = call.inputs.size() == 3;
    const HostArray& updates = call.inputs.back();
    HostArray& y = call.outputs[0];
    y = has_data ? call.inputs[0] : HostArray{Shape(call.attrs.ints("shape")), {}, updates.dtype};
    y.data.resize(static_cast<std::size_t>(y.shape.numel()), 0);
    const std::string& how = call.attrs.text("reduction");
    const double own = call.attrs.boolean("include_self") ? 1 : 0;
    std::vector<double> terms(y.data.size(), own);
    IndexedDefinition(call.attrs, y.shape, call.inputs[call.inputs.size() - 2])
        .each([&](std::size_t to, std::size_t from) {
            const double update = updates.data[from];
            y.data[to] = terms[to] == 0 ? update : combined(how, y.data[to], update);
            ++terms[to];
        });
    for (std::size_t to = 0; how == "mean" && to < terms.size(); ++to) {
        y.data[to] /= std::fmax(terms[to], 1);
        if (!is_float(y.dtype)) y.data[to] = std::floor(y.data[to]);
    }
}

namespace {

/// Of mul, max and min: for each element of the result, what it is made of.
void reduced_backward(OracleBackwardCall& call) {
    const std::size_t updates = call.inputs.size() - 1;
    const bool has_data = updates == 2;
    const HostArray &dy = call.output_gradients[0], &y = call.outputs[0];
    for (std::size_t i = 0; i <= updates; ++i)
        call.input_gradients[i] = {call.inputs[i].shape, {}, call.inputs[i].dtype};
    std::vector<double>& to_updates = call.input_gradients[updates].data;
    to_updates.assign(call.inputs[updates].data.size(), 0);
    std::vector<double> to_data(dy.data.size(), 0);
    std::vector<std::vector<std::size_t>> made_of(dy.data.size());
    IndexedDefinition(call.attrs, dy.shape, call.inputs[updates - 1])
        .each([&](std::size_t to, std::size_t from) { made_of[to].push_back(from); });
    const bool multiplies = call.attrs.text("reduction") == "mul";
    for (std::size_t to = 0; to < made_of.size(); ++to) {
        std::vector<double> values{has_data ? call.inputs[0].data[to] : 0};
        std::vector<double*> gradients{&to_data[to]};
        for (const std::size_t from : made_of[to]) {
            values.push_back(call.inputs[updates].data[from]);
            gradients.push_back(&to_updates[from]);
        }
        const auto equal = std::count(values.begin(), values.end(), y.data[to]);
        for (std::size_t i = 0; i < values.size(); ++i) {
            double share = multiplies                ? 1
                           : values[i] == y.data[to] ? 1.0 / static_cast<double>(equal)
                                                     : 0;
            for (std::size_t j = 0; multiplies && j < values.size(); ++j)
                if (j != i) share *= values[j];
            *gradients[i] = dy.data[to] * share;
        }
    }
    if (has_data) call.input_gradients[0].data = to_data;
}

}  // namespace

void oracle_backward(OracleBackwardCall& call) {
    const std::string& how = call.attrs.text("reduction");
    if (how == "mul" || how == "max" || how == "min") return reduced_backward(call);
    const std::size_t updates = call.inputs.size() - 1;
    const HostArray& dy = call.output_gradients[0];
    const bool adds = how != "none", keeps = call.attrs.boolean("include_self");
    call.input_gradients[updates - 1] = {
        call.inputs[updates - 1].shape, {}, call.inputs[updates - 1].dtype};
    HostArray& from_updates = call.input_gradients[updates];
    from_updates = call.inputs[updates];
    from_updates.data.assign(from_updates.data.size(), 0);
    HostArray left = dy;  // of data
    left.dtype = call.inputs[updates].dtype;
    const IndexedDefinition definition(call.attrs, dy.shape, call.inputs[updates - 1]);
    constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> last(dy.data.size(), nobody);
    definition.each([&](std::size_t to, std::size_t from) {
        if (!adds && last[to] != nobody) from_updates.data[last[to]] = 0;
        from_updates.data[from] = dy.data[to];
        last[to] = from;
        if (!adds || !keeps) left.data[to] = 0;
    });
    if (how == "mean") {
        std::vector<double> terms(dy.data.size(), keeps ? 1 : 0);
        definition.each([&](std::size_t to, std::size_t) { ++terms[to]; });
        definition.each(
            [&](std::size_t to, std::size_t from) { from_updates.data[from] /= terms[to]; });
        for (std::size_t to = 0; to < terms.size(); ++to) left.data[to] /= std::fmax(terms[to], 1);
    }
    if (updates == 2) call.input_gradients[0] = left;
}

}  // namespace dlprim::scatter
