// SPDX-License-Identifier: MIT
// CompileProcess: starts its child by posix_spawn(3), which calls no fork handlers.
#include "runtime/compile_process.hpp"

#include "base/text.hpp"
#include "runtime/compile_server.hpp"

#include <dlprim/log.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace dlprim {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds to_end_by_itself{1000}, to_end_when_killed{5000}, between_looks_at_end{1};

/// Closes the descriptor, unless it was taken.
class Descriptor {
  public:
    explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
    ~Descriptor() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return descriptor_; }
    int take() { return std::exchange(descriptor_, -1); }
    /// Moves it above the numbers of standard input, output and error, which it may have got if the
    /// program has closed these.
    void move_up() {
        if (descriptor_ < 0 || descriptor_ > STDERR_FILENO) return;
        const int moved = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        ::close(std::exchange(descriptor_, moved));
    }

  private:
    int descriptor_;
};

/// How a child starts: the socket is its standard input, its output is discarded, and signals have
/// their default effect. It has its own process group, so Ctrl-C in a terminal reaches only this
/// process. The child ends when its socket is closed.
class SpawnPlan {
  public:
    explicit SpawnPlan(int socket) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawnattr_init(&attributes_);
        posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
        for (const int output : {STDOUT_FILENO, STDERR_FILENO})
            posix_spawn_file_actions_addopen(&actions_, output, "/dev/null", O_WRONLY, 0);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes_, &signals);
        sigfillset(&signals);
        posix_spawnattr_setsigdefault(&attributes_, &signals);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    ~SpawnPlan() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    const posix_spawn_file_actions_t* actions() const { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

struct Spawned {
    pid_t process = -1;
    int socket = -1;  ///< this process's end
};

Spawned spawn(const std::filesystem::path& executable) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
    Descriptor mine(ends[0]), other(ends[1]);
    mine.move_up();
    other.move_up();
    if (mine.get() < 0 || other.get() < 0) return {};
    const SpawnPlan plan(other.get());
    std::string name = executable.string();
    char* arguments[] = {name.data(), nullptr};
    pid_t process = -1;
    const int error = ::posix_spawn(&process, name.c_str(), plan.actions(), plan.attributes(),
                                    arguments, environ);
    if (error != 0) {
        log(LogLevel::debug, cat("'", name, "' does not start: ", std::strerror(error)));
        return {};
    }
    return {process, mine.take()};
}

}  // namespace

CompileProcess::CompileProcess(const std::filesystem::path& executable, const CompileTarget& target,
                               const std::atomic<bool>& stop, const Patience& patience)
    : stop_(stop), patience_(patience) {
    const Spawned spawned = spawn(executable);
    process_ = spawned.process;
    socket_.open(spawned.socket);
    lost_ = process_ < 0 || !socket_.send(greeting(target), Clock::now() + patience_.start, &stop_);
}

CompileProcess::~CompileProcess() {
    socket_.close();
    if (process_ < 0) return;
    // A lost child may hang, so it gets no time to end by itself.
    if (!lost_ && ended_within(to_end_by_itself)) return;
    if (ended_within(milliseconds(0))) return;
    ::kill(process_, SIGKILL);
    if (!ended_within(to_end_when_killed))
        log(LogLevel::info, cat("process ", process_, " does not end, although it was killed"));
}

bool CompileProcess::ended_within(milliseconds time) {
    const auto deadline = Clock::now() + time;
    for (;;) {
        const pid_t ended = ::waitpid(process_, nullptr, WNOHANG);
        // An error means that it is gone already: the program may itself wait for all children.
        if (ended == process_ || (ended < 0 && errno != EINTR)) return true;
        if (Clock::now() >= deadline) return false;
        std::this_thread::sleep_for(between_looks_at_end);
    }
}

bool CompileProcess::ready() {
    if (lost_) return false;
    const auto told = socket_.receive(Clock::now() + patience_.start, &stop_);
    lost_ = !told || *told != Message{std::string(answer::ready)};
    return !lost_;
}

CompileProcess::Result CompileProcess::compile(const ProgramSource& source,
                                               const std::string& launches) {
    if (lost_) return Result::lost;
    const auto deadline = Clock::now() + patience_.program;
    if (socket_.send({source.name, source.options, source.source, launches}, deadline, &stop_)) {
        if (const auto told = socket_.receive(deadline, &stop_)) {
            if (*told == Message{std::string(answer::made)}) return Result::made;
            if (*told == Message{std::string(answer::failed)}) return Result::failed;
            if (*told == Message{std::string(answer::not_kept)}) return Result::not_kept;
        }
    }
    lost_ = true;
    return Result::lost;
}

}  // namespace dlprim
