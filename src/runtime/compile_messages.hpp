// SPDX-License-Identifier: MIT
// MessageSocket sends lists of texts between this process and one that compiles for it.
//
// A message is the number of its texts, then the length and the bytes of each text. The first
// message to a process names the library's version and the device. Every later one is a program to
// compile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

using Message = std::vector<std::string>;

/// What dlprim_compile answers to the first message and to a program.
namespace answer {
inline constexpr std::string_view ready = "ready";
inline constexpr std::string_view refused = "refused";    ///< other version, or no such device
inline constexpr std::string_view made = "made";          ///< it is in the binary cache
inline constexpr std::string_view failed = "failed";      ///< it does not build there
inline constexpr std::string_view not_kept = "not kept";  ///< it builds, but is not in the cache
}  // namespace answer

/// Owns one end of a socket pair. One thread at a time may use it.
class MessageSocket {
  public:
    explicit MessageSocket(int descriptor) : descriptor_(descriptor) {}
    ~MessageSocket() { close(); }
    MessageSocket(const MessageSocket&) = delete;
    MessageSocket& operator=(const MessageSocket&) = delete;

    /// Closes the end it has and takes this one.
    void open(int descriptor) noexcept {
        close();
        descriptor_ = descriptor;
    }
    void close() noexcept;

    using Deadline = std::chrono::steady_clock::time_point;
    /// Returns false if the other end is closed, or if it has not taken the whole message by
    /// `deadline` or soon after `stop` became true.
    bool send(const Message& message, Deadline deadline = Deadline::max(),
              const std::atomic<bool>* stop = nullptr);
    /// Waits for the next message. Returns nothing if the other end is closed or sends something
    /// else, at `deadline`, and soon after `stop` became true.
    std::optional<Message> receive(Deadline deadline = Deadline::max(),
                                   const std::atomic<bool>* stop = nullptr);

  private:
    bool receive_bytes(char* bytes, std::size_t count, Deadline deadline,
                       const std::atomic<bool>* stop);
    std::optional<std::uint64_t> receive_length(Deadline deadline, const std::atomic<bool>* stop);

    int descriptor_;
};

}  // namespace dlprim
