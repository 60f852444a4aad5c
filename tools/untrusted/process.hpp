// SPDX-License-Identifier: MIT
// ReaderProcess: a run of dlprim_reader, which reads one file, and what it answers.
//
// The process has limits: of time, of memory (RLIMIT_AS), of the size of files that it writes. It
// ends with this program. It is no sandbox: a reader that somebody else has taken over by a crafted
// file may do what the user may. What it answers is not trusted, either.
#pragma once

#include "child_process.hpp"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::tools {

/// How long a reader may take, and what it may take of memory.
struct ReaderLimits {
    double seconds = 60;
    std::uint64_t bytes = std::uint64_t{4} << 30;
};
/// The limits by DLPRIM_READER_SECONDS and DLPRIM_READER_MIB. Throws Error(invalid_argument).
ReaderLimits reader_limits();

class ReaderProcess {
  public:
    /// Starts the process. `path` names what is read in messages. Throws Error(not_found) if there
    /// is no dlprim_reader, and Error(io) if it cannot be started.
    ReaderProcess(const std::vector<std::string>& arguments, std::string path,
                  const ReaderLimits& limits);
    /// Ends the process.
    ~ReaderProcess();
    ReaderProcess(const ReaderProcess&) = delete;
    ReaderProcess& operator=(const ReaderProcess&) = delete;

    // The parts of the answer, in their order. They throw Error(io) if the process ends or time is
    // over before, and Error(format) if the answer makes no sense.

    std::uint64_t number();
    /// A number from 0 to `most`.
    std::uint64_t number(std::uint64_t most);
    double real();
    std::string text(std::size_t most);
    /// `bytes` bytes. Memory grows as they arrive, and all of the answer has at most the limit.
    std::vector<std::byte> data(std::uint64_t bytes);
    /// The end: no further byte, and exit code 0.
    void finish();
    [[noreturn]] void makes_no_sense(const std::string& why);

  private:
    void start(const std::vector<std::string>& arguments);
    void read(void* to, std::size_t bytes);
    /// Waits for bytes, of which there are none at the end, and throws if time is over.
    std::size_t read_some(void* to, std::size_t bytes);
    /// Kills the process unless it ends by itself in a moment, and returns its status.
    int stop();
    [[noreturn]] void ended(int status);

    std::string path_;
    ReaderLimits limits_;
    Deadline deadline_;
    std::uint64_t left_;  ///< bytes that the answer may still have
    pid_t process_ = -1;
    int from_ = -1;
};

}  // namespace dlprim::tools
