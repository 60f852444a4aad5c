// SPDX-License-Identifier: MIT
// A Python function that the library calls during a long call, and the check for Ctrl-C.
#pragma once

#include "bind.hpp"

#include <chrono>
#include <memory>

namespace dlprim::python {

/// Holds a Python callable or None. Any thread may copy and destroy it, even after the
/// interpreter's end. Calling it takes the interpreter's lock and raises KeyboardInterrupt if
/// Ctrl-C was pressed. An exception of the callable passes through the library to the caller of the
/// long call, as nb::python_error. Without a callable it only checks for Ctrl-C, at most every 20
/// ms, because it may have to wait for another thread to get the lock.
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

    /// Calls the callable where nobody could handle an exception: Python reports what it raises
    /// (sys.unraisablehook). Ctrl-C is left to the next call that looks for it.
    template <typename... Args>
    void tell(const Args&... args) const {
        if (!callable_) return;
        const GilAcquire gil;
        const nb::handle callable(callable_.get());
        try {
            callable(args...);
        } catch (nb::python_error& error) {
            error.discard_as_unraisable(callable);
        }
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
