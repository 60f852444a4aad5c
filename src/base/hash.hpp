// SPDX-License-Identifier: MIT
// 128-bit non-cryptographic hash of bytes, for cache keys and file names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dlprim {

/// 64-bit hash (FNV-1a with a final mix), chained through `seed`.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0) noexcept;
/// 32 hexadecimal digits of two independent 64-bit hashes.
std::string hash_hex(std::string_view bytes);

}  // namespace dlprim
