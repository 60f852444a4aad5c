// SPDX-License-Identifier: MIT
// StagingBuffer and the probe of its ways.
#include "collective/devices/staging_buffer.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/places.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <new>

namespace dlprim {

namespace {

/// DLPRIM_PINNED=0 rules pinned memory out, for tests and where a driver's is slow.
bool is_allowed(Way way) {
    return way != Way::pinned || env_flag("DLPRIM_PINNED").value_or(true);
}

/// Whether bytes arrive as they were sent. Any error of a driver counts as no.
bool way_works(Way way, const Context& from, const std::vector<Context>& all) {
    try {
        const StagingBuffer between(from, trial_bytes, way);
        send_trial(from, 0, between.data());
        return std::all_of(all.begin(), all.end(), [&](const Context& context) {
            return finds_trial(context, 0, between.data());
        });
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

const char* text_of(Way way) {
    return way == Way::pinned ? "pinned host memory" : "host memory";
}

StagingBuffer::StagingBuffer(const Context& owner, std::uint64_t bytes, Way way) {
    const std::uint64_t size = std::max<std::uint64_t>(bytes, 1);
    if (way == Way::pinned) {
        host_ = Access::impl(owner).make_pinned(size);
        return;
    }
    auto* const memory = new (std::nothrow) std::byte[size];
    if (memory == nullptr)
        fail(ErrorKind::out_of_memory, "host memory of ", bytes, " bytes for sums of ",
             owner.info().str(), " is not there");
    host_ = std::shared_ptr<std::byte>(memory, std::default_delete<std::byte[]>());
}

StagingBuffer StagingBuffer::part(std::uint64_t begin) const {
    if (is_reached()) return StagingBuffer(peer_, begin_ + begin);
    return StagingBuffer(std::shared_ptr<std::byte>(host_, host_.get() + begin));
}

Tensor StagingBuffer::view(const Context& context, std::size_t rank, std::uint64_t byte,
                           std::int64_t count, DType dtype) const {
    return Access::tensor(context, peer_->in(rank), begin_ + byte, Shape{count}, dtype);
}

void StagingBuffer::put(const Context& context, std::size_t rank, const Tensor& from,
                        std::uint64_t byte) const {
    Queue& queue = Access::impl(context).queue();
    if (is_reached())
        queue.copy(place_of(from), {peer_->in(rank).get(), begin_ + byte}, from.bytes());
    else
        queue.read(place_of(from), host_.get() + byte, from.bytes(), false);
}

void StagingBuffer::get(const Context& context, std::size_t rank, std::uint64_t byte,
                        const Tensor& to) const {
    Queue& queue = Access::impl(context).queue();
    if (is_reached())
        queue.copy({peer_->in(rank).get(), begin_ + byte}, place_of(to), to.bytes());
    else
        queue.write(place_of(to), host_.get() + byte, to.bytes(), false);
}

std::vector<std::byte> trial_pattern(std::size_t number) {
    std::vector<std::byte> pattern(trial_bytes);
    auto state = static_cast<std::uint32_t>(number * 7919 + 12345);
    for (std::byte& byte : pattern) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<std::byte>(state >> 24);
    }
    return pattern;
}

void send_trial(const Context& device, std::size_t number, std::byte* to) {
    ContextImpl& context = Access::impl(device);
    const std::shared_ptr<Buffer> buffer = context.allocate_cached(trial_bytes);
    const std::vector<std::byte> sent = trial_pattern(number);
    context.queue().write({buffer.get(), 0}, sent.data(), trial_bytes, true);
    context.queue().read({buffer.get(), 0}, to, trial_bytes, true);
}

bool finds_trial(const Context& device, std::size_t number, const std::byte* at) {
    ContextImpl& context = Access::impl(device);
    const std::shared_ptr<Buffer> buffer = context.allocate_cached(trial_bytes);
    std::vector<std::byte> received(trial_bytes);
    context.queue().write({buffer.get(), 0}, at, trial_bytes, false);
    context.queue().read({buffer.get(), 0}, received.data(), trial_bytes, true);
    return received == trial_pattern(number);
}

Way choose_way(const Context& from, const std::vector<Context>& all) {
    for (const Way way : {Way::pinned, Way::plain})
        if (is_allowed(way) && way_works(way, from, all)) return way;
    fail(
        ErrorKind::device, "data of ", from.info().str(),
        " do not arrive at the other devices of the run as they were sent; dlprim_doctor tests the "
        "device alone");
}

}  // namespace dlprim
