// SPDX-License-Identifier: MIT
// PlacedNetImpl: automatic placement. Devices are chosen by estimates, and the parts that come of
// it are planned to see what memory they really take.
#include "api/placement/choose_devices.hpp"
#include "api/placement/estimate.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace dlprim {

namespace {

constexpr int most_attempts = 12;

/// What no device has an engine for begins on the first one, from which it goes to the host.
void place_stuck(PlacementProblem& problem) {
    for (PlacementProblem::Operator& op : problem.operators) {
        bool any = false;
        for (std::size_t d = 0; d < problem.devices.size(); ++d)
            any = any || op.seconds[d] < PlacementProblem::never || op.bytes[d] > problem.limits[d];
        if (!any) op.seconds.front() = 0;
    }
}

}  // namespace

void PlacedNetImpl::note_unused_devices() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const auto here = [&](const CutPart& part) { return part.device == i; };
        if (std::none_of(cut_.parts.begin(), cut_.parts.end(), here))
            notes_.push_back(
                cat("device '", devices_[i].name, "' is bound, and no operator runs on it"));
    }
}

void PlacedNetImpl::place_automatically(const NetDescription& as_read) {
    find_devices();  // throws for names that are not bound
    require(placement_.link_seconds >= 0 && placement_.link_gbytes_per_s > 0,
            "PlacementOptions: link_seconds must be at least 0, and link_gbytes_per_s above 0");
    PlacementEstimate estimate = estimate_placement(devices_, as_read, base_, options_, placement_);
    PlacementProblem& problem = estimate.problem;
    place_stuck(problem);
    const std::size_t notes = notes_.size();
    for (int attempt = 1;; ++attempt) {
        PlacementChoice choice;
        try {
            choice = choose_devices(problem);
        } catch (const Error& error) {
            // Its limits are what earlier attempts have left of those that were given. What the
            // last one takes can be compared with these.
            if (attempt > 1 && error.kind() == ErrorKind::out_of_memory)
                check_memory(placement_.solver ? &*placement_.solver : nullptr);
            throw;
        }
        notes_.resize(notes);
        const std::vector<std::uint64_t> over = try_choice(estimate, choice.devices);
        const bool fits =
            std::all_of(over.begin(), over.end(), [](auto bytes) { return bytes == 0; });
        if (!fits && attempt < most_attempts) {
            for (std::size_t d = 0; d < over.size(); ++d)
                problem.limits[d] -= std::min(problem.limits[d], over[d]);
            continue;
        }
        if (!fits) check_memory(placement_.solver ? &*placement_.solver : nullptr);
        note_choice(estimate, choice.devices);
        return;
    }
}

std::vector<std::uint64_t> PlacedNetImpl::try_choice(const PlacementEstimate& estimate,
                                                     const std::vector<std::size_t>& choice) {
    std::map<std::string, std::size_t> device_of;
    for (std::size_t i = 0; i < choice.size(); ++i)
        for (const std::string& name : estimate.operators[i]) {
            const auto given = estimate.given.find(name);
            device_of[name] =
                given != estimate.given.end() ? given->second : estimate.devices[choice[i]];
        }
    place(std::move(device_of));
    const SolverOptions* const solver = placement_.solver ? &*placement_.solver : nullptr;
    const std::map<std::string, std::uint64_t> peaks = planned_peak_bytes(solver);
    std::vector<std::uint64_t> over;
    for (const std::string& name : estimate.problem.devices) {
        const auto peak = peaks.find(name);
        const std::uint64_t bytes = peak == peaks.end() ? 0 : peak->second;
        over.push_back(bytes - std::min(bytes, limit_of(name)));
    }
    return over;
}

void PlacedNetImpl::note_choice(const PlacementEstimate& estimate,
                                const std::vector<std::size_t>& choice) {
    const SolverOptions* const solver = placement_.solver ? &*placement_.solver : nullptr;
    std::map<std::string, double> seconds;  // by an operator of each part
    for (std::size_t i = 0; i < choice.size(); ++i)
        seconds[estimate.operators[i].front()] = estimate.problem.operators[i].seconds[choice[i]];
    for (std::size_t i = 0; i < cut_.parts.size(); ++i) {
        const std::vector<NetDescription::Op>& all = cut_.parts[i].description.operators;
        PartEstimate part{0, plan_part(static_cast<int>(i), solver).bytes};
        for (const NetDescription::Op& op : all)
            if (const auto found = seconds.find(op.name); found != seconds.end())
                part.seconds += found->second;
        notes_.push_back(cat("part ", i + 1, " of ", cut_.parts.size(), " runs on device '",
                             devices_[cut_.parts[i].device].name, "': operators '",
                             all.front().name, "' to '", all.back().name, "', about ",
                             fixed(part.seconds * 1e3, 3), " ms and ",
                             fixed(static_cast<double>(part.bytes) / (1 << 20), 3), " MiB"));
        estimates_.push_back(part);
    }
}

}  // namespace dlprim
