// SPDX-License-Identifier: MIT
// TransportChannel.
#include "collective/communicator/transport_channel.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

namespace dlprim {

namespace {

/// Memory that takes pages of the system only where it is used.
std::vector<std::shared_ptr<std::byte>> make_buffers(std::size_t ranks) {
    std::vector<std::shared_ptr<std::byte>> buffers;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto* const memory = new (std::nothrow) std::byte[Channel::buffer_bytes(ranks)];
        if (memory == nullptr)
            fail(ErrorKind::out_of_memory, "host memory of ", Channel::buffer_bytes(ranks),
                 " bytes for what processes exchange is not there");
        buffers.emplace_back(memory, std::default_delete<std::byte[]>());
    }
    return buffers;
}

std::vector<std::uint64_t> sizes_of(const std::vector<Pieces>& messages) {
    std::vector<std::uint64_t> sizes;
    for (const Pieces& list : messages) {
        sizes.push_back(0);
        for (const MessagePiece& piece : list) sizes.back() += piece.bytes;
    }
    return sizes;
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

}  // namespace

TransportChannel::TransportChannel(std::size_t rank, std::size_t size, Carry carry)
    : Channel(rank, make_buffers(size)),
      carry_(std::move(carry)),
      sends_(size),
      receives_(size),
      notes_(size) {}

void TransportChannel::begin(Deadline) {
    if (left_) dlprim::fail(ErrorKind::device, "this process left the group meanwhile");
}

void TransportChannel::end(Deadline deadline) {
    const Messages sends = std::exchange(sends_, Messages(size()));
    const Messages receives = std::exchange(receives_, Messages(size()));
    if (std::exchange(moves_, false) && size() > 1) {
        const std::vector<std::uint64_t> to = sizes_of(sends), from = sizes_of(receives);
        std::vector<std::byte> own(sum_of(to)), all(sum_of(from));
        std::byte* at = own.data();
        for (const Pieces& list : sends)
            for (const MessagePiece& message : list) {
                std::memcpy(at, message.data, message.bytes);
                at += message.bytes;
            }
        carry_(own.data(), to, all.data(), from, deadline);
        at = all.data();
        for (const Pieces& list : receives)
            for (const MessagePiece& message : list) {
                std::memcpy(message.data, at, message.bytes);
                at += message.bytes;
            }
    }
    ++step_;
}

void TransportChannel::write_note(const std::string& note) {
    notes_[rank_] = note.substr(0, note_bytes);
    std::byte* const own = chunk(rank_, step_);
    std::memset(own, 0, note_bytes);
    std::memcpy(own, notes_[rank_].data(), notes_[rank_].size());
    for (std::size_t q = 0; q < size(); ++q) {
        if (q == rank_) continue;
        send(q, own, note_bytes);
        receive(q, chunk(q, step_), note_bytes);
    }
}

std::string TransportChannel::note(std::size_t rank) const {
    if (rank == rank_) return notes_[rank_];
    const char* const text = reinterpret_cast<const char*>(chunk(rank, step_ + 1));
    return {text, ::strnlen(text, note_bytes)};
}

void TransportChannel::send(std::size_t to, std::byte* data, std::uint64_t bytes) {
    sends_[to].push_back({data, bytes});
    moves_ = true;
}

void TransportChannel::receive(std::size_t from, std::byte* data, std::uint64_t bytes) {
    receives_[from].push_back({data, bytes});
    moves_ = true;
}

std::unique_ptr<CopyQueues> TransportChannel::open(const Context& context) {
    return std::make_unique<CopyQueues>(context);
}

}  // namespace dlprim
