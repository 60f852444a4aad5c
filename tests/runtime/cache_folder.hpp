// SPDX-License-Identifier: MIT
// A cache folder for a single test.
#pragma once

#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/folder.hpp"

#include <filesystem>

namespace dlprim {

// Sets DLPRIM_CACHE_DIR to a new folder during its lifetime. Contexts that are opened meanwhile do
// not probe instructions, so everything that is compiled and cached belongs to the test.
class CacheFolder {
  public:
    std::filesystem::path path() const { return folder_.path() / "cache"; }
    std::filesystem::path only_binary() const {
        std::filesystem::path found;
        int files = 0;
        for (const auto& entry : std::filesystem::directory_iterator(path() / "kernels")) {
            found = entry.path();
            ++files;
        }
        CHECK(files == 1);
        return found;
    }

  private:
    testing::Folder folder_;
    testing::Variable directory_{"DLPRIM_CACHE_DIR", path().string()};
    testing::Variable traits_{"DLPRIM_TRAITS", "wgmma=0,mma=0,subgroup_size=0"};
};

}  // namespace dlprim
