// SPDX-License-Identifier: MIT
// HostBoard. A process has a page that it alone writes to. The others wait by a futex for the
// number of steps on it, and look now and then for what makes the wait vain.
#include "collective/hosts/host_board.hpp"

#include "base/text.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace dlprim {

struct HostBoard::Page {
    enum State : std::uint32_t { present, left, failed };
    struct Note {
        std::uint32_t bytes;
        char text[note_bytes];
    };
    std::atomic<std::uint32_t> ended;  ///< steps
    std::atomic<std::uint32_t> state;
    char failure[512];
    Note notes[2];
};

std::uint64_t HostBoard::page_bytes() {
    return sizeof(Page);
}

HostBoard::HostBoard(std::size_t rank, std::vector<std::shared_ptr<std::byte>> pages,
                     std::vector<int> processes)
    : rank_(rank),
      pages_(std::move(pages)),
      processes_(std::move(processes)),
      watched_(pages_.size(), -1) {
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
    for (std::size_t q = 0; q < size(); ++q) {
        if (q == rank_) continue;
        watched_[q] = static_cast<int>(::syscall(SYS_pidfd_open, processes_[q], 0));
        if (watched_[q] < 0) {
            const std::string why = std::strerror(errno);
            close_watched();
            dlprim::fail(ErrorKind::unsupported, "rank ", rank_, " cannot watch whether rank ", q,
                         " lives: ", why);
        }
    }
}

HostBoard::~HostBoard() {
    leave();
    close_watched();
}

void HostBoard::close_watched() noexcept {
    for (const int descriptor : watched_)
        if (descriptor >= 0) ::close(descriptor);
}

HostBoard::Page& HostBoard::page(std::size_t process) const {
    return *reinterpret_cast<Page*>(pages_[process].get());
}

bool HostBoard::is_own() const {
    return ::getpid() == processes_[rank_];
}

void HostBoard::begin(Deadline deadline) {
    for (std::size_t q = 0; q < size(); ++q)
        if (q != rank_) await(q, deadline);
}

void HostBoard::end() {
    std::atomic<std::uint32_t>& ended = page(rank_).ended;
    ended.store(++step_, std::memory_order_release);
    ::syscall(SYS_futex, &ended, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void HostBoard::write_note(const std::string& note) {
    require(note.size() <= note_bytes, "a note of ", note.size(), " bytes is longer than the ",
            note_bytes, " bytes that processes of a host exchange");
    Page::Note& own = page(rank_).notes[step_ % 2];
    own.bytes = static_cast<std::uint32_t>(note.size());
    std::memcpy(own.text, note.data(), note.size());
}

std::string HostBoard::note(std::size_t process) const {
    const Page::Note& theirs = page(process).notes[(step_ + 1) % 2];
    return {theirs.text, std::min<std::size_t>(theirs.bytes, note_bytes)};
}

void HostBoard::await(std::size_t process, Deadline deadline) const {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    std::atomic<std::uint32_t>& ended = page(process).ended;
    std::uint32_t theirs = 0;
    const auto reached = [&] {
        theirs = ended.load(std::memory_order_acquire);
        // They may be one step further. Numbers wrap around.
        return static_cast<std::int32_t>(theirs - step_) >= 0;
    };
    while (!reached()) {
        std::string trouble = trouble_with(process);
        if (trouble.empty() && Clock::now() - begin > deadline)
            trouble = cat("rank ", process, " did not come within ", deadline.count(), " seconds");
        if (!trouble.empty()) {
            if (reached()) return;  // it had ended the step before it went
            dlprim::fail(ErrorKind::device, trouble);
        }
        // A death wakes nobody.
        const timespec moment{0, 20'000'000};
        ::syscall(SYS_futex, &ended, FUTEX_WAIT, theirs, &moment, nullptr, 0);
    }
}

std::string HostBoard::trouble_with(std::size_t process) const {
    if (left_) return "this process left the group meanwhile";
    // A process that has failed may be another one than that which is waited for.
    for (std::size_t q = 0; q < size(); ++q) {
        if (page(q).state.load(std::memory_order_acquire) != Page::failed) continue;
        const char* const text = page(q).failure;
        return cat("rank ", q,
                   " has failed: ", std::string(text, ::strnlen(text, sizeof(Page::failure))));
    }
    if (page(process).state.load(std::memory_order_acquire) == Page::left)
        return cat("rank ", process, " has left the group");
    for (std::size_t q = 0; q < size(); ++q) {
        pollfd descriptor{watched_[q], POLLIN, 0};
        if (watched_[q] >= 0 && ::poll(&descriptor, 1, 0) > 0 &&
            page(q).state.load(std::memory_order_acquire) != Page::left)
            return cat("rank ", q, " (process ", processes_[q], ") has ended");
    }
    return "";
}

void HostBoard::fail(const std::string& text) noexcept {
    if (!is_own()) return;
    Page& own = page(rank_);
    if (own.state.load() != Page::present) return;
    std::memcpy(own.failure, text.data(), std::min(text.size(), sizeof(own.failure) - 1));
    own.state.store(Page::failed, std::memory_order_release);
}

void HostBoard::leave() noexcept {
    left_ = true;
    if (!is_own()) return;
    std::uint32_t expected = Page::present;
    page(rank_).state.compare_exchange_strong(expected, Page::left);
}

}  // namespace dlprim
