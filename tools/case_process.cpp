// SPDX-License-Identifier: MIT
// CaseProcess; see case_process.hpp.
#include "case_process.hpp"

#include <dlprim/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

namespace dlprim::tools {

namespace {

using Clock = std::chrono::steady_clock;

bool write_all(int to, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t count = write(to, text.data() + at, text.size() - at);
        if (count < 0 && errno != EINTR) return false;
        at += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return true;
}

/// Questions up to the end of the pipe.
void answer_all(int from, int to, const CaseProcess::Work& work) {
    std::string waiting;
    char piece[4096];
    while (true) {
        const std::size_t end = waiting.find('\n');
        if (end != std::string::npos) {
            if (!write_all(to, work(waiting.substr(0, end)) + '\n')) return;
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
        return std::string("its process was ended by signal ") + strsignal(WTERMSIG(status));
    return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void CaseProcess::start() {
    std::signal(SIGPIPE, SIG_IGN);  // a process that has ended is noticed by what write() returns
    int question[2], answer[2];
    if (pipe2(question, O_CLOEXEC) != 0)
        throw Error(ErrorKind::io, std::string("no pipe can be made: ") + strerror(errno));
    if (pipe2(answer, O_CLOEXEC) != 0) {
        close(question[0]);
        close(question[1]);
        throw Error(ErrorKind::io, std::string("no pipe can be made: ") + strerror(errno));
    }
    std::fflush(nullptr);
    process_ = fork();
    if (process_ == 0) {
        close(question[1]);
        close(answer[0]);
        answer_all(question[0], answer[1], make_work_());
        std::fflush(nullptr);
        _exit(0);  // without destructors of what the program had before
    }
    close(question[0]);
    close(answer[1]);
    to_ = question[1];
    from_ = answer[0];
    if (process_ < 0) {
        stop();
        throw Error(ErrorKind::io, std::string("no process can be started: ") + strerror(errno));
    }
}

int CaseProcess::stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    int status = 0;
    if (process_ > 0) {
        kill(process_, SIGKILL);
        while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    process_ = -1;
    return status;
}

bool CaseProcess::read_line(std::string& line, bool& late) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds_));
    char piece[4096];
    while (line.empty() || line.back() != '\n') {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd waiting{from_, POLLIN, 0};
        const int ready =
            left > 0 ? poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60000))) : 0;
        late = left <= 0;
        if (late) return false;
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t count = ready < 0 ? -1 : read(from_, piece, sizeof(piece));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        line.append(piece, static_cast<std::size_t>(count));
    }
    line.pop_back();
    return true;
}

CaseProcess::Answer CaseProcess::ask(const std::string& question) {
    if (process_ < 0) start();
    std::string line;
    bool late = false;
    if (write_all(to_, question + '\n') && read_line(line, late)) return {true, line};
    if (late) {
        stop();
        char text[64];
        std::snprintf(text, sizeof(text), "it took longer than %g seconds", seconds_);
        return {false, text};
    }
    // It closed the pipe, as a rule by ending. One that goes on without it is stopped.
    close(to_);
    to_ = -1;
    int status = 0;
    bool ended = false;
    for (int wait = 0; wait < 200; ++wait) {
        if (waitpid(process_, &status, WNOHANG) == process_) {
            process_ = -1;
            ended = true;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const int stopped = stop();
    return {false, how_it_ended(ended ? status : stopped)};
}

}  // namespace dlprim::tools
