// SPDX-License-Identifier: MIT
// HostRooms.
#include "collective/hosts/host_rooms.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/second_queue.hpp"
#include "runtime/pin_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

namespace {

constexpr std::uint64_t page_bytes = 4096, trial_bytes = 1 << 16;

std::uint64_t reduced_bytes(std::size_t processes) {
    return (HostRooms::chunk_bytes / processes / page_bytes + 2) * page_bytes;
}

std::uint64_t room_bytes(std::size_t processes) {
    return HostRooms::chunk_bytes + reduced_bytes(processes);
}

}  // namespace

Tensor HostSide::stage(std::int64_t elements, DType dtype) {
    const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * elements;
    if (!staging.defined() || staging.shape().numel() < bytes)
        staging = Tensor(down, Shape{bytes}, DType::u8);
    return Access::tensor(down, Access::buffer(staging), 0, Shape{elements}, dtype);
}

void HostSide::finish() {
    Queue &sends = Access::impl(up).queue(), &takes = Access::impl(down).queue();
    sends.flush();
    takes.flush();
    // Waiting for whole queues is faster than for events of copies (runtime/copy_between.cpp).
    sends.finish();
    takes.finish();
}

void HostSide::drain() noexcept {
    for (const Context& context : {up, down}) try {
            Access::impl(context).queue().finish();
        } catch (const std::exception&) {
            // What has failed first is thrown.
        }
}

std::uint64_t HostRooms::bytes(std::size_t processes) {
    return 2 * room_bytes(processes);
}

HostRooms::HostRooms(std::size_t rank, std::vector<SharedMemory::Part> memory,
                     SharedMemory::Part again)
    : rank_(rank), memory_(std::move(memory)), again_(std::move(again)) {}

std::byte* HostRooms::sent(std::size_t process, std::uint32_t step) const {
    return memory_[process].get() + step % 2 * room_bytes(memory_.size());
}

std::byte* HostRooms::reduced(std::size_t process, std::uint32_t step) const {
    return sent(process, step) + chunk_bytes;
}

HostSide& HostRooms::side(const Context& context, std::uint32_t step) {
    const auto found = sides_.find(context.identity());
    if (found != sides_.end()) return *found->second.side;
    for (const bool pinned : {true, false}) {
        if (pinned && !env_flag("DLPRIM_PINNED").value_or(true)) continue;
        try {
            std::unique_ptr<HostSide> side = make_side(context, pinned);
            if (!works(*side, step)) continue;
            Opened opened{context, std::move(side)};
            return *sides_.emplace(context.identity(), std::move(opened)).first->second.side;
        } catch (const Error&) {
            if (!pinned) throw;
        }
    }
    fail(ErrorKind::device, context.info().str(),
         " does not reach memory that the processes of this host share; DLPRIM_SHARED=0 exchanges "
         "by other ways");
}

std::unique_ptr<HostSide> HostRooms::make_side(const Context& context, bool pinned) const {
    auto side = std::make_unique<HostSide>(HostSide{beside(context), beside(context), {}, {}});
    if (pinned)
        for (const SharedMemory::Part& part : memory_)
            side->pinned.push_back(
                pin_memory(Access::shared_impl(side->down), part.get(), bytes(memory_.size())));
    return side;
}

bool HostRooms::works(HostSide& side, std::uint32_t step) const {
    std::vector<std::byte> sent(trial_bytes), other(trial_bytes), received(trial_bytes);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        sent[i] = static_cast<std::byte>(i * 7 + (i >> 8) + 1);
        other[i] = ~sent[i];
    }
    Queue &up = Access::impl(side.up).queue(), &down = Access::impl(side.down).queue();
    const std::shared_ptr<Buffer> from = Access::impl(side.up).allocate_cached(trial_bytes),
                                  to = Access::impl(side.down).allocate_cached(trial_bytes);
    std::byte* const room = this->sent(rank_, step);
    std::byte* const seen = again_.get() + (room - memory_[rank_].get());
    up.write({from.get(), 0}, sent.data(), trial_bytes, true);
    up.read({from.get(), 0}, room, trial_bytes, false);
    up.finish();
    if (std::memcmp(seen, sent.data(), trial_bytes) != 0) return false;
    std::memcpy(seen, other.data(), trial_bytes);
    down.write({to.get(), 0}, room, trial_bytes, false);
    down.finish();
    down.read({to.get(), 0}, received.data(), trial_bytes, true);
    return received == other;
}

}  // namespace dlprim
