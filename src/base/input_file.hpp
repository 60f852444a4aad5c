// SPDX-License-Identifier: MIT
// InputFile: a regular file, opened for reading. A path from a user may name anything: to open a
// FIFO waits for whoever writes to it, and to open a device may do something to the device. So a
// path is looked at before it is opened, opened so that nothing is waited for, and looked at again.
#pragma once

#include <sys/stat.h>
#include <cstddef>
#include <cstdint>
#include <string>

namespace dlprim {

class InputFile {
  public:
    /// Throws Error: not_found (no such file), io (a directory, FIFO, socket or device, or a file
    /// that may not be read).
    explicit InputFile(const std::string& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const { return path_; }
    int descriptor() const { return descriptor_; }
    /// As it was when it was opened.
    const struct stat& status() const { return status_; }
    std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
    /// Whether nobody has written to it since it was opened.
    bool is_unchanged() const;

    /// Reads `bytes` bytes at `position`, or what there is of them; returns how many there were.
    /// Throws Error(io).
    std::size_t read(std::uint64_t position, void* data, std::size_t bytes) const;

  private:
    std::string path_;
    int descriptor_ = -1;
    struct stat status_ {};
};

/// Throws Error(io) where `path` names something that is not a regular file: to replace a device or
/// FIFO by a file is never what was meant.
void check_target(const std::string& path);

}  // namespace dlprim
