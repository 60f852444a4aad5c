// SPDX-License-Identifier: MIT
// Buffer identities.
#include "runtime/buffer.hpp"

#include <atomic>

namespace dlprim {

std::uint64_t Buffer::next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace dlprim
