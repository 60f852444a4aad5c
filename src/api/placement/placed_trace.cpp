// SPDX-License-Identifier: MIT
// PlacedTrace.
#include "api/placement/placed_trace.hpp"

#include "base/text.hpp"

#include <map>

namespace dlprim {

namespace {

std::string text_of(const CutPart& part, std::size_t index, const NamedDevice& device) {
    const std::vector<NetDescription::Op>& all = part.description.operators;
    return cat("part ", index + 1, ", '", all.front().name, "' to '", all.back().name,
               "', on device '", device.name, "': ", device.context.info().str());
}

}  // namespace

PlacedTrace::PlacedTrace(std::shared_ptr<StepTrace> recorder,
                         const std::vector<NamedDevice>& devices, const CutNet& net,
                         const BorderMemory& borders)
    : recorder_(std::move(recorder)) {
    for (std::size_t i = 0; i < net.parts.size(); ++i) {
        const NamedDevice& device = devices[net.parts[i].device];
        contexts_.push_back(device.context);
        names_.push_back(text_of(net.parts[i], i, device));
    }
    std::map<std::pair<const void*, const void*>, std::size_t> ways;
    const auto at = [](int part) { return static_cast<std::size_t>(part); };
    for (const BorderMove& move : borders.moves()) {
        const Context &from = contexts_[at(move.from)], &to = contexts_[at(move.to)];
        const auto [way, is_new] =
            ways.try_emplace({from.identity(), to.identity()}, names_.size());
        if (is_new)
            names_.push_back(cat("moves from device '",
                                 devices[net.parts[at(move.from)].device].name, "' to device '",
                                 devices[net.parts[at(move.to)].device].name, "'"));
        moves_.emplace_back(way->second, cat(move.gradient ? "move gradient of " : "move ",
                                             net.crossings[move.crossing].name));
    }
}

void PlacedTrace::mark(int part, TraceKind kind, const char* name) const {
    if (!recorder_) return;
    const auto rank = static_cast<std::size_t>(part);
    recorder_->mark(rank, contexts_[rank], kind, name);
}

TracedMove PlacedTrace::move(std::size_t index) const {
    if (!recorder_ || !recorder_->is_on()) return {};
    return {recorder_, moves_[index].first, moves_[index].second};
}

}  // namespace dlprim
