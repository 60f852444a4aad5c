// SPDX-License-Identifier: MIT
// CaseProcess: a process of its own for work that may crash or never end, one question after
// another. It is started for the first question, and again after it ended or was ended.
//
// fork() makes it, without exec: the program must not have used OpenCL before, and has one thread.
#pragma once

#include <sys/types.h>
#include <functional>
#include <string>

namespace dlprim::tools {

class CaseProcess {
  public:
    /// Answers a question, in the process. Both are lines without '\n'.
    using Work = std::function<std::string(const std::string&)>;
    /// What came of a question.
    struct Answer {
        bool given = false;
        std::string text;  ///< the answer, or why there is none
    };

    /// `make_work` runs in the process, once, and gives what answers there.
    CaseProcess(std::function<Work()> make_work, double seconds)
        : make_work_(std::move(make_work)), seconds_(seconds) {}
    ~CaseProcess() { stop(); }
    CaseProcess(const CaseProcess&) = delete;
    CaseProcess& operator=(const CaseProcess&) = delete;

    /// Waits for the answer, at most as many seconds as the constructor got; the process is then
    /// killed. Throws Error(io) where no process can be started.
    Answer ask(const std::string& question);

  private:
    void start();
    /// Kills the process where it still runs, and returns how it ended.
    int stop();
    /// Reads up to the end of a line; false where the time is over or the process has ended.
    bool read_line(std::string& line, bool& late);

    std::function<Work()> make_work_;
    double seconds_;
    pid_t process_ = -1;
    int to_ = -1, from_ = -1;
};

}  // namespace dlprim::tools
