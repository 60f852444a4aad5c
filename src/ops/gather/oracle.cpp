// SPDX-License-Identifier: MIT
// Gather's oracles: for each element of the result, the element of data that it is read from.
#include "ops/gather/operator.hpp"

#include "graph/indexed_oracle.hpp"

namespace dlprim::gather {

void oracle(OracleCall& call) {
    const HostArray& x = call.inputs[0];
    const IndexedDefinition definition(call.attrs, x.shape, call.inputs[1]);
    HostArray& y = make_array(call.outputs, 0, definition.parts(), x.dtype);
    definition.each([&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    call.input_gradients[1] = {call.inputs[1].shape, {}, call.inputs[1].dtype};
    IndexedDefinition(call.attrs, dx.shape, call.inputs[1])
        .each([&](std::size_t from, std::size_t to) { dx.data[from] += dy.data[to]; });
}

}  // namespace dlprim::gather
