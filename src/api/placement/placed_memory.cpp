// SPDX-License-Identifier: MIT
// PlacedNetImpl: whether the parts of each device fit into its memory together.
#include "api/net_impl.hpp"
#include "api/placement/estimate.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"

#include <algorithm>

namespace dlprim {

void PlacedNetImpl::check_limits() const {
    std::vector<std::string> names;
    for (const NamedDevice& device : devices_) names.push_back(device.name);
    for (const auto& [name, bytes] : placement_.memory_limits) {
        require(std::find(names.begin(), names.end(), name) != names.end(),
                "a memory limit is given for device '", name, "', a name that nobody has bound",
                did_you_mean(name, names));
        require(bytes > 0, "the memory limit of device '", name, "' must be above 0");
    }
}

std::uint64_t PlacedNetImpl::limit_of(const std::string& device) const {
    const auto found = std::find_if(devices_.begin(), devices_.end(),
                                    [&](const NamedDevice& each) { return each.name == device; });
    return memory_limit_of(devices_, static_cast<std::size_t>(found - devices_.begin()),
                           placement_);
}

std::string PlacedNetImpl::largest_part(const Context& context, const SolverOptions* solver) const {
    std::size_t largest = 0;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < nets_.size(); ++i) {
        if (!(nets_[i].context() == context)) continue;
        const std::uint64_t bytes = planned_bytes(static_cast<int>(i), solver);
        if (bytes > most) largest = i;
        most = std::max(most, bytes);
    }
    const std::vector<NetDescription::Op>& all = cut_.parts[largest].description.operators;
    const std::string what =
        all.size() == 1 ? cat("operator '", all.front().name, "'")
                        : cat("operators '", all.front().name, "' to '", all.back().name, "'");
    return cat("its largest part, ", what, ", needs ", most, " bytes");
}

void PlacedNetImpl::check_memory(const SolverOptions* solver) {
    for (const auto& [name, bytes] : planned_peak_bytes(solver)) {
        const std::uint64_t limit = limit_of(name);
        if (bytes <= limit) continue;
        const auto same = [&name = name](const NamedDevice& device) { return device.name == name; };
        const Context& context = std::find_if(devices_.begin(), devices_.end(), same)->context;
        const bool given = limit < context.traits().global_bytes;
        fail(ErrorKind::out_of_memory, "the parts of the network on device '", name, "' need ",
             bytes, " bytes (", bytes >> 20, " MiB), ", bytes - limit, " more than ",
             given ? cat("the limit of ", limit, " bytes that it was given")
                   : cat("the ", limit, " bytes of ", context.info().str()),
             "; ", largest_part(context, solver),
             ". Place fewer operators on it, or take a smaller batch");
    }
    fits_ = true;
}

}  // namespace dlprim
