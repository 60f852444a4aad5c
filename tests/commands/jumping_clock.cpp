// SPDX-License-Identifier: MIT
// A clock that jumps, for LD_PRELOAD: what asks for the time of day gets the years 2001 and 2100 in
// turn. Clocks that count from the start of the machine are left as they are.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <atomic>
#include <ctime>

namespace {

std::time_t jumping() {
    static std::atomic<unsigned> calls{0};
    constexpr std::time_t year_2001 = 1000000000, year_2100 = 4102444800;
    return calls.fetch_add(1) % 2 == 0 ? year_2100 : year_2001;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* result) noexcept {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return static_cast<int>(syscall(SYS_clock_gettime, clock, result));
    *result = {jumping(), 0};
    return 0;
}

int gettimeofday(struct timeval* result, void*) noexcept {
    *result = {jumping(), 0};
    return 0;
}

std::time_t time(std::time_t* result) noexcept {
    const std::time_t now = jumping();
    if (result != nullptr) *result = now;
    return now;
}
}
