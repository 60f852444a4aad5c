// SPDX-License-Identifier: MIT
// PyTorch's TCPStore, as much of its protocol as a key and a value need: a byte that names the
// query, and texts as a length of 8 bytes and so many bytes, in the byte order of the machine
// (torch/csrc/distributed/c10d/TCPStoreBackend.hpp).
#include "collective/processes/agent_store.hpp"

#include "base/text.hpp"
#include "collective/processes/socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace dlprim {

namespace {

enum Query : std::uint8_t { validate = 0, set = 1, get = 3, wait = 6 };
constexpr std::uint32_t magic = 0x3C85F7CE;
constexpr std::uint8_t stop_waiting = 0;
constexpr std::uint64_t longest = 1 << 16;

class Store {
  public:
    Store(const std::string& address, int port, std::chrono::duration<double> most)
        : socket_(connect_to({address}, port, most)), where_(cat(address, ", port ", port)) {
        ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
        timeval patience{};
        patience.tv_sec = static_cast<time_t>(most.count()) + 1;
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        number(validate, 1);
        number(magic, 4);
    }
    void number(std::uint64_t value, std::size_t bytes) {
        out_.append(reinterpret_cast<const char*>(&value), bytes);  // little-endian
    }
    void text(const std::string& text) {
        number(text.size(), 8);
        out_ += text;
    }
    /// Sends what was written so far, and waits until the store has the key.
    void wait_for(const std::string& key) {
        number(wait, 1);
        number(1, 8);
        text(key);
        send();
        std::uint8_t answer = 1;
        read(&answer, 1);
        if (answer != stop_waiting) lost();
    }
    void send() {
        for (std::size_t at = 0; at < out_.size();) {
            const ssize_t count =
                ::send(socket_.get(), out_.data() + at, out_.size() - at, MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) lost();
            at += static_cast<std::size_t>(count);
        }
        out_.clear();
    }
    void read(void* data, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes;) {
            const ssize_t count =
                ::recv(socket_.get(), static_cast<char*>(data) + at, bytes - at, 0);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) lost();
            at += static_cast<std::size_t>(count);
        }
    }
    [[noreturn]] void lost() const {
        fail(ErrorKind::io, "the store of torchrun's agent at ", where_, " does not answer");
    }

  private:
    Socket socket_;
    std::string out_;
    const std::string where_;
};

}  // namespace

void put_into_agent_store(const std::string& address, int port, const std::string& key,
                          const std::string& value, std::chrono::duration<double> most) {
    Store store(address, port, most);
    store.number(set, 1);
    store.text(key);
    store.text(value);
    store.wait_for(key);  // a query with an answer says that the store has taken it
}

std::string get_from_agent_store(const std::string& address, int port, const std::string& key,
                                 std::chrono::duration<double> most) {
    Store store(address, port, most);
    store.wait_for(key);
    store.number(get, 1);
    store.text(key);
    store.send();
    std::uint64_t length = 0;
    store.read(&length, sizeof(length));
    if (length > longest) store.lost();
    std::string value(length, 0);
    store.read(value.data(), value.size());
    return value;
}

}  // namespace dlprim
