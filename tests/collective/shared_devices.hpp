// SPDX-License-Identifier: MIT
// Devices of a test that share host memory: the host, and OpenCL devices that are processors.
#pragma once

#include "collective/devices/peer_memory.hpp"

#include <dlprim/context.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace dlprim::testing {

void add_tensors(const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                 double factor);

/// Memory of the host as a buffer of a context, which keeps `owner`.
std::shared_ptr<Buffer> buffer_on(ContextImpl& context, void* memory, std::uint64_t bytes,
                                  std::shared_ptr<void> owner);

/// Imports what fake_cuda.cpp exports.
std::shared_ptr<Buffer> import_file(ContextImpl& context, int descriptor, std::uint64_t bytes);

/// A source whose memory is the host's, and which fails in the way that a test asks for.
struct FakePeers : PeerSource {
    std::vector<Context> contexts;
    /// What a context has that opens memory of an owner: the memory itself, or other memory.
    /// Nothing: the memory itself.
    std::function<std::byte*(std::size_t owner, std::size_t context, std::byte* memory,
                             std::uint64_t bytes)>
        reroute;
    std::function<void()> before_make;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< bytes at once
    std::atomic<int> made = 0;                                       // by the threads of all ranks

    explicit FakePeers(std::vector<Context> all) : contexts(std::move(all)) {}
    std::string name() const override { return "memory of a test"; }
    std::uint64_t largest() const override { return most; }
    std::shared_ptr<PeerMemory> make(std::size_t owner, std::uint64_t bytes) override;
};

}  // namespace dlprim::testing
