// SPDX-License-Identifier: MIT
// StagingBuffer: memory of a rank, which that rank writes and the others read. Kernels of all ranks
// reach it (peer_memory.hpp), or it is host memory, by which data travel between devices with
// contexts of their own. Of host memory there are two ways, and a probe rules each in by moving
// data and comparing what arrives: memory that the writer's driver has pinned, which serves other
// drivers too, and plain memory.
#pragma once

#include "collective/devices/peer_memory.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace dlprim {

enum class Way : std::uint8_t { pinned, plain };
const char* text_of(Way way);

class StagingBuffer {
  public:
    StagingBuffer() = default;
    /// Host memory. Throws Error(out_of_memory).
    StagingBuffer(const Context& owner, std::uint64_t bytes, Way way);
    /// Host memory that something else has made.
    explicit StagingBuffer(std::shared_ptr<std::byte> host) : host_(std::move(host)) {}
    /// A part of memory that kernels of all ranks reach, from a byte on.
    StagingBuffer(std::shared_ptr<PeerMemory> memory, std::uint64_t begin)
        : peer_(std::move(memory)), begin_(begin) {}

    /// What begins at a byte of it, and keeps all of it.
    StagingBuffer part(std::uint64_t begin) const;
    /// Whether kernels of all ranks reach it.
    bool is_reached() const { return peer_ != nullptr; }
    /// Where it lies on the host. Only of host memory.
    std::byte* data() const noexcept { return host_.get(); }
    /// Elements from a byte on, as a vector of rank's `context`. Only where kernels reach it.
    Tensor view(const Context& context, std::size_t rank, std::uint64_t byte, std::int64_t count,
                DType dtype) const;
    /// Enqueues on rank's `context` that a tensor is copied to where a byte begins.
    void put(const Context& context, std::size_t rank, const Tensor& from,
             std::uint64_t byte = 0) const;
    /// Enqueues on rank's `context` that a tensor is filled with what lies from a byte on.
    void get(const Context& context, std::size_t rank, std::uint64_t byte, const Tensor& to) const;

  private:
    std::shared_ptr<std::byte> host_;
    std::shared_ptr<PeerMemory> peer_;
    std::uint64_t begin_ = 0;
};

/// The bytes with those up to the next multiple of 256, so that what follows begins where devices
/// read vectors.
constexpr std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/// Bytes that a trial moves, which differ from number to number.
constexpr std::uint64_t trial_bytes = 1 << 16;
std::vector<std::byte> trial_pattern(std::size_t number);
/// Lets a device write such bytes to memory of the host. Waits.
void send_trial(const Context& device, std::size_t number, std::byte* to);
/// Whether a device finds them there. Waits.
bool finds_trial(const Context& device, std::size_t number, const std::byte* at);

/// The first way by which bytes that `from` writes arrive at each of `all`, and are the same.
/// Waits. Throws Error(device) if there is none.
Way choose_way(const Context& from, const std::vector<Context>& all);

}  // namespace dlprim
