// SPDX-License-Identifier: MIT
// RunFolder.
#include "api/training/run_folder.hpp"

#include "base/text.hpp"

#include <dlprim/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "checkpoint_";
constexpr const char* suffix = ".h5";

bool starts_with(const std::string& text, std::string_view start) {
    return text.compare(0, start.size(), start) == 0;
}

/// The numbers in the name of a checkpoint: "checkpoint_2.h5" or "checkpoint_2_130.h5".
bool parse_name(const std::string& name, RunFolder::Checkpoint& checkpoint) {
    if (!starts_with(name, prefix) || name.size() < std::strlen(prefix) + std::strlen(suffix) ||
        name.substr(name.size() - std::strlen(suffix)) != suffix)
        return false;
    const char* at = name.data() + std::strlen(prefix);
    const char* end = name.data() + name.size() - std::strlen(suffix);
    auto read = std::from_chars(at, end, checkpoint.epochs_done);
    if (read.ec != std::errc() || checkpoint.epochs_done < 0) return false;
    checkpoint.batches_done = 0;
    if (read.ptr != end) {
        if (*read.ptr != '_') return false;
        read = std::from_chars(read.ptr + 1, end, checkpoint.batches_done);
        if (read.ec != std::errc() || read.ptr != end || checkpoint.batches_done < 1) return false;
    }
    checkpoint.name = name;
    return true;
}

bool is_result(const std::string& name) {
    RunFolder::Checkpoint unused;
    for (const char* known : {"model.h5", "best.h5", "metrics.csv", "report.html"})
        if (name == known) return true;
    return parse_name(name, unused) || starts_with(name, "events.out.tfevents.");
}

/// Whether it is a file that was to become a result: "NAME.tmp-XXXXXX" or "NAME.PID.N.tmp".
bool is_temporary(const std::string& name) {
    std::string target;
    if (const std::size_t at = name.rfind(".tmp-");
        at != std::string::npos && name.size() == at + 11) {
        target = name.substr(0, at);
    } else if (name.size() > 4 && name.substr(name.size() - 4) == ".tmp") {
        target = name.substr(0, name.size() - 4);
        for (int part = 0; part < 2; ++part) {
            const std::size_t digits = target.find_last_not_of("0123456789");
            if (digits == std::string::npos || target[digits] != '.') return false;
            target.resize(digits);
        }
    }
    return !target.empty() && is_result(target);
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        names.push_back(at->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

/// "process 123 on host 'name'", as the lock file of a run says it.
std::string owner_of(int descriptor) {
    char text[300] = {};
    const ssize_t read = ::pread(descriptor, text, sizeof(text) - 1, 0);
    const std::vector<std::string> words =
        split(std::string(text, read > 0 ? static_cast<std::size_t>(read) : 0), ' ');
    if (words.size() < 2) return "another process";
    return cat("process ", words[0], " on host '", split(words[1], '\n')[0], "'");
}

}  // namespace

RunFolder::RunFolder(std::string path, bool owns) : path_(std::move(path)), owns_(owns) {
    require(!path_.empty(), "the name of the folder for results is empty");
    std::error_code error;
    if (owns_ && fs::is_directory(path_, error)) lock();
}

RunFolder::~RunFolder() {
    if (lock_ < 0) return;
    // Removed while it is locked: whoever waits for it finds that it is no longer there.
    ::unlink(lock_file_.c_str());
    ::close(lock_);
}

std::string RunFolder::file(const std::string& name) const {
    return (fs::path(path_) / name).string();
}

void RunFolder::make() {
    if (lock_ >= 0 || !owns_) return;
    std::error_code error;
    fs::create_directories(path_, error);
    // Another start would meet a path that cannot be a folder again, but not a full disk.
    const bool lasts = error == std::errc::not_a_directory || error == std::errc::file_exists ||
                       error == std::errc::permission_denied ||
                       error == std::errc::no_such_file_or_directory ||
                       error == std::errc::read_only_file_system;
    if (error)
        fail(lasts ? ErrorKind::invalid_argument : ErrorKind::io, "folder '", path_,
             "' cannot be made: ", error.message());
    lock();
}

void RunFolder::lock() {
    lock_file_ = file("run.lock");
    for (;;) {
        const int opened = ::open(lock_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (opened < 0)
            fail(ErrorKind::io, "cannot write to folder '", path_, "': ", std::strerror(errno));
        if (::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            const std::string owner = owner_of(opened);
            ::close(opened);
            fail(ErrorKind::io, "folder '", path_, "' is in use by another training run, ", owner,
                 "; wait until that ends, or give this run another folder");
        }
        // A run that ended in the meantime has removed the file that this one locked.
        struct stat mine {
        }, there{};
        if (::fstat(opened, &mine) == 0 && ::stat(lock_file_.c_str(), &there) == 0 &&
            mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) {
            lock_ = opened;
            break;
        }
        ::close(opened);
    }
    const std::string owner = cat(::getpid(), " ", host_name(), "\n");
    if (::ftruncate(lock_, 0) != 0 ||
        ::pwrite(lock_, owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
        // It is only read by people: a full disk is found where it matters.
    }
    remove_temporary_files();
}

void RunFolder::remove_temporary_files() const {
    for (const std::string& name : names_in(path_))
        if (is_temporary(name)) ::unlink(file(name).c_str());
}

std::vector<std::string> RunFolder::results() const {
    std::vector<std::string> names = names_in(path_);
    names.erase(std::remove_if(names.begin(), names.end(),
                               [](const std::string& name) { return !is_result(name); }),
                names.end());
    return names;
}

void RunFolder::remove_results() const {
    for (const std::string& name : results()) {
        if (::unlink(file(name).c_str()) != 0 && errno != ENOENT)
            fail(ErrorKind::io, "cannot remove '", file(name), "': ", std::strerror(errno));
    }
}

std::string RunFolder::name_of(int epochs_done, long long batches_done) {
    return batches_done == 0 ? cat(prefix, epochs_done, suffix)
                             : cat(prefix, epochs_done, "_", batches_done, suffix);
}

std::vector<RunFolder::Checkpoint> RunFolder::checkpoints() const {
    std::vector<Checkpoint> found;
    for (const std::string& name : names_in(path_)) {
        Checkpoint checkpoint;
        if (parse_name(name, checkpoint)) found.push_back(checkpoint);
    }
    std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
        return std::tie(a.epochs_done, a.batches_done) < std::tie(b.epochs_done, b.batches_done);
    });
    return found;
}

}  // namespace dlprim
