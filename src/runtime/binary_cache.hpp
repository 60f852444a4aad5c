// SPDX-License-Identifier: MIT
// BinaryCache: compiled programs on disk, shared by processes.
//
// A file is cache_dir()/kernels/<hash of key>.bin: a magic line, the whole key, a checksum and the
// binary. Anything else about it (cut short, damaged, of another key) makes it as if it were not
// there. Failures to write are log lines. DLPRIM_CACHE=0 turns the cache off.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

class BinaryCache {
  public:
    /// The process's cache as the environment has it now.
    static BinaryCache from_environment();
    BinaryCache() = default;
    explicit BinaryCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

    bool enabled() const { return folder_.has_value(); }
    std::optional<std::string> load(std::string_view key) const;
    void save(std::string_view key, std::string_view binary) const;
    std::filesystem::path file(std::string_view key) const;

  private:
    std::optional<std::filesystem::path> folder_;
};

}  // namespace dlprim
