// SPDX-License-Identifier: MIT
// ReaderProcess; see process.hpp.
#include "untrusted/process.hpp"

#include "untrusted/wire.hpp"

#include <dlprim/error.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace dlprim::tools {

namespace {

// AddressSanitizer and ThreadSanitizer reserve terabytes of addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool limits_addresses = false;
#else
constexpr bool limits_addresses = true;
#endif

/// The positive integer that a variable of the environment holds.
std::uint64_t variable(const char* name, const char* text, std::uint64_t otherwise,
                       std::uint64_t most) {
    if (text == nullptr || *text == 0) return otherwise;
    std::uint64_t value = 0;
    const char* const end = text + std::strlen(text);
    const auto [next, code] = std::from_chars(text, end, value);
    if (code != std::errc() || next != end || value < 1 || value > most)
        throw Error(ErrorKind::invalid_argument, std::string(name) + " is '" + text +
                                                     "', it must be a number from 1 to " +
                                                     std::to_string(most));
    return value;
}

std::string find_reader() {
    if (const char* const given = std::getenv("DLPRIM_READER"); given != nullptr && *given != 0)
        return given;
    if (const std::string found = find_program("dlprim_reader"); !found.empty()) return found;
    throw Error(ErrorKind::not_found,
                "--untrusted needs the program dlprim_reader, which is neither beside this command "
                "nor in ../libexec/dlprim: install both from one build");
}

void limit(decltype(RLIMIT_CORE) what, rlim_t value) {
    const rlimit both{value, value};
    setrlimit(what, &both);
}

/// Becomes the reader. Runs between fork() and exec(), where only calls are allowed that wait for
/// no lock.
[[noreturn]] void become(char* const* arguments, int answer, int nothing, pid_t parent,
                         const ReaderLimits& limits) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    leave_no_core();
    limit(RLIMIT_FSIZE, limits.bytes);
    limit(RLIMIT_CPU, static_cast<rlim_t>(limits.seconds) + 1);
    if (limits_addresses) limit(RLIMIT_AS, limits.bytes);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
    dup2(answer, answer_descriptor);
    // Devices may be open, and not everybody's descriptors are closed by exec().
    for (int other = answer_descriptor + 1; other < 1024; ++other) close(other);
    execv(arguments[0], arguments);
    _exit(127);
}

}  // namespace

ReaderLimits reader_limits() {
    ReaderLimits limits;
    limits.seconds = static_cast<double>(
        variable("DLPRIM_READER_SECONDS", std::getenv("DLPRIM_READER_SECONDS"), 60, 86400));
    limits.bytes = variable("DLPRIM_READER_MIB", std::getenv("DLPRIM_READER_MIB"), 4096, 1 << 24)
                   << 20;
    return limits;
}

ReaderProcess::ReaderProcess(const std::vector<std::string>& arguments, std::string path,
                             const ReaderLimits& limits)
    : path_(std::move(path)),
      limits_(limits),
      deadline_(seconds_from_now(limits.seconds)),
      left_(limits.bytes) {
    start(arguments);
}

ReaderProcess::~ReaderProcess() {
    if (process_ > 0) kill(process_, SIGKILL);
    stop();
}

void ReaderProcess::start(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{find_reader()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const auto fail = [&](const char* what) {
        const std::string why = std::strerror(errno);
        throw Error(ErrorKind::io, "'" + path_ + "' cannot be read: " + what + ": " + why);
    };
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe can be made");
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    // Out of the way of the number that it gets.
    const int answer = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    close(ends[1]);
    const pid_t parent = getpid();
    process_ = nothing < 0 || answer < 0 ? -1 : fork();
    if (process_ == 0) become(pointers.data(), answer, nothing, parent, limits_);
    const int error = errno;
    for (const int descriptor : {nothing, answer})
        if (descriptor >= 0) close(descriptor);
    from_ = ends[0];
    errno = error;
    if (process_ < 0) {
        close(from_);
        fail("no process can be started");
    }
}

int ReaderProcess::stop() {
    if (from_ >= 0) close(from_);
    from_ = -1;
    return reap(process_);
}

void ReaderProcess::ended(int status) {
    throw Error(ErrorKind::io, "'" + path_ + "' cannot be read: the process that reads it " +
                                   how_it_ended(status) +
                                   "; the file may be damaged, or made to harm");
}

void ReaderProcess::makes_no_sense(const std::string& why) {
    throw Error(ErrorKind::format,
                "'" + path_ + "' cannot be read: the process that reads it answers nonsense (" +
                    why + "); the file may be made to harm");
}

std::size_t ReaderProcess::read_some(void* to, std::size_t bytes) {
    bool late = false;
    const std::size_t count = tools::read_some(from_, to, bytes, deadline_, late);
    if (!late) return count;
    kill(process_, SIGKILL);
    throw Error(ErrorKind::io, "'" + path_ +
                                   "' cannot be read: the process that reads it took longer than " +
                                   std::to_string(static_cast<int>(limits_.seconds)) +
                                   " s (DLPRIM_READER_SECONDS)");
}

void ReaderProcess::read(void* to, std::size_t bytes) {
    if (bytes > left_)
        makes_no_sense("more than " + std::to_string(limits_.bytes >> 20) +
                       " MiB, the limit by DLPRIM_READER_MIB");
    left_ -= bytes;
    for (std::size_t at = 0; at < bytes;) {
        const std::size_t count = read_some(static_cast<char*>(to) + at, bytes - at);
        if (count == 0) {
            const int status = stop();
            if (status == 0) makes_no_sense("it ends early");
            ended(status);
        }
        at += count;
    }
}

std::uint64_t ReaderProcess::number() {
    std::uint64_t value = 0;
    read(&value, sizeof(value));
    return value;
}

std::uint64_t ReaderProcess::number(std::uint64_t most) {
    const std::uint64_t value = number();
    if (value > most)
        makes_no_sense(std::to_string(value) + " where at most " + std::to_string(most) +
                       " is possible");
    return value;
}

double ReaderProcess::real() {
    double value = 0;
    read(&value, sizeof(value));
    return value;
}

std::string ReaderProcess::text(std::size_t most) {
    std::string value(number(most), '\0');
    read(value.data(), value.size());
    return value;
}

std::vector<std::byte> ReaderProcess::data(std::uint64_t bytes) {
    constexpr std::size_t piece = 16 << 20;
    if (bytes > left_)
        makes_no_sense("data of " + std::to_string(bytes) + " bytes, more than the " +
                       std::to_string(limits_.bytes >> 20) +
                       " MiB that it may take (DLPRIM_READER_MIB)");
    std::vector<std::byte> values;
    while (values.size() < bytes) {
        const std::size_t at = values.size();
        values.resize(at + std::min<std::uint64_t>(piece, bytes - at));
        read(values.data() + at, values.size() - at);
    }
    return values;
}

void ReaderProcess::finish() {
    if (number() != wire_end) makes_no_sense("it has no end");
    char more = 0;
    if (read_some(&more, 1) != 0) makes_no_sense("there is more after its end");
    const int status = stop();
    if (status != 0) ended(status);
}

}  // namespace dlprim::tools
