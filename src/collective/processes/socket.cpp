// SPDX-License-Identifier: MIT
// Sockets.
#include "collective/processes/socket.hpp"

#include "base/text.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace dlprim {

namespace {

constexpr std::uint32_t longest = 1 << 20;  ///< of a message, which a stranger may have sent

constexpr int most_reads = 16;  ///< of a connection, before others are looked after

std::string text_of_errno() {
    return std::strerror(errno);
}

void set_up(int descriptor) {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

/// Connects within some seconds, or returns none.
Socket try_address(const addrinfo& info) {
    Socket socket(::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return socket;
    if (::connect(socket.get(), info.ai_addr, info.ai_addrlen) == 0) return socket;
    if (errno != EINPROGRESS) return {};
    pollfd waiting{socket.get(), POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof(error);
    if (::poll(&waiting, 1, 3000) <= 0 ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
        errno = error != 0 ? error : ETIMEDOUT;
        return {};
    }
    return socket;
}

Socket try_name(const std::string& name, int port, std::string& why) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(name.c_str(), cat(port).c_str(), &hints, &found);
    if (code != 0) {
        why = ::gai_strerror(code);
        return {};
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next)
        if (Socket socket = try_address(*at)) return socket;
    why = text_of_errno();
    return {};
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
    if (this == &other) return *this;
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
}

void Socket::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Socket listen_on(int port, bool local) {
    // IPv6 sockets that listen serve IPv4, too, unless the system has no IPv6.
    Socket socket(::socket(local ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool new_protocol = !local && socket;
    if (!socket) socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1, no = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    int bound = -1;
    if (new_protocol) {
        ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
        sockaddr_in6 place{};
        place.sin6_family = AF_INET6;
        place.sin6_addr = in6addr_any;
        place.sin6_port = htons(static_cast<std::uint16_t>(port));
        bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place));
    } else {
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
        place.sin_port = htons(static_cast<std::uint16_t>(port));
        bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place));
    }
    if (bound != 0 || ::listen(socket.get(), 1024) != 0)
        fail(ErrorKind::io, "the first process of the run cannot listen on port ", port, ": ",
             text_of_errno(),
             "; where another run or another process with rank 0 has it, MASTER_PORT chooses "
             "another port");
    set_up(socket.get());
    return socket;
}

int port_of(const Socket& socket) {
    sockaddr_storage place{};
    socklen_t length = sizeof(place);
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &length) != 0) return 0;
    std::uint16_t port = 0;
    if (place.ss_family == AF_INET6)
        port = reinterpret_cast<const sockaddr_in6&>(place).sin6_port;
    else
        port = reinterpret_cast<const sockaddr_in&>(place).sin_port;
    return ntohs(port);
}

Socket connect_to(const std::vector<std::string>& addresses, int port,
                  std::chrono::duration<double> most) {
    const auto begin = std::chrono::steady_clock::now();
    std::string why;
    do {
        for (const std::string& address : addresses)
            if (Socket socket = try_name(address, port, why)) return socket;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (std::chrono::steady_clock::now() - begin < most);
    fail(ErrorKind::io, "the first process of the run does not answer at ", join(addresses, ", "),
         ", port ", port, ", within ", most.count(), " seconds: ", why);
}

std::vector<std::string> addresses_of_host() {
    std::vector<std::string> all;
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0) return all;
    for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) != 0 ||
            (at->ifa_flags & IFF_UP) == 0)
            continue;
        char text[INET6_ADDRSTRLEN] = {};
        if (at->ifa_addr->sa_family == AF_INET)
            ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr,
                        text, sizeof(text));
        else if (at->ifa_addr->sa_family == AF_INET6 &&
                 !IN6_IS_ADDR_LINKLOCAL(
                     &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr))
            ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr,
                        text, sizeof(text));
        if (text[0] != 0) all.emplace_back(text);
    }
    ::freeifaddrs(found);
    return all;
}

Connection::Connection(Socket socket) : socket_(std::move(socket)) {
    set_up(socket_.get());
}

void Connection::send(const Frame& frame) {
    const auto length = static_cast<std::uint32_t>(frame.data.size());
    for (int i = 0; i < 4; ++i) out_ += static_cast<char>(length >> (8 * i) & 0xff);
    out_ += static_cast<char>(frame.kind);
    out_ += frame.data;
}

bool Connection::flush() {
    while (sent_ < out_.size()) {
        const ssize_t written =
            ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (written < 0) return errno == EAGAIN || errno == EINTR;
        sent_ += static_cast<std::size_t>(written);
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool Connection::receive(std::vector<Frame>& frames) {
    bool stands = true;
    char bytes[4096];
    // Who sends without end must not keep this thread, nor fill its memory.
    for (int reads = 0; reads < most_reads; ++reads) {
        const ssize_t count = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
        if (count > 0) {
            in_.append(bytes, static_cast<std::size_t>(count));
            continue;
        }
        stands = count < 0 && (errno == EAGAIN || errno == EINTR);
        break;
    }
    std::size_t at = 0;
    while (in_.size() - at >= 5) {
        std::uint32_t length = 0;
        for (int i = 0; i < 4; ++i)
            length |= static_cast<std::uint32_t>(
                          static_cast<unsigned char>(in_[at + static_cast<std::size_t>(i)]))
                      << (8 * i);
        if (length > longest) return false;
        if (in_.size() - at < 5 + std::size_t{length}) break;
        frames.push_back({static_cast<std::uint8_t>(in_[at + 4]), in_.substr(at + 5, length)});
        at += 5 + std::size_t{length};
    }
    in_.erase(0, at);
    return stands;
}

}  // namespace dlprim
