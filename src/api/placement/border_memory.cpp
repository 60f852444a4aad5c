// SPDX-License-Identifier: MIT
// BorderMemory.
#include "api/placement/border_memory.hpp"

#include "api/placement/placed_trace.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <utility>

namespace dlprim {

BorderMemory::BorderMemory(const CutNet& net, std::vector<Context> contexts)
    : contexts_(std::move(contexts)) {
    for (std::size_t i = 0; i < net.crossings.size(); ++i) {
        add_value(net.crossings[i], i);
        add_gradient(net.crossings[i], i);
    }
}

std::size_t BorderMemory::add_slot(int part, const TensorSpec& spec) {
    slots_.push_back({context(part), spec, {}});
    return slots_.size() - 1;
}

void BorderMemory::bind(int part, std::map<std::string, Tensor> GivenMemory::*list,
                        std::string name, std::size_t slot) {
    bindings_.push_back({part, list, std::move(name), slot});
}

/// The maker's tensor, or for an input of the network its first reader's, and one for each other
/// context that reads the value.
void BorderMemory::add_value(const Crossing& crossing, std::size_t index) {
    const bool fed = crossing.maker == Crossing::caller;
    const int home = fed ? crossing.readers.front() : crossing.maker;
    const std::size_t first = add_slot(home, crossing.spec);
    if (!fed) bind(home, &GivenMemory::outputs, crossing.name, first);
    std::map<const void*, std::size_t> by_context{{context(home).identity(), first}};
    for (const int reader : crossing.readers) {
        const auto [found, is_new] = by_context.emplace(context(reader).identity(), 0);
        if (is_new) {
            found->second = add_slot(reader, crossing.spec);
            moves_.push_back({index, false, home, reader, fed, first, found->second});
        }
        bind(reader, &GivenMemory::inputs, crossing.name, found->second);
    }
}

/// From the last reader to the first and then to the maker; see Crossing::differentiable.
void BorderMemory::add_gradient(const Crossing& crossing, std::size_t index) {
    const std::vector<int>& readers = crossing.differentiable;
    for (std::size_t i = readers.size(); i-- > 0;) {
        const int from = readers[i];
        const std::size_t made = add_slot(from, crossing.spec);
        bind(from, &GivenMemory::gradients, crossing.name, made);
        const int to = i > 0 ? readers[i - 1] : crossing.maker;
        if (to == Crossing::caller) continue;
        std::size_t received = made;
        if (!(context(from) == context(to))) {
            received = add_slot(to, crossing.spec);
            moves_.push_back({index, true, from, to, false, made, received});
        }
        bind(to, &GivenMemory::inputs, (i > 0 ? "@later/" : "@grad/") + crossing.name, received);
    }
}

std::uint64_t BorderMemory::bytes(const Context& context) const {
    std::uint64_t bytes = 0;
    for (const Slot& slot : slots_)
        if (slot.context == context) bytes += slot.bytes();
    return bytes;
}

std::uint64_t BorderMemory::counted_bytes(const Context& context) const {
    std::uint64_t bytes = 0;
    for (const Binding& binding : bindings_)
        if (slots_[binding.slot].context == context) bytes += slots_[binding.slot].bytes();
    return bytes;
}

std::uint64_t BorderMemory::counted_bytes(int part) const {
    std::uint64_t bytes = 0;
    for (const Binding& binding : bindings_)
        if (binding.part == part) bytes += slots_[binding.slot].bytes();
    return bytes;
}

void BorderMemory::allocate(std::size_t copies) {
    for (Slot& slot : slots_) {
        slot.tensors.clear();
        for (std::size_t copy = 0; copy < copies; ++copy) {
            slot.tensors.emplace_back(slot.context, slot.spec.shape, slot.spec.dtype);
            slot.tensors.back().fill(0);
        }
    }
    memory_.assign(copies, std::vector<GivenMemory>(contexts_.size()));
    for (std::size_t copy = 0; copy < copies; ++copy)
        for (const Binding& binding : bindings_) {
            GivenMemory& memory = memory_[copy][static_cast<std::size_t>(binding.part)];
            (memory.*binding.list)[binding.name] = slots_[binding.slot].tensors[copy];
        }
}

void BorderMemory::move_inputs(const PlacedTrace& trace) {
    for (std::size_t i = 0; i < moves_.size(); ++i)
        if (moves_[i].at_start) make(i, trace);
}

void BorderMemory::move_after(int part, bool backward, const PlacedTrace& trace) {
    for (std::size_t i = 0; i < moves_.size(); ++i)
        if (!moves_[i].at_start && moves_[i].from == part && moves_[i].gradient == backward)
            make(i, trace);
}

void BorderMemory::make(std::size_t index, const PlacedTrace& trace) {
    BorderMove& move = moves_[index];
    const Tensor& from = source_of(move, 0);
    const TracedMove traced = trace.move(index);
    TracePhases phases(traced.recorder.get(), traced.rank, TraceRow::exchange);
    if (traced.is_on()) {  // the copy would wait, too
        phases.next(TraceKind::wait, "wait for the value");
        Access::impl(from.context()).record({})->wait();
        phases.next(TraceKind::move, traced.name.c_str());
    }
    from.copy_to(slots_[move.target].tensors.front());
    ++move.times;
}

}  // namespace dlprim
