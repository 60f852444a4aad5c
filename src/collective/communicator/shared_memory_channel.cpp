// SPDX-License-Identifier: MIT
// SharedMemoryChannel: how processes find each other's memory, and how they wait for each other.
#include "collective/communicator/shared_memory_channel.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/staging_buffer.hpp"
#include "collective/hosts/shared_host.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/pin_memory.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dlprim {

struct SharedMemoryChannel::Page {
    enum State : std::uint32_t { present, left, failed };
    struct Note {
        std::uint32_t bytes;
        char text[note_bytes];
    };
    SharedCounter ended;  ///< steps
    std::atomic<std::uint32_t> state;
    char failure[512];
    Note notes[2];
};

std::unique_ptr<Channel> SharedMemoryChannel::connect(std::size_t rank, std::size_t size,
                                                      const Gather& gather, std::string& reason) {
    std::vector<std::string> names;
    for (std::size_t q = 0; q < size; ++q) names.push_back(cat("rank ", q));
    SharedHost host(
        rank, std::move(names),
        [&](const std::string& own, const std::string&) { return gather(own); },
        std::make_shared<std::atomic<bool>>(false));
    const std::vector<std::size_t>& hosts = host.hosts();
    const bool is_one =
        std::all_of(hosts.begin(), hosts.end(), [](std::size_t number) { return number == 0; });
    reason = is_one ? host.reason() : "the processes are on several hosts";
    if (!reason.empty()) return nullptr;
    // Whether it has gone well in all of them.
    const auto all_do = [&](const auto& work) {
        std::string trouble;
        try {
            work();
        } catch (const Error& error) {
            trouble = error.what();
        }
        for (const std::string& each : gather(trouble))
            if (reason.empty()) reason = each;
        return reason.empty();
    };
    Memory memory;
    std::unique_ptr<Channel> channel;
    const bool is_made = all_do([&] {
        host.make(sizeof(Page));
        memory.again = host.make(buffer_bytes(size));
    });
    const bool is_reached = is_made && all_do([&] {
                                for (std::size_t q = 0; q < size; ++q) {
                                    memory.processes.push_back(host.process_id(q));
                                    memory.pages.push_back(host.reach(q, sizeof(Page)));
                                    memory.buffers.push_back(host.reach(q, buffer_bytes(size)));
                                }
                                channel.reset(new SharedMemoryChannel(rank, std::move(memory)));
                            });
    if (!is_reached) channel.reset();
    return channel;
}

SharedMemoryChannel::SharedMemoryChannel(std::size_t rank, Memory memory)
    : Channel(rank, std::move(memory.buffers)),
      pages_(std::move(memory.pages)),
      processes_(std::move(memory.processes)),
      again_(std::move(memory.again)),
      watched_(pages_.size(), -1) {
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

SharedMemoryChannel::~SharedMemoryChannel() {
    SharedMemoryChannel::leave();
    close_watched();
}

void SharedMemoryChannel::close_watched() noexcept {
    for (const int descriptor : watched_)
        if (descriptor >= 0) ::close(descriptor);
}

SharedMemoryChannel::Page& SharedMemoryChannel::page(std::size_t process) const {
    return *reinterpret_cast<Page*>(pages_[process].get());
}

bool SharedMemoryChannel::is_own() const {
    return ::getpid() == processes_[rank_];
}

void SharedMemoryChannel::begin(Deadline deadline) {
    for (std::size_t q = 0; q < size(); ++q)
        if (q != rank_) await(q, deadline);
}

void SharedMemoryChannel::end(Deadline) {
    page(rank_).ended.set(++step_);
}

void SharedMemoryChannel::write_note(const std::string& note) {
    Page::Note& own = page(rank_).notes[step_ % 2];
    own.bytes = static_cast<std::uint32_t>(std::min(note.size(), note_bytes));
    std::memcpy(own.text, note.data(), own.bytes);
}

std::string SharedMemoryChannel::note(std::size_t process) const {
    const Page::Note& theirs = page(process).notes[(step_ + 1) % 2];
    return {theirs.text, std::min<std::size_t>(theirs.bytes, note_bytes)};
}

void SharedMemoryChannel::await(std::size_t process, Deadline deadline) const {
    // A death wakes nobody.
    constexpr std::chrono::milliseconds interval(20);
    page(process).ended.await(step_, interval, [&](auto waited) {
        std::string trouble = trouble_with(process);
        if (trouble.empty() && waited > deadline)
            trouble = cat("rank ", process, " did not come within ", deadline.count(), " seconds");
        return trouble;
    });
}

std::string SharedMemoryChannel::trouble_with(std::size_t process) const {
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

std::unique_ptr<CopyQueues> SharedMemoryChannel::open(const Context& context) {
    for (const bool pinned : {true, false}) {
        if (pinned && !env_flag("DLPRIM_PINNED").value_or(true)) continue;
        try {
            auto queues = std::make_unique<CopyQueues>(context);
            for (const auto& part : pinned ? buffers_ : decltype(pages_)())
                queues->pinned.push_back(pin_memory(Access::shared_impl(queues->down), part.get(),
                                                    buffer_bytes(size())));
            if (works(*queues)) return queues;
        } catch (const Error&) {
            if (!pinned) throw;
        }
    }
    dlprim::fail(
        ErrorKind::device, context.info().str(),
        " does not reach memory that the processes of this host share; DLPRIM_SHARED=0 exchanges "
        "by other ways");
}

bool SharedMemoryChannel::works(CopyQueues& queues) const {
    std::byte* const own = chunk(rank_, step_);
    std::byte* const seen = again_.get() + (own - buffers_[rank_].get());
    send_trial(queues.up, 0, own);
    if (std::memcmp(seen, trial_pattern(0).data(), trial_bytes) != 0) return false;
    std::memcpy(seen, trial_pattern(1).data(), trial_bytes);
    return finds_trial(queues.down, 1, own);
}

void SharedMemoryChannel::fail(const std::string& text) noexcept {
    if (!is_own()) return;
    Page& own = page(rank_);
    if (own.state.load() != Page::present) return;
    std::memcpy(own.failure, text.data(), std::min(text.size(), sizeof(own.failure) - 1));
    own.state.store(Page::failed, std::memory_order_release);
}

void SharedMemoryChannel::leave() noexcept {
    left_ = true;
    if (!is_own()) return;
    std::uint32_t expected = Page::present;
    page(rank_).state.compare_exchange_strong(expected, Page::left);
}

}  // namespace dlprim
