// SPDX-License-Identifier: MIT
// avoid_overlaps: compares the memory of results with that of operands.
#include "exec/eager_overlap.hpp"

#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dlprim {

namespace {

/// Bytes [begin, end) of some memory. Memory on the host is counted from address 0, since two
/// buffers may wrap the same.
struct Extent {
    const void* handle;
    std::uint64_t begin, end;

    explicit Extent(const EagerOperand& operand)
        : handle(operand.buffer->handle()),
          begin(operand.byte_offset +
                (operand.buffer->host() == nullptr
                     ? operand.buffer->offset()
                     : reinterpret_cast<std::uintptr_t>(operand.buffer->host()))),
          end(begin + operand.bytes) {}
    bool operator==(const Extent&) const = default;
    bool overlaps(const Extent& other) const {
        return handle == other.handle && begin < other.end && other.begin < end;
    }
};

bool overlaps_operand(const EagerEntry& entry, std::span<const EagerOperand> operands,
                      std::size_t result, const Extent& written) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Extent read(operands[i]);
        if (!written.overlaps(read)) continue;
        const bool in_place =
            written == read && std::find(entry.in_place.begin(), entry.in_place.end(),
                                         std::pair(result, i)) != entry.in_place.end();
        if (!in_place) return true;
    }
    return false;
}

}  // namespace

std::vector<Detour> avoid_overlaps(const Context& context, const EagerCall& call,
                                   const EagerEntry& entry, std::span<const EagerOperand> operands,
                                   std::vector<EagerOperand>& places) {
    std::vector<Detour> detours;
    std::vector<std::pair<std::size_t, Extent>> written;
    for (std::size_t i = 0; i < std::min(places.size(), call.how.out.size()); ++i) {
        if (!call.how.out[i].defined() || !places[i].buffer) continue;
        const Extent extent(places[i]);
        for (const auto& [other, its] : written)
            if (extent.overlaps(its))
                fail(ErrorKind::invalid_argument, call.type, ": out tensors ", other, " and ", i,
                     " overlap, but each result needs memory of its own");
        written.emplace_back(i, extent);
        if (!overlaps_operand(entry, operands, i, extent)) continue;
        const std::uint64_t bytes = places[i].bytes;
        const EagerOperand elsewhere{Access::impl(context).allocate_cached(bytes), 0, nullptr,
                                     bytes};
        detours.push_back({elsewhere, places[i]});
        places[i] = elsewhere;
    }
    return detours;
}

void finish_detours(const Context& context, const std::vector<Detour>& detours) {
    for (const auto& [made, wanted] : detours)
        Access::impl(context).queue().copy({made.buffer.get(), made.byte_offset},
                                           {wanted.buffer.get(), wanted.byte_offset}, made.bytes);
}

}  // namespace dlprim
