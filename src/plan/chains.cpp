// SPDX-License-Identifier: MIT
// find_chains.
#include "plan/chains.hpp"

#include "engine/kernel_function.hpp"

namespace dlprim {

bool may_have_chains(const Traits& device) {
    return device.wide_vectors && !device.host && device.compute_units >= 2;
}

std::vector<ChainRange> find_chains(const std::vector<Step>& steps) {
    std::vector<ChainRange> chains;
    for (std::size_t first = 0; first < steps.size();) {
        double bound = 0;
        std::size_t last = first;
        for (; last < steps.size() && are_functions(steps[last].launch->calls()); ++last)
            bound += steps[last].bound_seconds;
        if (last - first > 1 && bound < 1e-3 * static_cast<double>(last - first))
            chains.push_back({first, last, nullptr});
        first = last + 1;
    }
    return chains;
}

}  // namespace dlprim
