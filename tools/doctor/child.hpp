// SPDX-License-Identifier: MIT
// Child: the process dlprim_doctor_probe, which looks at devices for dlprim_doctor and answers one
// question after another. A driver that crashes or hangs ends that process alone.
//
// The command itself is not linked with the library, so that it also runs where OpenCL's loader or
// another library is missing and the probe cannot start.
#pragma once

#include "child_process.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace dlprim::doctor {

using Json = nlohmann::json;

class Child {
  public:
    explicit Child(const std::string& program);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Asks the process, which is started if there is none, and waits for the answer. If there is
    /// none after `seconds`, or if the process ends, returns {"error": SENTENCE, "crashed": true};
    /// the next question starts a new process. It also has "late": true where the time was over.
    /// What the process answers may have an "error", too.
    Json ask(const Json& question, double seconds);

  private:
    /// What the process or the driver has printed last.
    std::string last_words() const;

    int printed_;  ///< a file in memory that has the output of the process
    tools::LineProcess process_;
};

/// Whether a library can be loaded. Tries in a process of its own, since libraries run code when
/// they are loaded. Returns the loader's error, or empty.
std::string why_not_loaded(const std::string& library);

}  // namespace dlprim::doctor
