// SPDX-License-Identifier: MIT
// Peer: the other end of a request's connection. httplib tells handlers its address alone, by which
// the socket is found.
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace dlprim::tools {

class Peer {
  public:
    /// As httplib::Request has them.
    Peer(const std::string& address, int port) {
        std::error_code none;
        for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", none)) {
            const int socket = std::atoi(file.path().filename().c_str());
            if (address_of(socket) == address + " " + std::to_string(port)) socket_ = socket;
        }
    }
    /// False once the other end has closed the connection. The handler still runs.
    bool is_there() const {
        if (socket_ < 0) return true;
        char byte = 0;
        const ssize_t count = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    }

  private:
    static std::string address_of(int socket) {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        char host[NI_MAXHOST], port[NI_MAXSERV];
        auto* const named = reinterpret_cast<sockaddr*>(&address);
        if (getpeername(socket, named, &size) != 0 ||
            getnameinfo(named, size, host, sizeof host, port, sizeof port,
                        NI_NUMERICHOST | NI_NUMERICSERV) != 0)
            return "";
        return std::string(host) + " " + port;
    }

    int socket_ = -1;  ///< httplib's
};

}  // namespace dlprim::tools
