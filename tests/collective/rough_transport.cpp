// SPDX-License-Identifier: MIT
// A transport plugin for tests that passes all calls on to another one, the file DLPRIM_ROUGH_OF,
// and treats them roughly:
//
//   DLPRIM_ROUGH_DELAYS=300   sleeps up to 300 microseconds before and after every other call. As
//                             LD_PRELOAD it does the same around the calls by which processes wait
//                             for each other in shared memory (futex).
//   DLPRIM_ROUGH_LOCKS=300    as LD_PRELOAD of any program: the same before every eighth lock of a
//                             mutex, so that threads come to what they share in other orders
//   DLPRIM_ROUGH_SEED=7       what random numbers begin with, besides the rank
//   DLPRIM_ROUGH_FAULT=corrupt:1:40  changes what arrives at rank 1 as its message 40: "corrupt"
//                             flips a bit, "shorten" leaves the second half out, "reorder" swaps
//                             the halves, "repeat" gives the last message of that size once more.
//                             The results of allreduce() are a message, too.
//
// Beside a fault it says on stderr "rough: message 40 of 128 bytes changed", where bytes did
// change; at the end "rough: rank 1 took 123 messages".
#include "collective/processes/transport_plugin.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using Bytes = std::vector<char>;

std::string env(const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
    return value == nullptr ? "" : value;
}

std::uint64_t number_in(const std::string& text) {
    return std::strtoull(text.c_str(), nullptr, 10);
}

