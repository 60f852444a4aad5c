// SPDX-License-Identifier: MIT
// Folder: a place for files of a test.
#pragma once

#include "support/catch.hpp"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace dlprim::testing {

/// A folder of its own, which is removed with the object.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "dlprim-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) FAIL("no temporary folder");
        path_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    /// Writes a file, and returns its path.
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }
    /// How many files and folders it has.
    std::size_t count() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                      std::filesystem::directory_iterator()));
    }

  private:
    std::filesystem::path path_;
};

}  // namespace dlprim::testing
