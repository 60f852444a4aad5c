// SPDX-License-Identifier: MIT
// See addresses.hpp. Ranges are powers of two, from 512 bytes on; freed ones are kept by size.
#include "memory/addresses.hpp"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

namespace dlprim_torch {
namespace {

constexpr int smallest = 9, sizes = 48;  // binary logarithms

/// The reservation. It is never destroyed, since tensors may outlive static objects.
class Addresses {
  public:
    Addresses() {
        // Less is taken where the process may not have so many, for example under ulimit -v.
        for (std::size_t bytes = std::size_t{1} << 44; bytes >= std::size_t{1} << 32; bytes /= 2) {
            void* const found =
                mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (found == MAP_FAILED) continue;
            next_ = reinterpret_cast<std::uintptr_t>(found);
            end_ = next_ + bytes;
            return;
        }
    }

    void* take(int size) {
        const std::lock_guard lock(mutex_);
        auto& kept = kept_[static_cast<std::size_t>(size)];
        if (!kept.empty()) {
            void* const address = kept.back();
            kept.pop_back();
            return address;
        }
        const std::size_t bytes = std::size_t{1} << size;
        TORCH_CHECK_WITH(OutOfMemoryError, end_ - next_ >= bytes,
                         "There is no address space left for tensors of \"ocl\": ", bytes,
                         " bytes were asked for.");
        void* const address = reinterpret_cast<void*>(next_);
        next_ += bytes;
        return address;
    }

    void give(void* address, int size) {
        const std::lock_guard lock(mutex_);
        kept_[static_cast<std::size_t>(size)].push_back(address);
    }

  private:
    std::mutex mutex_;
    std::uintptr_t next_ = 0, end_ = 0;
    std::array<std::vector<void*>, sizes> kept_;
};

Addresses& addresses() {
    static auto* const all = new Addresses;
    return *all;
}

int size_for(std::size_t bytes) {
    const int size =
        std::max(smallest, static_cast<int>(std::bit_width(bytes == 0 ? 0 : bytes - 1)));
    TORCH_CHECK_WITH(OutOfMemoryError, size < sizes, "A tensor of \"ocl\" cannot have ", bytes,
                     " bytes.");
    return size;
}

}  // namespace

void* reserve_addresses(std::size_t bytes) {
    return addresses().take(size_for(bytes));
}

void release_addresses(void* begin, std::size_t bytes) noexcept {
    try {
        addresses().give(begin, size_for(bytes));
    } catch (...) {  // The range is lost, which costs nothing but addresses.
    }
}

}  // namespace dlprim_torch
