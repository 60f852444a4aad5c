// SPDX-License-Identifier: MIT
// Child processes; see child_process.hpp.
#include "child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

namespace dlprim::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// False where the time is over or the process has ended.
bool read_line(int from, Deadline deadline, std::string& line, bool& late) {
    char piece[65536];
    while (line.empty() || line.back() != '\n') {
        const std::size_t count = read_some(from, piece, sizeof(piece), deadline, late);
        if (count == 0) return false;
        line.append(piece, count);
    }
    line.pop_back();
    return true;
}

}  // namespace

Deadline seconds_from_now(double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(to, text.data(), text.size());
        if (count < 0 && errno != EINTR) return false;
        text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return true;
}

std::size_t read_some(int from, void* to, std::size_t bytes, Deadline deadline, bool& late) {
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        late = left <= 0;
        if (late) return 0;
        pollfd waiting{from, POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60000)));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t count = ready < 0 ? -1 : read(from, to, bytes);
        if (count < 0 && errno == EINTR) continue;
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }
}

void answer_lines(int from, int to, const std::function<std::string(const std::string&)>& answer) {
    std::string waiting;
    char piece[65536];
    while (true) {
        const std::size_t end = waiting.find('\n');
        if (end != std::string::npos) {
            if (!write_all(to, answer(waiting.substr(0, end)) + '\n')) return;
            waiting.erase(0, end + 1);
            continue;
        }
        const ssize_t count = read(from, piece, sizeof(piece));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        waiting.append(piece, static_cast<std::size_t>(count));
    }
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return std::string("was ended by signal ") + strsignal(WTERMSIG(status));
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

int reap(pid_t& process) {
    int status = 0;
    for (int tries = 0; process > 0 && tries < 200; ++tries) {
        if (waitpid(process, &status, WNOHANG) == process) process = -1;
        if (process > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (process > 0) {
        kill(process, SIGKILL);
        while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
        }
    }
    process = -1;
    return status;
}

void leave_no_core() {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
}

std::string find_program(std::string_view name) {
    std::error_code code;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
    if (code) return {};
    const auto folder = self.parent_path();
    for (const auto& path : {folder / name, folder.parent_path() / "libexec/dlprim" / name})
        if (access(path.c_str(), X_OK) == 0) return path.string();
    return {};
}

bool LineProcess::start() {
    std::signal(SIGPIPE, SIG_IGN);  // a process that has ended is noticed by what write() returns
    int question[2], answer[2];
    if (pipe2(question, O_CLOEXEC) != 0) return false;
    if (pipe2(answer, O_CLOEXEC) != 0) {
        close(question[0]);
        close(question[1]);
        return false;
    }
    std::fflush(nullptr);
    process_ = fork();
    if (process_ == 0) {
        close(question[1]);
        close(answer[0]);
        main_(question[0], answer[1]);
        std::fflush(nullptr);
        _exit(0);
    }
    const int error = errno;
    close(question[0]);
    close(answer[1]);
    to_ = question[1];
    from_ = answer[0];
    errno = error;
    return process_ > 0;
}

int LineProcess::stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    return reap(process_);
}

LineProcess::Answer LineProcess::ask(const std::string& question, double seconds) {
    const Deadline deadline = seconds_from_now(seconds);
    if (process_ < 0 && !start()) {
        const std::string why = std::strerror(errno);
        stop();
        return {false, false, "no process can be started: " + why};
    }
    std::string line;
    bool late = false;
    if (write_all(to_, question + '\n') && read_line(from_, deadline, line, late))
        return {true, false, line};
    if (!late) return {false, false, name_ + " " + how_it_ended(stop())};
    kill(process_, SIGKILL);
    stop();
    char text[64];
    std::snprintf(text, sizeof(text), " took longer than %g seconds", seconds);
    return {false, true, name_ + text};
}

}  // namespace dlprim::tools
