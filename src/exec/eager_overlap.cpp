// SPDX-License-Identifier: MIT
// avoid_overlaps: compares the memory of results with that of operands.
#include "exec/eager_overlap.hpp"

#include "base/text.hpp"
#include "exec/eager_views.hpp"
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

/// Whether both are the same elements in the same order.
bool same_elements(const EagerOperand& a, const EagerOperand& b) {
    if (!(Extent(a) == Extent(b)) || (a.view == nullptr) != (b.view == nullptr)) return false;
    return a.view == nullptr ||
           (a.view->shape() == b.view->shape() && a.view->strides() == b.view->strides());
}

bool overlaps_operand(const EagerEntry& entry, std::span<const EagerOperand> operands,
                      std::span<const Extent> extents, std::size_t result,
                      const EagerOperand& place) {
    const Extent extent(place);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!extent.overlaps(extents[i])) continue;
        const bool in_place = same_elements(place, operands[i]) &&
                              std::find(entry.in_place.begin(), entry.in_place.end(),
                                        std::pair(result, i)) != entry.in_place.end();
        if (!in_place) return true;
    }
    return false;
}

/// Memory in which the plan makes a result that is wanted at `place`.
Detour detour_to(const Context& context, const EagerOperand& place, const Layout& planned) {
    Detour detour{{nullptr, 0, nullptr, place.bytes}, place};
    if (place.view != nullptr) {
        const Shape& shape = place.view->shape();
        detour.made_strides = logical_strides(shape, planned);
        if (!planned.is_strided()) detour.made.bytes = place.view->bytes();
    }
    detour.made.buffer = Access::impl(context).allocate_cached(detour.made.bytes);
    return detour;
}

}  // namespace

std::vector<Detour> avoid_overlaps(const Context& context, const EagerCall& call,
                                   const EagerEntry& entry, std::span<const EagerOperand> operands,
                                   std::vector<EagerOperand>& places) {
    std::vector<Detour> detours;
    std::vector<std::pair<std::size_t, Extent>> written;
    // A function may have hundreds of operands and results, each of which is compared with all.
    const std::vector<Extent> read(operands.begin(), operands.end());
    for (std::size_t i = 0; i < std::min(places.size(), call.how.out.size()); ++i) {
        if (!call.how.out[i].defined() || !places[i].buffer) continue;
        const Layout& planned = entry.results[i].layout;
        bool direct = places[i].view == nullptr || layout_of(places[i]) == planned;
        const Extent extent(places[i]);
        for (const auto& [other, its] : written) {
            if (!extent.overlaps(its)) continue;
            // Elements of strided views may alternate. If they do not, the later result counts.
            if (call.how.out[i].contiguous() && call.how.out[other].contiguous())
                fail(ErrorKind::invalid_argument, call.type, ": out tensors ", other, " and ", i,
                     " overlap, but each result needs memory of its own");
            direct = false;
        }
        written.emplace_back(i, extent);
        if (direct && !overlaps_operand(entry, operands, read, i, places[i])) continue;
        detours.push_back(detour_to(context, places[i], planned));
        places[i] = detours.back().made;
    }
    return detours;
}

void finish_detours(const Context& context, CopyLaunches& copies,
                    const std::vector<Detour>& detours) {
    ContextImpl& device = Access::impl(context);
    for (const auto& [made, wanted, made_strides] : detours) {
        if (wanted.view == nullptr)
            device.queue().copy({made.buffer.get(), made.byte_offset},
                                {wanted.buffer.get(), wanted.byte_offset}, made.bytes);
        else
            copies.copy(device, wanted.view->shape(), size_of(wanted.view->dtype()),
                        {made.buffer, made.byte_offset, made_strides},
                        {wanted.buffer, wanted.byte_offset, wanted.view->strides()});
    }
}

}  // namespace dlprim
