// SPDX-License-Identifier: MIT
// Processes that commands start for work that may crash or never end, and what is said through
// pipes. It needs nothing of the library.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace dlprim::tools {

using Deadline = std::chrono::steady_clock::time_point;
Deadline seconds_from_now(double seconds);

/// Returns false where nobody reads any more.
bool write_all(int to, std::string_view text);

/// Waits for bytes and reads up to so many: 0 at the end of the pipe, and where the deadline has
/// passed, of which `late` tells.
std::size_t read_some(int from, void* to, std::size_t bytes, Deadline deadline, bool& late);

/// Answers every line by a line, up to the end of the pipe or of its reader.
void answer_lines(int from, int to, const std::function<std::string(const std::string&)>& answer);

/// "was ended by signal Killed", or "ended with exit code 1".
std::string how_it_ended(int status);

/// Gives the process a moment to end by itself, which tells how, then kills it. Returns its status,
/// and sets `process` to -1; 0 where it is -1 already.
int reap(pid_t& process);

/// For a process that may crash: it leaves no file with its memory.
void leave_no_core();

/// The path of a program beside this one, else in ../libexec/dlprim; empty if it is in neither.
std::string find_program(std::string_view name);

/// A process that answers lines by lines. It is started for the first question, and again after it
/// ended or was ended.
///
/// fork() makes it: a `main` that does not replace the program needs one that has not used OpenCL
/// before, and has one thread.
class LineProcess {
  public:
    /// What the process does with the ends of its pipes. It ends without destructors afterwards.
    using Main = std::function<void(int questions, int answers)>;
    struct Answer {
        bool given = false;
        bool late = false;  ///< it took too long, and was killed
        std::string text;   ///< the answer, or why there is none
    };

    /// Reasons begin with `name`: "its process" was ended by a signal.
    LineProcess(Main main, std::string name) : main_(std::move(main)), name_(std::move(name)) {}
    ~LineProcess() { stop(); }
    LineProcess(const LineProcess&) = delete;
    LineProcess& operator=(const LineProcess&) = delete;

    /// Waits for the answer to a line without '\n'. The process is killed after so many seconds.
    Answer ask(const std::string& question, double seconds);

  private:
    bool start();
    int stop();

    Main main_;
    std::string name_;
    pid_t process_ = -1;
    int to_ = -1, from_ = -1;
};

}  // namespace dlprim::tools
