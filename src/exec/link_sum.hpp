// SPDX-License-Identifier: MIT
// link_sum: the additions of an exchange (collective/exchange/exchange.hpp), whose sum goes to
// several vectors of floats, where some of them lie in the memory of another device. They run
// beside the kernels of a network. On GPUs a few work-groups with many reads under way fill the
// link as well as all work-groups of a device would, and leave the device to those kernels. Other
// devices, types and vectors that do not lie at multiples of 16 bytes take a Pointwise call.
#pragma once

#include "collective/devices/peer_memory.hpp"

namespace dlprim {

/// Threads: several at once, each with contexts of its own. Contexts must outlive it.
AddPair link_sum();

}  // namespace dlprim
