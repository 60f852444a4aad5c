// SPDX-License-Identifier: MIT
// Scatter's oracles: for each element of the updates in order, the element of data that it changes.
#include "ops/scatter/oracle.hpp"

#include "graph/indexed_oracle.hpp"

#include <cmath>
#include <limits>

namespace dlprim::scatter {

namespace {

double combined(const std::string& how, double a, double b) {
    if (how == "none") return b;
    if (how == "add") return a + b;
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
    IndexedDefinition(call.attrs, y.shape, call.inputs[call.inputs.size() - 2])
        .each([&](std::size_t to, std::size_t from) {
            y.data[to] = combined(how, y.data[to], updates.data[from]);
        });
}

void oracle_backward(OracleBackwardCall& call) {
    const std::size_t updates = call.inputs.size() - 1;
    const HostArray& dy = call.output_gradients[0];
    const bool adds = call.attrs.text("reduction") == "add";
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
        if (!adds) left.data[to] = 0;
    });
    if (updates == 2) call.input_gradients[0] = left;
}

}  // namespace dlprim::scatter
