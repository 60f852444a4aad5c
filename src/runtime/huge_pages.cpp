// SPDX-License-Identifier: MIT
// make_in_huge_pages: anonymous memory that starts at a multiple of a large page and that a buffer
// uses instead of the runtime's memory.
#include "runtime/huge_pages.hpp"

#include "base/env.hpp"

#ifdef __linux__
#include <atomic>
#include <memory>
#include <new>

#include <sys/mman.h>
#include <unistd.h>
#endif

namespace dlprim {

#ifdef __linux__

namespace {

constexpr std::uint64_t huge_page = 2 << 20;
// Each buffer starts at another offset in its first page. Kernels read several buffers in parallel,
// and with equal offsets these would compete for the same cache sets and memory banks.
constexpr std::uint64_t staggers = 64, stagger_step = 4096 + 128;

// `bytes` rounded up to whole pages of the system's usual size.
std::uint64_t in_pages(std::uint64_t bytes) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

// Memory from mmap, in large pages if the system has them.
class Region {
  public:
    explicit Region(std::uint64_t bytes) : bytes_(in_pages(bytes)) {
        void* const mapped = mmap(nullptr, bytes_ + huge_page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return;
        // The parts before the first multiple and after the end are unmapped.
        auto* const first = static_cast<char*>(mapped);
        const auto past = reinterpret_cast<std::uintptr_t>(mapped) % huge_page;
        const std::uint64_t skipped = past == 0 ? 0 : huge_page - past;
        start_ = first + skipped;
        if (skipped > 0) munmap(first, skipped);
        munmap(first + skipped + bytes_, huge_page - skipped);
        advised_ = madvise(start_, bytes_, MADV_HUGEPAGE) == 0;
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() {
        if (start_ != nullptr) munmap(start_, bytes_);
    }

    /// The address, or null if there are no large pages.
    void* start() const { return advised_ ? start_ : nullptr; }

  private:
    std::uint64_t bytes_;
    void* start_ = nullptr;
    bool advised_ = false;
};

void CL_CALLBACK release(cl_mem, void* region) {
    delete static_cast<Region*>(region);
}

}  // namespace

cl_mem make_in_huge_pages(cl_context context, std::uint64_t bytes) noexcept {
    if (bytes < huge_page || bytes >> 46 != 0) return nullptr;
    try {
        if (env("DLPRIM_HUGE_PAGES") == "0") return nullptr;
        static std::atomic<unsigned> made{0};
        const std::uint64_t stagger = made++ * 37 % staggers * stagger_step;
        auto region = std::make_unique<Region>(stagger + bytes);
        if (region->start() == nullptr) return nullptr;
        cl_int code = CL_SUCCESS;
        auto* const start = static_cast<char*>(region->start()) + stagger;
        const cl_mem memory =
            clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, start, &code);
        if (code != CL_SUCCESS) return nullptr;
        if (clSetMemObjectDestructorCallback(memory, release, region.get()) != CL_SUCCESS) {
            clReleaseMemObject(memory);
            return nullptr;
        }
        region.release();  // the buffer owns it now
        return memory;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

#else

cl_mem make_in_huge_pages(cl_context, std::uint64_t) noexcept {
    return nullptr;
}

#endif

}  // namespace dlprim
