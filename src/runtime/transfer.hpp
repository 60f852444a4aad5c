// SPDX-License-Identifier: MIT
// Asynchronous copies between host and device through host memory that the library owns: InputFeed
// copies to the device, and Readback copies from it.
#pragma once

#include "runtime/buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace dlprim {

/// Writes to one place on the device repeatedly. All work that is enqueued after a write sees its
/// data, and no earlier work does. The host waits only when it is several writes ahead of the
/// device. On a device with queues, the data travel on a second queue into separate device memory,
/// while the device still works on the previous data. That memory is allocated on the second write,
/// since a place that is written once does not need it.
class InputFeed {
  public:
    virtual ~InputFeed() = default;
    /// Copies the data; `data` may be changed as soon as this returns.
    virtual void write(const void* data) = 0;
    /// Device memory that the feed allocated for itself.
    virtual std::uint64_t device_bytes() const noexcept = 0;
};

/// Reads that are enqueued now and used later, at most `slots` at a time.
class Readback {
  public:
    static constexpr std::size_t slots = 2;

    virtual ~Readback() = default;
    /// Enqueues a read of what `from` holds after all work enqueued so far.
    virtual void read(const BufferRef& from) = 0;
    /// Returns the data of the oldest read that has not been taken, and waits for it if necessary.
    /// The data stay valid until the read() after the next one.
    /// Throws Error(invalid_argument) if a kernel in front of the read has refused something
    /// (runtime/refusals.hpp); the read counts as taken.
    virtual const std::byte* take() = 0;
};

}  // namespace dlprim
