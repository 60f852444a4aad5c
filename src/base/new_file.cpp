// SPDX-License-Identifier: MIT
// NewFile.
#include "base/new_file.hpp"

#include "base/input_file.hpp"
#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace dlprim {

NewFile::NewFile(const std::string& path) : path_(path), temporary_(cat(path, ".tmp")) {
    check_target(path);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) give_up("create");
}

NewFile::~NewFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
}

void NewFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) give_up("write");
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
}

void NewFile::commit() {
    if (::fsync(descriptor_) != 0) give_up("write");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("replace");
    ::close(descriptor_);
    descriptor_ = -1;
}

void NewFile::give_up(const char* what) const {
    fail(ErrorKind::io, "cannot ", what, " '", path_, "': ", std::strerror(errno));
}

}  // namespace dlprim
