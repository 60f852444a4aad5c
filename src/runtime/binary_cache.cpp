// SPDX-License-Identifier: MIT
// BinaryCache: a file that is incomplete, damaged or of another key counts as absent.
#include "runtime/binary_cache.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/shipped_programs.hpp"

#include <dlprim/log.hpp>

#include <cstring>
#include <utility>

#include <unistd.h>

namespace dlprim {
namespace {

constexpr std::string_view magic = "dlprim kernel binary 1\n";

std::string number(std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Removes a number from the front of `bytes`. Returns false if `bytes` is too short.
bool take(std::string_view& bytes, std::uint64_t& value) {
    if (bytes.size() < sizeof(value)) return false;
    std::memcpy(&value, bytes.data(), sizeof(value));
    bytes.remove_prefix(sizeof(value));
    return true;
}

// The binary inside a cache file, or nothing.
std::optional<std::string_view> parse(std::string_view bytes, std::string_view key) {
    if (bytes.substr(0, magic.size()) != magic) return std::nullopt;
    bytes.remove_prefix(magic.size());
    std::uint64_t key_size = 0, size = 0, sum = 0;
    if (!take(bytes, key_size) || key_size != key.size() || bytes.substr(0, key.size()) != key)
        return std::nullopt;
    bytes.remove_prefix(key.size());
    if (!take(bytes, size) || !take(bytes, sum) || size != bytes.size() || sum != hash64(bytes))
        return std::nullopt;
    return bytes;
}

std::optional<std::string> load_from(const std::filesystem::path& path, std::string_view key) {
    std::error_code code;
    if (!std::filesystem::exists(path, code)) return std::nullopt;
    try {
        const std::string bytes = read_file(path);
        if (const auto binary = parse(bytes, key)) return std::string(*binary);
        log(LogLevel::info,
            cat("kernel cache: '", path.string(), "' is damaged and will be rebuilt"));
    } catch (const Error& error) {
        log(LogLevel::info, cat("kernel cache: ", error.what()));
    }
    return std::nullopt;
}

}  // namespace

BinaryCache BinaryCache::from_environment() {
    if (env("DLPRIM_CACHE").value_or("1") == "0") return {};
    const auto folder = cache_dir();
    if (!folder) return {};
    auto shipped = shipped_programs();
    if (shipped) *shipped /= "kernels";
    return BinaryCache(*folder / "kernels", std::move(shipped));
}

bool BinaryCache::writable() const {
    if (!folder_) return false;
    std::error_code code;
    std::filesystem::create_directories(*folder_, code);
    return ::access(folder_->c_str(), W_OK | X_OK) == 0;
}

std::filesystem::path BinaryCache::file(std::string_view key) const {
    return *folder_ / (hash_hex(key) + ".bin");
}

bool BinaryCache::has(std::string_view key) const {
    std::error_code code;
    if (!folder_) return false;
    const std::filesystem::path own = file(key);
    return std::filesystem::exists(own, code) ||
           (shipped_ && std::filesystem::exists(*shipped_ / own.filename(), code));
}

std::optional<std::string> BinaryCache::load(std::string_view key) const {
    if (!folder_) return std::nullopt;
    const std::filesystem::path own = file(key);
    if (auto found = load_from(own, key)) return found;
    return shipped_ ? load_from(*shipped_ / own.filename(), key) : std::nullopt;
}

void BinaryCache::save(std::string_view key, std::string_view binary) const {
    if (!folder_) return;
    try {
        write(key, binary);
    } catch (const Error& error) {
        log(LogLevel::info, cat("kernel cache: ", error.what()));
    }
}

void BinaryCache::write(std::string_view key, std::string_view binary) const {
    std::error_code code;
    std::filesystem::create_directories(*folder_, code);
    std::string bytes(magic);
    bytes += number(key.size());
    bytes += key;
    bytes += number(binary.size());
    bytes += number(hash64(binary));
    bytes += binary;
    write_file_atomically(file(key), bytes);
}

}  // namespace dlprim
