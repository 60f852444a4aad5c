// SPDX-License-Identifier: MIT
// Locks between processes that build programs, and builds that are tried again under one.
//
// PoCL keeps what it compiles in a folder that processes share. Where one process looks for a
// program's files while another replaces them, PoCL 3.1 crashes, or its build fails and the log
// says no more than that it did. So processes take turns with a program on PoCL (BuildLock). Other
// programs that use PoCL know nothing of that lock, and other drivers may race as well. Compilers
// say what is wrong with a program, so a failure whose log names no error is taken for a race, and
// the build is tried again (build_again_in_turn).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// What came of a build.
enum class Attempt { worked, failed, failed_in_silence };

/// The first line of a compiler's log that names an error; empty where there is none.
std::string first_error(std::string_view log);

/// Calls `build`, and where it has failed in silence up to twice more under a lock that processes
/// share (BuildLock). Returns what came of the last call. `name` is for the log.
Attempt build_again_in_turn(const std::function<Attempt()>& build, std::string_view name);

/// A lock between processes and threads: a file that is locked while the object lives. The file
/// lies in the folder given, or in the folder for temporary files where the former does not serve.
/// Where no file can be locked within half a minute, the object holds nothing: the lock is there to
/// help, and a process that is stopped must not stop others.
class BuildLock {
  public:
    /// For whoever tries a build again; in the cache folder.
    BuildLock();
    /// For the program whose text is `source`; in `folder`, which the driver keeps programs in. A
    /// few programs share a lock, so that the number of files is bounded.
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
