// SPDX-License-Identifier: MIT
// SharedMemory.
#include "collective/hosts/shared_memory.hpp"

#include "base/text.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstring>

namespace dlprim {

namespace {

std::uint64_t in_pages(std::uint64_t bytes) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return std::max<std::uint64_t>((bytes + page - 1) / page, 1) * page;
}

}  // namespace

SharedMemory::SharedMemory() : descriptor_(::memfd_create("dlprim", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
        fail(ErrorKind::unsupported, "the system makes no memory to share: ", std::strerror(errno));
}

SharedMemory::SharedMemory(int process, int descriptor)
    : descriptor_(::open(cat("/proc/", process, "/fd/", descriptor).c_str(), O_RDWR | O_CLOEXEC)) {
    if (descriptor_ < 0)
        fail(ErrorKind::unsupported, "memory of process ", process,
             " cannot be opened: ", std::strerror(errno));
}

SharedMemory::~SharedMemory() {
    ::close(descriptor_);
}

SharedMemory::Part SharedMemory::grow(std::uint64_t bytes) {
    const std::uint64_t whole = in_pages(bytes);
    // Memory that is missing is found out here, and not by a signal when it is used.
    const int code =
        ::posix_fallocate(descriptor_, static_cast<off_t>(size_), static_cast<off_t>(whole));
    if (code != 0)
        fail(ErrorKind::out_of_memory, "host memory of ", bytes,
             " bytes to share with other processes is not there: ", std::strerror(code));
    return map(whole);
}

SharedMemory::Part SharedMemory::follow(std::uint64_t bytes) {
    const std::uint64_t whole = in_pages(bytes);
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) < size_ + whole)
        fail(ErrorKind::device, "another process of this host shares less memory than the ", bytes,
             " bytes that this one expects: the processes do not compute the same network");
    return map(whole);
}

SharedMemory::Part SharedMemory::map(std::uint64_t bytes) {
    // Also where it is not mapped, so that the next part is the same one in all processes.
    const std::uint64_t begin = size_;
    size_ += bytes;
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                              static_cast<off_t>(begin));
    if (data == MAP_FAILED)
        fail(ErrorKind::out_of_memory, "shared memory of ", bytes,
             " bytes cannot be mapped: ", std::strerror(errno));
    return {static_cast<std::byte*>(data), [bytes](std::byte* at) { ::munmap(at, bytes); }};
}

void SharedCounter::set(std::uint32_t value) {
    value_.store(value, std::memory_order_release);
    ::syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedCounter::await(std::uint32_t value, std::chrono::nanoseconds interval,
                          const std::function<std::string(Seconds)>& trouble) const {
    const auto begin = std::chrono::steady_clock::now();
    std::uint32_t now = 0;
    const auto reached = [&] {
        now = value_.load(std::memory_order_acquire);
        return static_cast<std::int32_t>(now - value) >= 0;
    };
    while (!reached()) {
        const std::string why = trouble(std::chrono::steady_clock::now() - begin);
        if (!why.empty()) {
            if (reached()) return;  // before it went
            fail(ErrorKind::device, why);
        }
        const timespec moment{0, interval.count()};
        ::syscall(SYS_futex, &value_, FUTEX_WAIT, now, &moment, nullptr, 0);
    }
}

}  // namespace dlprim
