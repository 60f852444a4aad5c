// SPDX-License-Identifier: MIT
// What the tests of HDF5 files share: a folder of their own, an error's message, a file's bytes.
#pragma once

#include "formats/hdf5_file.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dlprim {

namespace fs = std::filesystem;

struct Folder {
    fs::path path = fs::temp_directory_path() / ("dlprim-hdf5-test-" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    std::string file(const std::string& name) const { return (path / name).string(); }
    std::size_t count() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path), fs::directory_iterator()));
    }
};

template <typename Action>
std::string message(ErrorKind kind, Action action) {
    try {
        action();
    } catch (const Error& error) {
        CHECK(error.kind() == kind);
        return error.what();
    }
    return "no error";
}

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace dlprim
