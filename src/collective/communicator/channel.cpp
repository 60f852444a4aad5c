// SPDX-License-Identifier: MIT
// Channel, and the queues that copy to its buffers and from them.
#include "collective/communicator/channel.hpp"

#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t step_bytes(std::size_t ranks) {
    return Channel::chunk_bytes + (Channel::chunk_bytes / ranks / page_bytes + 2) * page_bytes;
}

}  // namespace

CopyQueues::CopyQueues(const Context& context) : up(beside(context)), down(beside(context)) {}

void CopyQueues::finish() {
    Queue &sends = Access::impl(up).queue(), &takes = Access::impl(down).queue();
    sends.flush();
    takes.flush();
    // Waiting for whole queues is faster than for events of copies (runtime/copy_between.cpp).
    sends.finish();
    takes.finish();
}

void CopyQueues::drain() noexcept {
    for (const Context& context : {up, down}) try {
            Access::impl(context).queue().finish();
        } catch (const std::exception&) {
            // What has failed first is thrown.
        }
}

Channel::Channel(std::size_t rank, std::vector<std::shared_ptr<std::byte>> buffers)
    : rank_(rank), buffers_(std::move(buffers)) {}

std::uint64_t Channel::buffer_bytes(std::size_t ranks) {
    return 2 * step_bytes(ranks);
}

std::byte* Channel::chunk(std::size_t rank, std::uint32_t step) const {
    return buffers_[rank].get() + step % 2 * step_bytes(size());
}

std::byte* Channel::result(std::size_t rank, std::uint32_t step) const {
    return chunk(rank, step) + chunk_bytes;
}

}  // namespace dlprim
