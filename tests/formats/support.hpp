// SPDX-License-Identifier: MIT
// What the tests of HDF5 files share: a file's bytes.
#pragma once

#include "formats/hdf5_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dlprim {

namespace fs = std::filesystem;

using testing::Folder;
using testing::message_of;

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace dlprim
