// SPDX-License-Identifier: MIT
#include "gil.hpp"

#include <unistd.h>

namespace dlprim::python {
namespace {

/// Calls a function that takes the interpreter's lock. It throws nothing, except that Python may
/// end the thread by unwinding it. Leaving the catch block would then abort the process.
template <typename Take>
auto take_or_sleep(Take&& take) {
    try {
        return take();
    } catch (...) {
        while (true) pause();
    }
}

}  // namespace

GilRelease::GilRelease() : state_(PyEval_SaveThread()) {}

GilRelease::~GilRelease() {
    take_or_sleep([this] { PyEval_RestoreThread(state_); });
}

GilAcquire::GilAcquire() : state_(take_or_sleep([] { return PyGILState_Ensure(); })) {}

GilAcquire::~GilAcquire() {
    PyGILState_Release(state_);
}

bool is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
    return !Py_IsInitialized() || Py_IsFinalizing();
#else
    return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

}  // namespace dlprim::python
