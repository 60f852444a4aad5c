// SPDX-License-Identifier: MIT
// Shelf: memory of a rank for one tensor, which that rank writes and the others read: host memory,
// or memory that all devices of the exchange reach.
#pragma once

#include "collective/devices/host_memory.hpp"
#include "collective/devices/peer_memory.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace dlprim {

class Shelf {
  public:
    Shelf() = default;
    explicit Shelf(HostMemory memory) : host_(std::move(memory)) {}
    /// A part of the memory, from a byte on.
    Shelf(std::shared_ptr<PeerMemory> memory, std::uint64_t begin)
        : peer_(std::move(memory)), begin_(begin) {}

    /// Whether kernels of all ranks reach it.
    bool is_reached() const { return peer_ != nullptr; }
    /// Where it lies on the host. Only of host memory.
    std::byte* data() const noexcept { return host_.data(); }
    /// Elements from a byte on, as a vector of rank's `context`. Only where kernels reach it.
    Tensor view(const Context& context, std::size_t rank, std::uint64_t byte, std::int64_t count,
                DType dtype) const;
    /// Enqueues on rank's `context` that a tensor is copied to where a byte begins.
    void put(const Context& context, std::size_t rank, const Tensor& from,
             std::uint64_t byte = 0) const;
    /// Enqueues on rank's `context` that a tensor is filled with what lies from a byte on.
    void get(const Context& context, std::size_t rank, std::uint64_t byte, const Tensor& to) const;

  private:
    HostMemory host_;
    std::shared_ptr<PeerMemory> peer_;
    std::uint64_t begin_ = 0;
};

}  // namespace dlprim
