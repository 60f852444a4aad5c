// SPDX-License-Identifier: MIT
// PlacedNet: the public interface of PlacedNetImpl.
#include <dlprim/placed_net.hpp>

#include "api/placement/placed_net_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

PlacedNet::PlacedNet(std::shared_ptr<PlacedNetImpl> impl) : Net(std::move(impl)) {}

PlacedNet PlacedNet::from_json_file(const std::vector<NamedDevice>& devices,
                                    const std::string& path, const NetOptions& options,
                                    const PlacementOptions& placement) {
    return PlacedNet(std::make_shared<PlacedNetImpl>(devices, parse_net_json(read_file(path), path),
                                                     options, placement));
}

PlacedNet PlacedNet::from_json(const std::vector<NamedDevice>& devices, std::string_view text,
                               const NetOptions& options, const PlacementOptions& placement) {
    return PlacedNet(std::make_shared<PlacedNetImpl>(devices, parse_net_json(text, "network"),
                                                     options, placement));
}

PlacedNetImpl& PlacedNet::impl() const {
    return static_cast<PlacedNetImpl&>(core_of(*this));
}

std::vector<PlacedNet::Part> PlacedNet::parts() const {
    std::vector<Part> parts;
    const std::vector<PartEstimate>& estimates = impl().estimates();
    for (const CutPart& cut : impl().cut().parts) {
        Part part;
        part.device = impl().devices()[cut.device].name;
        if (!estimates.empty()) {
            part.estimated_ms = estimates.at(parts.size()).seconds * 1e3;
            part.estimated_bytes = estimates.at(parts.size()).bytes;
        }
        for (const auto& op : cut.description.operators) part.operators.push_back(op.name);
        parts.push_back(std::move(part));
    }
    return parts;
}

std::vector<std::string> PlacedNet::device_names() const {
    std::vector<std::string> names;
    for (const NamedDevice& device : impl().devices()) names.push_back(device.name);
    return names;
}

const Context& PlacedNet::device(const std::string& name) const {
    const std::vector<NamedDevice>& devices = impl().devices();
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const NamedDevice& each) { return each.name == name; });
    if (found == devices.end())
        fail(ErrorKind::not_found, "the network has no device '", name, "'",
             did_you_mean(name, device_names()));
    return found->context;
}

std::vector<PlacedNet::Move> PlacedNet::moves() const {
    std::vector<Move> all;
    for (const BorderMove& move : impl().borders().moves()) {
        const Crossing& crossing = impl().cut().crossings[move.crossing];
        const auto elements = static_cast<std::uint64_t>(crossing.spec.shape.numel());
        all.push_back({crossing.name, move.gradient, impl().device_name(move.from),
                       impl().device_name(move.to), elements * size_of(crossing.spec.dtype),
                       move.times});
    }
    return all;
}

std::map<std::string, std::uint64_t> PlacedNet::planned_peak_bytes(const SolverOptions* solver) {
    return impl().planned_peak_bytes(solver);
}

std::vector<PlacedNet::DeviceMemory> PlacedNet::plan_memory(const SolverOptions* solver) {
    return impl().plan_memory(solver);
}

}  // namespace dlprim
