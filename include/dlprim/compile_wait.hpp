// SPDX-License-Identifier: MIT
// Waits for compilers: a program that wants to show why it waits installs a receiver. The process
// has one receiver.
//
// Threads: any thread may call set_compile_wait(). The receiver is called by the thread that waits,
// for one wait at a time. It must not call the library.
#pragma once

#include <dlprim/namespace.hpp>

#include <functional>
#include <string>

namespace dlprim {

/// How far a wait has come. Waits that follow each other within a second count as one, since eager
/// calls need one program after another.
struct CompileWait {
    int done = 0;        ///< programs that are compiled or were loaded from a cache
    int total = 0;       ///< all of the wait, as far as they are known
    double seconds = 0;  ///< since it began
    bool ended = false;  ///< whether nobody waits any more: what is shown may be removed

    /// "compiling kernels: 12 of 60 are done, 8 s left". The time is an estimate from those that
    /// are done, and is left out before the first.
    std::string str() const;
};

/// Installs the receiver in place of the present one. An empty function removes it. It is called
/// before each program, several times a second while other processes compile, and once when the
/// wait has ended. What it throws ends the wait and reaches the caller of the library, which can be
/// used further; what it throws at the end is dropped.
void set_compile_wait(std::function<void(const CompileWait&)> receiver);

/// A receiver that shows a wait of over two seconds as a line of standard error, and removes the
/// line at the end. It does nothing where standard error is no terminal.
std::function<void(const CompileWait&)> compile_wait_line();

}  // namespace dlprim
