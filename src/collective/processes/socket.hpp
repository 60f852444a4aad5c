// SPDX-License-Identifier: MIT
// Sockets of TCP, and messages on them: a length of four bytes, little-endian, a kind of one byte,
// and so many bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// A descriptor that it closes.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    ~Socket() { close(); }
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept;
    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }
    void close();

  private:
    int descriptor_ = -1;
};

/// Throws Error(io) where the port is not free.
Socket listen_on(int port, bool local);
int port_of(const Socket& socket);
/// Tries again and again, all addresses in turn, until one answers. Throws Error(io).
Socket connect_to(const std::vector<std::string>& addresses, int port,
                  std::chrono::duration<double> most);

/// Where other hosts may reach this one, as texts.
std::vector<std::string> addresses_of_host();

struct Frame {
    std::uint8_t kind = 0;
    std::string data;
};

/// What arrives at a socket and what is to be sent there, as far as it goes without waiting.
class Connection {
  public:
    explicit Connection(Socket socket);
    int descriptor() const { return socket_.get(); }
    bool wants_to_send() const { return sent_ < out_.size(); }
    void send(const Frame& frame);
    /// Sends what fits. Returns whether the connection stands.
    bool flush();
    /// Adds what has arrived to `frames`, up to 64 KiB of it. Returns whether the connection
    /// stands.
    bool receive(std::vector<Frame>& frames);
    void close() { socket_.close(); }

  private:
    Socket socket_;
    std::string in_, out_;
    std::size_t sent_ = 0;
};

}  // namespace dlprim
