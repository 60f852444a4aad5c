// SPDX-License-Identifier: MIT
// find_chains.
#include "plan/chains.hpp"

#include "engine/kernel_function.hpp"

#include <map>

namespace dlprim {

bool may_have_chains(const Traits& device) {
    return device.wide_vectors && !device.host && device.compute_units >= 2;
}

std::vector<ChainRange> find_chains(const std::vector<Step>& steps) {
    std::map<const Launch*, bool> known;  // steps of the same work share a launch
    const auto fits = [&](const Step& step) {
        const auto [at, is_new] = known.try_emplace(step.launch.get(), false);
        if (is_new) at->second = are_functions(step.launch->calls());
        return at->second;
    };
    std::vector<ChainRange> chains;
    for (std::size_t first = 0; first < steps.size();) {
        double bound = 0;
        std::size_t last = first;
        for (; last < steps.size() && fits(steps[last]); ++last) bound += steps[last].bound_seconds;
        if (last - first > 1 && bound < 1e-3 * static_cast<double>(last - first))
            chains.push_back({first, last, nullptr});
        first = last + 1;
    }
    return chains;
}

}  // namespace dlprim
