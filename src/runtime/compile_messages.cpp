// SPDX-License-Identifier: MIT
// MessageSocket: send(2) and recv(2) never wait here; poll(2) waits, for short times.
#include "runtime/compile_messages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dlprim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t most_bytes = 64u << 20;  // of a text; a longer one is an error
constexpr std::uint64_t most_texts = 16;
constexpr std::chrono::milliseconds between_looks_at_stop{20};  // at the flag `stop`

// Waits until the socket is ready for `events`. Returns false at the deadline or when stopped.
bool wait_for(int descriptor, short events, Clock::time_point deadline,
              const std::atomic<bool>* stop) {
    for (;;) {
        if (stop != nullptr && stop->load()) return false;
        const auto now = Clock::now();
        if (now >= deadline) return false;
        std::chrono::milliseconds patience{1000};
        if (stop != nullptr) patience = between_looks_at_stop;
        if (deadline - now < patience)
            patience = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
        pollfd entry{descriptor, events, 0};
        const int ready = ::poll(&entry, 1, static_cast<int>(patience.count()));
        if (ready > 0) return true;  // the other end may be closed: the next call reports that
        if (ready < 0 && errno != EINTR) return false;
    }
}

void append_length(std::string& bytes, std::uint64_t length) {
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
}

}  // namespace

void MessageSocket::close() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

bool MessageSocket::send(const Message& message, Deadline deadline, const std::atomic<bool>* stop) {
    std::string bytes;
    append_length(bytes, message.size());
    for (const std::string& text : message) {
        append_length(bytes, text.size());
        bytes += text;
    }
    std::string_view left = bytes;
    while (!left.empty()) {
        // Without MSG_NOSIGNAL, SIGPIPE would end this process if the other one has ended.
        const ssize_t sent =
            ::send(descriptor_, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            left.remove_prefix(static_cast<std::size_t>(sent));
            continue;
        }
        const bool later = sent == 0 || errno == EINTR || errno == EAGAIN;
        if (!later || !wait_for(descriptor_, POLLOUT, deadline, stop)) return false;
    }
    return true;
}

bool MessageSocket::receive_bytes(char* bytes, std::size_t count, Deadline deadline,
                                  const std::atomic<bool>* stop) {
    while (count > 0) {
        const ssize_t got = ::recv(descriptor_, bytes, count, MSG_DONTWAIT);
        if (got == 0) return false;
        if (got > 0) {
            bytes += got;
            count -= static_cast<std::size_t>(got);
            continue;
        }
        const bool later = errno == EINTR || errno == EAGAIN;
        if (!later || !wait_for(descriptor_, POLLIN, deadline, stop)) return false;
    }
    return true;
}

std::optional<std::uint64_t> MessageSocket::receive_length(Deadline deadline,
                                                           const std::atomic<bool>* stop) {
    char bytes[sizeof(std::uint64_t)];
    if (!receive_bytes(bytes, sizeof(bytes), deadline, stop)) return std::nullopt;
    std::uint64_t length = 0;
    std::memcpy(&length, bytes, sizeof(length));
    return length;
}

std::optional<Message> MessageSocket::receive(Deadline deadline, const std::atomic<bool>* stop) {
    const auto texts = receive_length(deadline, stop);
    if (!texts || *texts > most_texts) return std::nullopt;
    Message message;
    for (std::uint64_t i = 0; i < *texts; ++i) {
        const auto length = receive_length(deadline, stop);
        if (!length || *length > most_bytes) return std::nullopt;
        std::string text(static_cast<std::size_t>(*length), '\0');
        if (!receive_bytes(text.data(), text.size(), deadline, stop)) return std::nullopt;
        message.push_back(std::move(text));
    }
    return message;
}

}  // namespace dlprim
