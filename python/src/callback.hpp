// SPDX-License-Identifier: MIT
// A Python function that the library calls in the middle of a long call, and Ctrl-C beside it.
#pragma once

#include "bind.hpp"

#include <chrono>
#include <memory>

namespace dlprim::python {

/// Holds a Python callable or None, and may be copied and dropped by any thread, also after the
/// interpreter's end. Calling it takes the interpreter's lock, raises KeyboardInterrupt where
/// Ctrl-C was pressed, and passes on what the callable raises as nb::python_error, which travels
/// through the library to the caller of the long call. Without a callable it looks for Ctrl-C
/// alone, at most every 20 ms: for the lock it may have to wait for another Python thread.
class Callback {
  public:
    explicit Callback(nb::handle callable) {
        if (callable.is_valid() && !callable.is_none())
            callable_ = std::shared_ptr<PyObject>(callable.inc_ref().ptr(), drop);
    }

    template <typename... Args>
    void operator()(const Args&... args) const {
        if (!callable_ && !is_due()) return;
        const GilAcquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (callable_) nb::handle(callable_.get())(args...);
    }

  private:
    static bool is_due() {
        using Clock = std::chrono::steady_clock;
        static thread_local Clock::time_point last;
        const Clock::time_point now = Clock::now();
        if (now - last < std::chrono::milliseconds(20)) return false;
        last = now;
        return true;
    }
    static void drop(PyObject* object) {
        if (!Py_IsInitialized()) return;
        const GilAcquire gil;
        Py_DECREF(object);
    }

    std::shared_ptr<PyObject> callable_;
};

}  // namespace dlprim::python
