// SPDX-License-Identifier: MIT
// The interpreter's lock. When Python ends, it ends every other thread (a daemon thread in the
// middle of a step) that asks for the lock: by pthread_exit before Python 3.14, which unwinds
// through C++ that cannot be unwound and so aborts the process. Such a thread sleeps here instead
// until the process has ended, as Python 3.14 lets it.
#pragma once

#include <nanobind/nanobind.h>

namespace dlprim::python {

/// Lets other Python threads run while it lives.
class GilRelease {
  public:
    GilRelease();
    ~GilRelease();
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

  private:
    PyThreadState* state_;
};

/// Holds the interpreter's lock while it lives, in any thread, whether it holds it already or not.
class GilAcquire {
  public:
    GilAcquire();
    ~GilAcquire();
    GilAcquire(const GilAcquire&) = delete;
    GilAcquire& operator=(const GilAcquire&) = delete;

  private:
    PyGILState_STATE state_;
};

/// Whether the interpreter is about to end or has ended, so that threads that held a context's lock
/// may never give it back.
bool is_ending();

}  // namespace dlprim::python
