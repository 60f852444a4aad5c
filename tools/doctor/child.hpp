// SPDX-License-Identifier: MIT
// Child: the process dlprim_doctor_probe, which looks at devices for dlprim_doctor and answers one
// question after another. A driver that crashes or hangs ends that process alone.
//
// The command itself is not linked with the library, so that it also runs where OpenCL's loader or
// another library is missing and the probe cannot start.
#pragma once

#include <sys/types.h>
#include <nlohmann/json.hpp>
#include <string>

namespace dlprim::doctor {

using Json = nlohmann::json;

class Child {
  public:
    /// The program is looked for beside this command and in libexec, see find_probe().
    explicit Child(std::string program) : program_(std::move(program)) {}
    ~Child() { stop(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Asks the process, which is started if there is none, and waits for the answer. If there is
    /// none after `seconds`, or if the process ends, returns {"error": SENTENCE, "crashed": true};
    /// the next question starts a new process. It also has "late": true where the time was over.
    /// What the process answers may have an "error", too.
    Json ask(const Json& question, double seconds);

  private:
    /// Returns why no process could be started, or empty.
    std::string start();
    /// Kills the process, if there is one, and returns its status.
    int stop();
    /// What the process or the driver has printed last.
    std::string last_words() const;

    std::string program_;
    pid_t process_ = -1;
    int to_ = -1, from_ = -1;
    int printed_ = -1;  ///< a file in memory that has the output of the process
};

/// The path of dlprim_doctor_probe: beside this program, else in ../libexec/dlprim. Empty if it is
/// in neither.
std::string find_probe();

/// Whether a library can be loaded. Tries in a process of its own, since libraries run code when
/// they are loaded. Returns the loader's error, or empty.
std::string why_not_loaded(const std::string& library);

}  // namespace dlprim::doctor
