// SPDX-License-Identifier: MIT
// BinaryCache: compiled programs on disk, shared by processes.
//
// A file is cache_dir()/kernels/<hash of key>.bin: a magic line, the whole key, a checksum and the
// binary. A file that is cut short, damaged or of another key counts as absent. Failed writes are
// only logged. DLPRIM_CACHE=0 turns the cache off. What the cache does not have may be in a second
// folder of such files, which is only read (runtime/shipped_programs.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

class BinaryCache {
  public:
    /// A cache as the environment configures it now.
    static BinaryCache from_environment();
    BinaryCache() = default;
    explicit BinaryCache(std::filesystem::path folder,
                         std::optional<std::filesystem::path> shipped = {})
        : folder_(std::move(folder)), shipped_(std::move(shipped)) {}

    bool enabled() const { return folder_.has_value(); }
    /// The cache must be enabled.
    const std::filesystem::path& folder() const { return *folder_; }
    /// Whether files can be written. Makes the folder if it is missing.
    bool writable() const;
    /// Whether one of the folders has a file for the key.
    bool has(std::string_view key) const;
    std::optional<std::string> load(std::string_view key) const;
    void save(std::string_view key, std::string_view binary) const;
    /// The same, where a failed write is an error. Throws Error(io).
    void write(std::string_view key, std::string_view binary) const;
    std::filesystem::path file(std::string_view key) const;

  private:
    std::optional<std::filesystem::path> folder_, shipped_;
};

}  // namespace dlprim
