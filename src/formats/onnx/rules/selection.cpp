// SPDX-License-Identifier: MIT
// Results whose sizes depend on values: they are computed on the host from values that are read
// back, and fed to what comes behind (Builder::call_host).
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// The results of a function of the host, which becomes the node's outputs.
void compute(Call& call, const std::vector<Ref>& inputs, const HostFunction& function) {
    const std::vector<Ref> results = call.on_host(inputs, function);
    for (std::size_t i = 0; i < results.size(); ++i) call.set(static_cast<int>(i), results[i]);
}

/// The positions of elements that are not 0, one row per dimension.
HostValue positions_of_nonzero(const HostTensor& input) {
    const std::vector<double> values = to_numbers(input);
    const Ints strides = input.shape.strides();
    std::vector<Ints> positions(static_cast<std::size_t>(input.shape.rank()));
    std::int64_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] == 0) continue;
        ++count;
        for (std::size_t d = 0; d < positions.size(); ++d)
            positions[d].push_back(static_cast<std::int64_t>(i) / strides[d] %
                                   input.shape[static_cast<int>(d)]);
    }
    Ints all;
    for (const Ints& one : positions) all.insert(all.end(), one.begin(), one.end());
    return host_integers({input.shape.rank(), count}, all);
}

void non_zero(Call& call) {
    compute(call, {call.in(0)}, [](const std::vector<HostValue>& inputs) {
        return std::vector{positions_of_nonzero(*inputs[0])};
    });
}

}  // namespace

std::vector<Rule> selection_rules() {
    return {
        {"NonZero", 9, non_zero},
    };
}

}  // namespace dlprim::onnx
