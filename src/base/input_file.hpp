// SPDX-License-Identifier: MIT
// InputFile: a regular file, opened for reading. A path from a user may name anything. Opening a
// FIFO waits until somebody writes to it, and opening a device may have side effects. So the path
// is checked before it is opened, it is opened in a mode that does not wait, and it is checked
// again afterwards.
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
    /// The file's status at the time when it was opened.
    const struct stat& status() const { return status_; }
    std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
    /// Whether nobody has written to the file since it was opened.
    bool is_unchanged() const;

    /// Reads up to `bytes` bytes at `position` and returns how many were read, which is fewer only
    /// at the end of the file. Throws Error(io).
    std::size_t read(std::uint64_t position, void* data, std::size_t bytes) const;

  private:
    std::string path_;
    int descriptor_ = -1;
    struct stat status_ {};
};

/// Throws Error(io) if `path` names something that is not a regular file, because nobody wants a
/// device or a FIFO to be replaced by a file.
void check_target(const std::string& path);

}  // namespace dlprim
