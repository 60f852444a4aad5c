// SPDX-License-Identifier: MIT
// BuildLock, which uses flock(2), and builds under it.
#include "runtime/build_again.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlprim {
namespace {

constexpr int most_tries = 3;
constexpr std::chrono::seconds most_waiting{30};
constexpr std::chrono::milliseconds between_looks{5};

constexpr std::uint64_t program_locks = 64;

/// Returns the files that may serve as the lock `name`: one in `folder`, and one among the user's
/// temporary files.
std::vector<std::filesystem::path> lock_files(const std::optional<std::filesystem::path>& folder,
                                              const std::string& name) {
    std::vector<std::filesystem::path> files;
    std::error_code ignored;
    if (folder) {
        std::filesystem::create_directories(*folder, ignored);
        files.push_back(*folder / (name + ".lock"));
    }
    files.push_back(std::filesystem::temp_directory_path(ignored) /
                    cat("dlprim-", name, "-", ::geteuid(), ".lock"));
    return files;
}

/// Opens the file to be locked. Returns -1 if it is not a plain file of this user: anybody may
/// create a file in a folder for temporary files.
int open_lock_file(const std::filesystem::path& path) {
    const int descriptor =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (descriptor < 0) return -1;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid())
        return descriptor;
    ::close(descriptor);
    return -1;
}

bool lock_within(int descriptor, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
        if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::this_thread::sleep_for(between_looks);
    }
}

}  // namespace

BuildLock::BuildLock() {
    lock_first_of(lock_files(cache_dir(), "build"));
}

BuildLock::BuildLock(const std::filesystem::path& folder, std::string_view source) {
    const std::uint64_t number = hash64(source) % program_locks;
    lock_first_of(lock_files(folder, cat("dlprim-program-", number)));
}

void BuildLock::lock_first_of(const std::vector<std::filesystem::path>& files) {
    const auto deadline = std::chrono::steady_clock::now() + most_waiting;
    for (const std::filesystem::path& file : files) {
        descriptor_ = open_lock_file(file);
        if (descriptor_ < 0) continue;
        if (lock_within(descriptor_, deadline)) return;
        ::close(descriptor_);
        descriptor_ = -1;
    }
}

BuildLock::~BuildLock() {
    if (descriptor_ >= 0) ::close(descriptor_);  // this unlocks the file
}

std::string first_error(std::string_view log) {
    for (const std::string& line : split(log, '\n'))
        for (const char* word : {"error", "Error", "ERROR", "fatal"})
            if (line.find(word) != std::string::npos) return line;
    return {};
}

Attempt build_again_in_turn(const std::function<Attempt()>& build, std::string_view name) {
    Attempt result = build();
    if (result != Attempt::failed_in_silence) return result;
    const BuildLock lock;
    for (int tries = 1; tries < most_tries && result == Attempt::failed_in_silence; ++tries) {
        log(LogLevel::info,
            cat("program '", name, "' did not build, and no error was named: it is built again"));
        result = build();
    }
    return result;
}

}  // namespace dlprim
