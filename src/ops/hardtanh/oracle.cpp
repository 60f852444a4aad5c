// SPDX-License-Identifier: MIT
// Hardtanh: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/hardtanh/operator.hpp"

namespace dlprim::hardtanh {

void Hardtanh::oracle(OracleCall& call) const {
    const double low = call.attrs.number("min_val"), high = call.attrs.number("max_val");
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        y.data[i] = x.data[i] < low ? low : x.data[i] > high ? high : x.data[i];
}

void Hardtanh::oracle_backward(OracleBackwardCall& call) const {
    const double low = call.attrs.number("min_val"), high = call.attrs.number("max_val");
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        dx.data[i] = x.data[i] > low && x.data[i] < high ? dy.data[i] : 0.0;
}

}  // namespace dlprim::hardtanh
