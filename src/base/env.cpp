// SPDX-License-Identifier: MIT
// Environment variables, the cache folder, and files that are written whole or not at all.
#include "base/env.hpp"

#include "base/file_size_signal.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace dlprim {
namespace {

class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    ~File() { close(); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int get() const { return descriptor_; }
    bool close() {
        const int descriptor = descriptor_;
        descriptor_ = -1;
        return descriptor < 0 || ::close(descriptor) == 0;
    }

  private:
    int descriptor_;
};

bool write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// The variables that the program has set itself, and what was read of all of them.
struct Variables {
    std::mutex mutex;
    std::map<std::string, std::string> set;
    std::map<std::string, std::optional<std::string>> read;
};

// Never destroyed: statics of programs may still open devices. A child of fork() finds the mutex
// free, whatever other threads were doing.
Variables& variables() {
    static auto* const instance = [] {
        auto* const made = new Variables;
        pthread_atfork([] { variables().mutex.lock(); }, [] { variables().mutex.unlock(); },
                       [] { variables().mutex.unlock(); });
        return made;
    }();
    return *instance;
}

}  // namespace

std::optional<std::string> env(const char* name) {
    Variables& all = variables();
    const std::lock_guard lock(all.mutex);
    std::optional<std::string> value;
    if (const auto found = all.set.find(name); found != all.set.end())
        value = found->second;
    else if (const char* const text = std::getenv(name); text != nullptr && *text != '\0')
        value = text;
    all.read[name] = value;
    return value;
}

std::optional<bool> env_flag(const char* name) {
    const std::optional<std::string> text = env(name);
    if (!text) return std::nullopt;
    require(*text == "0" || *text == "1", name, " must be 0 or 1, not '", *text, "'");
    return *text == "1";
}

void override_env(const std::map<std::string, std::string>& values, std::string_view what) {
    Variables& all = variables();
    const std::lock_guard lock(all.mutex);
    for (const auto& [name, value] : values) {
        const auto read = all.read.find(name);
        require(read == all.read.end() || read->second == value, what,
                " is in use already: set it before the first Context");
    }
    for (const auto& [name, value] : values) all.set[name] = value;
}

std::optional<std::filesystem::path> cache_dir() {
    if (auto folder = env("DLPRIM_CACHE_DIR")) return std::filesystem::path(*folder);
    if (auto folder = env("XDG_CACHE_HOME")) return std::filesystem::path(*folder) / "dlprim";
    if (auto folder = env("HOME")) return std::filesystem::path(*folder) / ".cache" / "dlprim";
    return std::nullopt;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
    static std::atomic<unsigned> serial{0};
    const NoFileSizeSignal quiet;
    check_target(path.string());
    const std::string temporary =
        cat(path.string(), ".", ::getpid(), ".", serial.fetch_add(1), ".tmp");
    const auto give_up = [&](const char* what) {
        const int error = errno;
        ::unlink(temporary.c_str());
        fail(ErrorKind::io, "cannot ", what, " '", path.string(), "': ", std::strerror(error));
    };
    File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) give_up("create");
    if (!write_all(file.get(), bytes) || ::fsync(file.get()) != 0 || !file.close())
        give_up("write");
    if (::rename(temporary.c_str(), path.c_str()) != 0) give_up("replace");
}

std::string read_file(const std::filesystem::path& path, std::uint64_t most) {
    const InputFile file(path.string());
    const auto check = [&](std::uint64_t bytes) {
        if (bytes > most)
            fail(ErrorKind::format, "'", path.string(), "' is longer than the ", most,
                 " bytes that are read of such a file");
    };
    check(file.size());
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(file.size()) + 1);
    // Some files of the system report no size, and any file may grow while it is read.
    char block[65536];
    while (const std::size_t got = file.read(bytes.size(), block, sizeof(block))) {
        bytes.append(block, got);
        check(bytes.size());
    }
    return bytes;
}

}  // namespace dlprim
