// SPDX-License-Identifier: MIT
// A cache folder for a single test.
#pragma once

#include "base/env.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <unistd.h>

namespace dlprim {

// Sets DLPRIM_CACHE_DIR to a new folder during its lifetime. Contexts that are opened meanwhile do
// not probe instructions, so everything that is compiled and cached belongs to the test.
class CacheFolder {
  public:
    CacheFolder()
        : path_(std::filesystem::temp_directory_path() /
                ("dlprim_cache_" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
        set("DLPRIM_CACHE_DIR", path_.c_str(), old_folder_);
        set("DLPRIM_TRAITS", "wgmma=0,mma=0,subgroup_size=0", old_traits_);
    }
    ~CacheFolder() {
        reset("DLPRIM_CACHE_DIR", old_folder_);
        reset("DLPRIM_TRAITS", old_traits_);
        std::filesystem::remove_all(path_);
    }
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path only_binary() const {
        std::filesystem::path found;
        int files = 0;
        for (const auto& entry : std::filesystem::directory_iterator(path_ / "kernels")) {
            found = entry.path();
            ++files;
        }
        CHECK(files == 1);
        return found;
    }

  private:
    static void set(const char* variable, const char* value, std::optional<std::string>& old) {
        old = env(variable);
        ::setenv(variable, value, 1);
    }
    static void reset(const char* variable, const std::optional<std::string>& old) {
        old ? ::setenv(variable, old->c_str(), 1) : ::unsetenv(variable);
    }
    std::filesystem::path path_;
    std::optional<std::string> old_folder_, old_traits_;
};

}  // namespace dlprim
