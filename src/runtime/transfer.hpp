// SPDX-License-Identifier: MIT
// Copies between host and device that the host does not wait for, through host memory that the
// library owns: InputFeed towards the device, Readback from it.
#pragma once

#include "runtime/buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace dlprim {

/// Feeds one place on the device, again and again. What is written is there for all work enqueued
/// later, and for none enqueued before; the host waits only when it is several writes ahead of the
/// device. On a device with queues the bytes travel on a second one, into device memory of the
/// feed's own, while the device still works on what the first one holds; that memory is made at
/// the second write, since a place that is written once needs none.
class InputFeed {
  public:
    virtual ~InputFeed() = default;
    /// Takes the place's bytes; `data` may change as soon as this returns.
    virtual void write(const void* data) = 0;
    /// Device memory that the feed holds besides the place itself.
    virtual std::uint64_t device_bytes() const noexcept = 0;
};

/// Reads that are enqueued now and looked at later; at most `slots` at a time.
class Readback {
  public:
    static constexpr std::size_t slots = 2;

    virtual ~Readback() = default;
    /// Enqueues a read of what `from` holds when all work enqueued so far is done.
    virtual void read(const BufferRef& from) = 0;
    /// The bytes of the oldest read that has not been taken, waited for if need be; they stay until
    /// the next but one read().
    virtual const std::byte* take() = 0;
};

}  // namespace dlprim
