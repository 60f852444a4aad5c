// SPDX-License-Identifier: MIT
// InputFile: stat, open without waiting, fstat.
#include "base/input_file.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace dlprim {
namespace {

const char* kind_of(const struct stat& status) {
    switch (status.st_mode & S_IFMT) {
        case S_IFDIR:
            return "a directory";
        case S_IFIFO:
            return "a FIFO";
        case S_IFSOCK:
            return "a socket";
        case S_IFCHR:
        case S_IFBLK:
            return "a device";
        default:
            return "something else";
    }
}

void check_regular(const std::string& path, const struct stat& status) {
    if (!S_ISREG(status.st_mode))
        fail(ErrorKind::io, "'", path, "' is not a file that can be read but ", kind_of(status));
}

[[noreturn]] void cannot_read(const std::string& path, int code) {
    if (code == ENOENT || code == ENOTDIR)
        fail(ErrorKind::not_found, "there is no file '", path, "'",
             is_device_like(path) ? ", which seems to be the name of a device" : "");
    fail(ErrorKind::io, "cannot read '", path, "': ", std::strerror(code));
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
    if (::stat(path.c_str(), &status_) != 0) cannot_read(path, errno);
    check_regular(path, status_);
    // O_NONBLOCK: the path may name something else by now, such as a FIFO.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) cannot_read(path, errno);
    try {
        if (::fstat(descriptor_, &status_) != 0) cannot_read(path, errno);
        check_regular(path, status_);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

InputFile::~InputFile() {
    ::close(descriptor_);
}

bool InputFile::is_unchanged() const {
    struct stat now {};
    return ::fstat(descriptor_, &now) == 0 && now.st_size == status_.st_size &&
           now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
}

std::size_t InputFile::read(std::uint64_t position, void* data, std::size_t bytes) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got = ::pread(descriptor_, static_cast<char*>(data) + done, bytes - done,
                                    static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) cannot_read(path_, errno);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

void check_target(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        fail(ErrorKind::io, "cannot write '", path, "': it is not a file but ", kind_of(status));
}

}  // namespace dlprim
