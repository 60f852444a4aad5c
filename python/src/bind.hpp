// SPDX-License-Identifier: MIT
// What the files of the Python module share: one bind_ function per part, and rules for all of them.
//
// The module sees include/dlprim alone. Every call that may take long releases the interpreter's
// lock; a call on a Net or a Solver first takes the lock of its context (ContextLock), since nets of
// one context are for one thread at a time.
#pragma once

#include <dlprim/dlprim.hpp>
#include <nanobind/nanobind.h>

namespace dlprim::python {

namespace nb = nanobind;

// Each adds its classes and functions to the module dlprim._core.
void bind_errors(nb::module_& module);
void bind_context(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_net(nb::module_& module);
void bind_solver(nb::module_& module);

/// Lets other Python threads run, and holds the lock of a context while it lives. Python must not
/// be touched meanwhile but by nb::gil_scoped_acquire.
class ContextLock {
  public:
    explicit ContextLock(const Context& context);
    ~ContextLock();
    ContextLock(const ContextLock&) = delete;
    ContextLock& operator=(const ContextLock&) = delete;

  private:
    nb::gil_scoped_release release_;
    void* mutex_;
};

}  // namespace dlprim::python
