// SPDX-License-Identifier: MIT
// Builds that fail without a word, tried again while no other process builds.
//
// PoCL keeps what it compiles in a folder that processes share. When several of them fill it at
// once, one may find a file half there; its build fails, and the log says no more than that it did.
// Compilers say what is wrong with a program, so that a failure whose log names no error is taken
// for such a race.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace dlprim {

/// What came of a build.
enum class Attempt { worked, failed, failed_in_silence };

/// The first line of a compiler's log that names an error; empty where there is none.
std::string first_error(std::string_view log);

/// Calls `build`, and where it has failed in silence up to twice more under a lock that processes
/// share (BuildLock). Returns what came of the last call. `name` is for the log.
Attempt build_again_in_turn(const std::function<Attempt()>& build, std::string_view name);

/// A lock between processes and threads, of who tries a build again. It is held on a file in the
/// cache folder, or in the folder for temporary files where there is none. Where no file can be
/// locked within half a minute, the object holds nothing: the lock is there to help, and a process
/// that is stopped must not stop others.
class BuildLock {
  public:
    BuildLock();
    ~BuildLock();
    BuildLock(const BuildLock&) = delete;
    BuildLock& operator=(const BuildLock&) = delete;
    bool held() const noexcept { return descriptor_ >= 0; }

  private:
    int descriptor_ = -1;
};

}  // namespace dlprim