/// Sleeps for a random time of up to so many microseconds, in one of `rarity` calls. Any thread.
void sleep_at_random(std::uint64_t longest, std::uint64_t rarity) {
    static std::atomic<std::uint64_t> state{number_in(env("DLPRIM_ROUGH_SEED")) * 7919 +
                                            static_cast<std::uint64_t>(::getpid())};
    if (longest == 0) return;
    const std::uint64_t random = (state.fetch_add(0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9) >> 32;
    if (random % rarity != 0) return;
    const timespec time{0, static_cast<long>(random / rarity % longest * 1000)};
    ::nanosleep(&time, nullptr);
}

void delay() {
    static const std::uint64_t longest = number_in(env("DLPRIM_ROUGH_DELAYS"));
    sleep_at_random(longest, 2);
}

struct Rough {
    const dlprim_transport* of;
    void* self;
    std::size_t rank, size;
    std::string fault;
    std::uint64_t bad = ~std::uint64_t{0};  ///< the number of the message that is changed
    std::uint64_t messages = 0;
    std::map<std::pair<std::size_t, std::size_t>, Bytes> last;  ///< by process and size
};

Bytes changed(const Rough& rough, const Bytes& whole, const Bytes& before, const Bytes& last) {
    Bytes message = whole;
    const std::size_t half = message.size() / 2;
    if (rough.fault == "corrupt") message[half] = static_cast<char>(message[half] ^ 4);
    if (rough.fault == "shorten")
        std::copy(before.begin() + static_cast<std::ptrdiff_t>(half), before.end(),
                  message.begin() + static_cast<std::ptrdiff_t>(half));
    if (rough.fault == "reorder")
        std::rotate(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(half),
                    message.end());
    if (rough.fault == "repeat" && !last.empty()) message = last;
    return message;
}

/// Takes a message that has arrived from a process, in place of which `before` was. Returns what is
/// to be there.
Bytes receive(Rough& rough, std::size_t from, const Bytes& whole, const Bytes& before) {
    Bytes message = whole;
    Bytes& last = rough.last[{from, whole.size()}];
    if (rough.messages == rough.bad) {
        message = changed(rough, whole, before, last);
        if (message != whole)
            std::fprintf(stderr, "rough: message %llu of %zu bytes changed\n",
                         static_cast<unsigned long long>(rough.messages), whole.size());
    }
    ++rough.messages;
    last = whole;
    return message;
}

Bytes joined(const dlprim_pieces& pieces) {
    Bytes all;
    for (std::size_t k = 0; k < pieces.count; ++k) {
        const auto* const data = static_cast<const char*>(pieces.pieces[k].data);
        all.insert(all.end(), data, data + pieces.pieces[k].bytes);
    }
    return all;
}

void scatter(const Bytes& all, const dlprim_pieces& pieces) {
    const char* at = all.data();
    for (std::size_t k = 0; k < pieces.count; ++k) {
        std::memcpy(pieces.pieces[k].data, at, pieces.pieces[k].bytes);
        at += pieces.pieces[k].bytes;
    }
}

/// Does a call after which `from` has arrived.
template <typename Call>
int roughly(Rough& rough, const dlprim_pieces* from, const Call& call) {
    std::vector<Bytes> before;
    for (std::size_t i = 0; i < rough.size; ++i) before.push_back(joined(from[i]));
    delay();
    const int result = call();
    if (result != DLPRIM_TRANSPORT_DONE) return result;
    for (std::size_t i = 0; i < rough.size; ++i)
        if (i != rough.rank && !before[i].empty())
            scatter(receive(rough, i, joined(from[i]), before[i]), from[i]);
    delay();
    return result;
}

Rough& of(void* self) {
    return *static_cast<Rough*>(self);
}

const dlprim_transport* wrapped() {
    void* const library = ::dlopen(env("DLPRIM_ROUGH_OF").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto function = reinterpret_cast<dlprim_transport_plugin_function>(
        ::dlsym(library, "dlprim_transport_plugin"));
    return function == nullptr ? nullptr : function();
}

void* open(const dlprim_transport_start* start, dlprim_message message) {
    const dlprim_transport* const plugin = wrapped();
    void* const self = plugin->open(start, message);
    if (self == nullptr) return nullptr;
    auto* const rough = new Rough{plugin, self, static_cast<std::size_t>(start->rank),
                                  static_cast<std::size_t>(start->size), env("DLPRIM_ROUGH_FAULT")};
    const std::size_t first = rough->fault.find(':'), second = rough->fault.rfind(':');
    if (first != std::string::npos && number_in(rough->fault.substr(first + 1)) == rough->rank)
        rough->bad = number_in(rough->fault.substr(second + 1));
    rough->fault = rough->fault.substr(0, first);
    return rough;
}

int exchange(void* self, const dlprim_pieces* to, const dlprim_pieces* from, double seconds,
             dlprim_message message) {
    return roughly(of(self), from, [&] {
        return of(self).of->exchange(of(self).self, to, from, seconds, message);
    });
}

void cancel(void* self) {
    of(self).of->cancel(of(self).self);
}

void close(void* self, int whole) {
    std::fprintf(stderr, "rough: rank %zu took %llu messages\n", of(self).rank,
                 static_cast<unsigned long long>(of(self).messages));
    of(self).of->close(of(self).self, whole);
    delete static_cast<Rough*>(self);
}

int allreduce(void* self, float* values, std::uint64_t count, double seconds,
              dlprim_message message) {
    // As a message from another process, in place.
    const dlprim_piece piece{values, count * sizeof(float)};
    std::vector<dlprim_pieces> from(of(self).size);
    from[of(self).rank == 0 ? 1 : 0] = {&piece, 1};
    return roughly(of(self), from.data(), [&] {
        return of(self).of->allreduce(of(self).self, values, count, seconds, message);
    });
}

void progress(void* self) {
    if (of(self).of->progress != nullptr) of(self).of->progress(of(self).self);
}

const dlprim_transport plugin{
    DLPRIM_TRANSPORT_ABI, "a rough transport", open, exchange, cancel, close, allreduce, progress};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const dlprim_transport* dlprim_transport_plugin(void) {
    return &plugin;
}

/// In place of libc's, for LD_PRELOAD.
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static const auto next =
        reinterpret_cast<int (*)(pthread_mutex_t*)>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    static const std::uint64_t longest = number_in(env("DLPRIM_ROUGH_LOCKS"));
    sleep_at_random(longest, 8);
    return next(mutex);
}

/// In place of libc's, for LD_PRELOAD: delays waits in shared memory, and what ends them.
__attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
    using Function = long (*)(long, long, long, long, long, long, long);
    static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "syscall"));
    va_list list;
    va_start(list, number);
    long values[6];
    for (long& value : values) value = va_arg(list, long);
    va_end(list);
    // Waits within a process are private.
    const bool shared = number == SYS_futex && (values[1] & FUTEX_PRIVATE_FLAG) == 0;
    if (shared) delay();
    const long result =
        next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
    if (shared) {
        const int error = errno;
        delay();
        errno = error;
    }
    return result;
}
}
