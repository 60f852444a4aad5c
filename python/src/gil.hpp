// SPDX-License-Identifier: MIT
// The interpreter's lock. When Python ends, it ends every other thread that asks for the lock, such
// as a daemon thread in the middle of a step. Before Python 3.14 it uses pthread_exit, which
// unwinds through C++ code that must not be unwound and so aborts the process. Here such a thread
// sleeps instead until the process has ended, as in Python 3.14.
#pragma once

#include <nanobind/nanobind.h>

namespace dlprim::python {

/// Releases the interpreter's lock during its lifetime, so that other Python threads run.
class GilRelease {
  public:
    GilRelease();
    ~GilRelease();
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

  private:
    PyThreadState* state_;
};

/// Holds the interpreter's lock during its lifetime, in any thread, even if the thread already
/// holds it.
class GilAcquire {
  public:
    GilAcquire();
    ~GilAcquire();
    GilAcquire(const GilAcquire&) = delete;
    GilAcquire& operator=(const GilAcquire&) = delete;

  private:
    PyGILState_STATE state_;
};

/// Whether the interpreter is ending or has ended. Then threads that hold a context's lock may
/// never release it.
bool is_ending();

}  // namespace dlprim::python
