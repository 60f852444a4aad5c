// SPDX-License-Identifier: MIT
// PlacedNetImpl: what its parts take of the memory of each device, and whether they fit into it
// together.
#include "api/net_impl.hpp"
#include "api/placement/estimate.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

/// The device memory through which inputs arrive while a device computes (InputFeed), of one copy.
std::uint64_t PlacedNetImpl::feed_bytes(const Context& context, int shards) const {
    std::uint64_t bytes = 0;
    if (shards == 1 || context.traits().host) return bytes;
    for (const Crossing& crossing : cut_.crossings)
        if (crossing.maker == Crossing::caller &&
            std::any_of(crossing.readers.begin(), crossing.readers.end(), [&](int part) {
                return nets_[static_cast<std::size_t>(part)]->context() == context;
            }))
            bytes += static_cast<std::uint64_t>(crossing.spec.shape.numel()) *
                     size_of(crossing.spec.dtype);
    return bytes;
}

PlacedNet::PartMemory PlacedNetImpl::plan_part(int part, const SolverOptions* solver) const {
    const auto index = static_cast<std::size_t>(part);
    const int shards = solver == nullptr ? 1 : solver->shards;
    // A part without trained parameters may have running statistics, which shards add up.
    std::optional<SolverOptions> own;
    if (solver != nullptr && (cut_.parts[index].trains || shards > 1)) own = *solver;
    if (own) own->guard_loss = false;  // losses are judged before the update of any part
    PlacedNet::PartMemory memory;
    memory.part = index;
    memory.map = nets_[index]->plan_memory(own ? &*own : nullptr);
    memory.working_sets = sets(part, shards);
    const MemoryMap& map = memory.map;
    const std::uint64_t border = borders_.counted_bytes(part);
    std::uint64_t set = 0;  // what each working set has of its own
    for (const std::uint64_t slab : map.slabs) set += slab;
    for (const MemoryMap::Entry& entry : map.entries)
        if (entry.kind == MemoryMap::Entry::Kind::bound || entry.name == "constants" ||
            entry.name == "scalars")
            set += entry.bytes;
    const auto more = static_cast<std::uint64_t>(memory.working_sets - 1);
    memory.bytes =
        map.peak_bytes - std::min(map.peak_bytes, border) + more * (set - std::min(set, border));
    return memory;
}

std::vector<PlacedNet::DeviceMemory> PlacedNetImpl::plan_memory(const SolverOptions* solver) const {
    if (solver == nullptr && solver_) solver = &*solver_;
    const int shards = solver == nullptr ? 1 : solver->shards;
    std::vector<PlacedNet::DeviceMemory> all;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const Context& context = devices_[i].context;
        const auto same = [&](const NamedDevice& other) { return other.context == context; };
        const auto first = std::find_if(devices_.begin(), devices_.end(), same);
        if (first != devices_.begin() + static_cast<std::ptrdiff_t>(i)) continue;
        PlacedNet::DeviceMemory& device = all.emplace_back();
        device.name = devices_[i].name;
        device.limit_bytes = limit_of(device.name);
        device.border_bytes =
            copies(shards) * (borders_.bytes(context) + feed_bytes(context, shards));
        device.peak_bytes = device.border_bytes;
        for (std::size_t part = 0; part < nets_.size(); ++part) {
            if (!(nets_[part]->context() == context)) continue;
            device.parts.push_back(plan_part(static_cast<int>(part), solver));
            device.peak_bytes += device.parts.back().bytes;
        }
    }
    return all;
}

std::map<std::string, std::uint64_t> PlacedNetImpl::planned_peak_bytes(
    const SolverOptions* solver) const {
    std::map<std::string, std::uint64_t> bytes;
    for (const PlacedNet::DeviceMemory& device : plan_memory(solver))
        bytes[device.name] = device.peak_bytes;
    return bytes;
}

std::uint64_t PlacedNetImpl::planned_peak_bytes() {
    std::uint64_t all = 0;
    for (const auto& [name, bytes] : planned_peak_bytes(nullptr)) all += bytes;
    return all;
}

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

std::string PlacedNetImpl::largest_part(const PlacedNet::DeviceMemory& device) const {
    const auto largest =
        std::max_element(device.parts.begin(), device.parts.end(),
                         [](const PlacedNet::PartMemory& a, const PlacedNet::PartMemory& b) {
                             return a.bytes < b.bytes;
                         });
    const std::vector<NetDescription::Op>& all = cut_.parts[largest->part].description.operators;
    const std::string what =
        all.size() == 1 ? cat("operator '", all.front().name, "'")
                        : cat("operators '", all.front().name, "' to '", all.back().name, "'");
    return cat("its largest part, ", what, ", needs ", largest->bytes, " bytes");
}

void PlacedNetImpl::check_memory(const SolverOptions* solver) {
    for (const PlacedNet::DeviceMemory& device : plan_memory(solver)) {
        const std::uint64_t bytes = device.peak_bytes, limit = device.limit_bytes;
        if (bytes <= limit) continue;
        const auto named =
            std::find_if(devices_.begin(), devices_.end(),
                         [&](const NamedDevice& other) { return other.name == device.name; });
        const Context& context = named->context;
        const bool given = limit < context.traits().global_bytes;
        fail(ErrorKind::out_of_memory, "the parts of the network on device '", device.name,
             "' need ", bytes, " bytes (", bytes >> 20, " MiB), ", bytes - limit, " more than ",
             given ? cat("the limit of ", limit, " bytes that it was given")
                   : cat("the ", limit, " bytes of ", context.info().str()),
             "; ", largest_part(device), ". Place fewer operators on it, or take a smaller batch");
    }
    fits_ = true;
}

}  // namespace dlprim
