// SPDX-License-Identifier: MIT
// Child; see child.hpp.
#include "doctor/child.hpp"

#include "doctor/printable.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace dlprim::doctor {

namespace {

using Clock = std::chrono::steady_clock;

/// Where the probe reads questions and writes answers. Drivers print to standard output.
constexpr int question_descriptor = 3, answer_descriptor = 4;

bool write_all(int to, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t count = write(to, text.data() + at, text.size() - at);
        if (count < 0 && errno != EINTR) return false;
        at += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return true;
}

/// Waits for a line until `end`. Returns false if there is none; `late` says whether time is over.
bool read_line(int from, Clock::time_point end, std::string& line, bool& late) {
    char piece[65536];
    while (line.empty() || line.back() != '\n') {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        late = left <= 0;
        if (late) return false;
        pollfd waiting{from, POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60000)));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t count = ready < 0 ? -1 : read(from, piece, sizeof(piece));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        line.append(piece, static_cast<std::size_t>(count));
    }
    line.pop_back();
    return true;
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return std::string("the driver's process was ended by signal: ") +
               strsignal(WTERMSIG(status));
    return "the driver's process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

int wait_for(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

void leave_no_core() {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

std::string Child::start() {
    std::signal(SIGPIPE, SIG_IGN);
    int question[2], answer[2];
    if (pipe2(question, O_CLOEXEC) != 0) return std::strerror(errno);
    if (pipe2(answer, O_CLOEXEC) != 0) {
        close(question[0]);
        close(question[1]);
        return std::strerror(errno);
    }
    if (printed_ >= 0) close(printed_);
    printed_ = memfd_create("dlprim_doctor", MFD_CLOEXEC);
    process_ = fork();
    if (process_ == 0) {
        leave_no_core();
        std::signal(SIGPIPE, SIG_DFL);
        const int nothing = open("/dev/null", O_RDONLY);
        // First out of the way of the numbers that they get.
        const int in = fcntl(question[0], F_DUPFD, 10), out = fcntl(answer[1], F_DUPFD, 10);
        dup2(nothing, STDIN_FILENO);
        dup2(printed_ >= 0 ? printed_ : nothing, STDOUT_FILENO);
        dup2(printed_ >= 0 ? printed_ : nothing, STDERR_FILENO);
        dup2(in, question_descriptor);
        dup2(out, answer_descriptor);
        close(in);
        close(out);
        execl(program_.c_str(), program_.c_str(), static_cast<char*>(nullptr));
        const std::string why = program_ + ": " + std::strerror(errno) + "\n";
        write_all(STDERR_FILENO, why);
        _exit(127);
    }
    close(question[0]);
    close(answer[1]);
    to_ = question[1];
    from_ = answer[0];
    return process_ < 0 ? std::strerror(errno) : "";
}

int Child::stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    int status = 0;
    if (process_ > 0) {
        // It has a moment to end by itself, which tells how.
        for (int tries = 0; tries < 100; ++tries) {
            const pid_t ended = waitpid(process_, &status, WNOHANG);
            if (ended == process_) {
                process_ = -1;
                return status;
            }
            usleep(10000);
        }
        kill(process_, SIGKILL);
        status = wait_for(process_);
    }
    process_ = -1;
    return status;
}

std::string Child::last_words() const {
    constexpr off_t most = 500;
    const off_t end = printed_ < 0 ? 0 : lseek(printed_, 0, SEEK_END);
    std::string text(static_cast<std::size_t>(std::clamp<off_t>(end, 0, most)), '\0');
    const ssize_t got =
        text.empty() ? 0
                     : pread(printed_, text.data(), text.size(), std::max<off_t>(0, end - most));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    text = printable(text);
    text.erase(0, text.find_first_not_of(' '));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

Json Child::ask(const Json& question, double seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
    if (process_ < 0) {
        const std::string why = start();
        if (!why.empty()) {
            stop();
            return {{"error", "no process can be started: " + why}, {"crashed", true}};
        }
    }
    std::string line;
    bool late = false;
    if (write_all(to_, question.dump() + '\n') && read_line(from_, end, line, late)) {
        Json answer = Json::parse(line, nullptr, false);
        if (answer.is_object()) return answer;
    }
    if (late) {
        kill(process_, SIGKILL);
        stop();
        const std::string limit = std::to_string(static_cast<int>(seconds));
        return {{"error", "the driver took longer than " + limit + " s"},
                {"crashed", true},
                {"late", true}};
    }
    std::string why = how_it_ended(stop());
    const std::string words = last_words();
    if (!words.empty()) why += "; it said last: " + words;
    return {{"error", why}, {"crashed", true}};
}

std::string find_probe() {
    std::error_code code;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
    if (code) return {};
    const auto folder = self.parent_path();
    for (const auto& path : {folder / "dlprim_doctor_probe",
                             folder.parent_path() / "libexec/dlprim/dlprim_doctor_probe"})
        if (access(path.c_str(), X_OK) == 0) return path.string();
    return {};
}

std::string why_not_loaded(const std::string& library) {
    int answer[2];
    if (pipe2(answer, O_CLOEXEC) != 0) return std::strerror(errno);
    const pid_t process = fork();
    if (process == 0) {
        leave_no_core();
        const int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        const bool loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
        const char* const why = loaded ? nullptr : dlerror();
        write_all(answer[1], loaded ? "+" : why == nullptr ? "it does not load" : why);
        _exit(0);
    }
    close(answer[1]);
    std::string text;
    char piece[1024];
    const auto end = Clock::now() + std::chrono::seconds(20);
    bool late = false;
    while (process > 0 && !late) {
        pollfd waiting{answer[0], POLLIN, 0};
        const int ready = poll(&waiting, 1, 1000);
        late = Clock::now() > end;
        if (ready <= 0) continue;
        const ssize_t count = read(answer[0], piece, sizeof(piece));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        text.append(piece, static_cast<std::size_t>(count));
    }
    close(answer[0]);
    if (process < 0) return "no process can be started";
    if (late) kill(process, SIGKILL);
    const int status = wait_for(process);
    if (late) return "loading it takes longer than 20 s";
    if (text == "+") return {};
    return text.empty() ? how_it_ended(status) : text;
}

}  // namespace dlprim::doctor
