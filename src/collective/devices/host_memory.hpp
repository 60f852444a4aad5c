// SPDX-License-Identifier: MIT
// HostMemory: host memory by which data travel between devices, each of which has a context of its
// own. There are two ways, and a probe rules each in by moving data and comparing what arrives:
// memory that the sender's driver has pinned, which serves other drivers too, and plain memory.
#pragma once

#include <dlprim/context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace dlprim {

enum class Way : std::uint8_t { pinned, plain };
const char* text_of(Way way);

class HostMemory {
  public:
    HostMemory() = default;
    /// Throws Error(out_of_memory).
    HostMemory(const Context& owner, std::uint64_t bytes, Way way);
    /// Memory that something else has made.
    explicit HostMemory(std::shared_ptr<std::byte> data) : data_(std::move(data)) {}
    std::byte* data() const noexcept { return data_.get(); }

  private:
    std::shared_ptr<std::byte> data_;
};

/// Whether bytes that `from` writes to such memory of its own arrive at each of `all`, and are the
/// same. Waits. Any error of a driver counts as no.
bool way_works(Way way, const Context& from, const std::vector<Context>& all);
/// The first way that works. Throws Error(device) if there is none.
Way choose_way(const Context& from, const std::vector<Context>& all);

}  // namespace dlprim
