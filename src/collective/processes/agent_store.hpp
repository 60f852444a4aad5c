// SPDX-License-Identifier: MIT
// The store that torchrun's agent keeps at MASTER_ADDR and MASTER_PORT (PyTorch's TCPStore), in
// which the first process of a run leaves the address where the others find it.
#pragma once

#include <chrono>
#include <string>

namespace dlprim {

/// Both throw Error(io) where no such store answers. The second waits for the key.
void put_into_agent_store(const std::string& address, int port, const std::string& key,
                          const std::string& value, std::chrono::duration<double> most);
std::string get_from_agent_store(const std::string& address, int port, const std::string& key,
                                 std::chrono::duration<double> most);

}  // namespace dlprim
