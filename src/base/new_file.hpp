// SPDX-License-Identifier: MIT
// NewFile: a file that is written piece by piece and takes its name when it is whole.
#pragma once

#include <string>
#include <string_view>

namespace dlprim {

class NewFile {
  public:
    /// Throws Error(io), also where `path` names something that is no regular file.
    explicit NewFile(const std::string& path);
    /// Removes what was written, unless it was committed.
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void append(std::string_view bytes);
    /// Gives the file its name, in the place of one that has it.
    void commit();

  private:
    [[noreturn]] void give_up(const char* what) const;

    std::string path_, temporary_;
    int descriptor_ = -1;
};

}  // namespace dlprim
