// SPDX-License-Identifier: MIT
// Locks between processes that build programs, and builds that are tried again under one.
//
// PoCL keeps what it compiles in a folder that processes share. If one process looks for a
// program's files while another replaces them, PoCL 3.1 crashes, or the build fails with a log that
// gives no reason. So on PoCL processes take turns with a program (BuildLock).
//
// Other programs that use PoCL do not know this lock, and other drivers may have such races too. A
// compiler says what is wrong with a program. So if a build fails and its log names no error, a
// race is assumed, and the build is tried again (build_again_in_turn).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The outcome of a build. It failed in silence if its log names no error.
enum class Attempt { worked, failed, failed_in_silence };

/// Returns the first line of a compiler's log that names an error, or an empty text if there is
/// none.
std::string first_error(std::string_view log);

/// Calls `build`. If it fails in silence, calls it up to two more times under a lock that processes
/// share (BuildLock). Returns the outcome of the last call. `name` is for the log.
Attempt build_again_in_turn(const std::function<Attempt()>& build, std::string_view name);

/// A lock between processes and threads: a file that is locked while the object exists. The file is
/// in the given folder, or among temporary files if that folder cannot be used. If no file can be
/// locked within half a minute, the object holds nothing. Work goes on without the lock then,
/// because a process that is stopped must not stop others.
class BuildLock {
  public:
    /// For builds that are tried again, and for what is known of functions. The file is in the
    /// cache folder.
    BuildLock();
    /// For the program whose text is `source`. `folder` is where the driver keeps programs. A few
    /// programs share a lock, so that the number of files is bounded.
    BuildLock(const std::filesystem::path& folder, std::string_view source);
    ~BuildLock();
    BuildLock(const BuildLock&) = delete;
    BuildLock& operator=(const BuildLock&) = delete;
    bool held() const noexcept { return descriptor_ >= 0; }

  private:
    void lock_first_of(const std::vector<std::filesystem::path>& files);

    int descriptor_ = -1;
};

}  // namespace dlprim
