// SPDX-License-Identifier: MIT
// Context, devices(), and the lock that serialises calls on a context's nets.
#include "bind.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <mutex>

namespace dlprim::python {
namespace {

/// The mutex of a context. Entries stay: a mutex is small, and contexts are few.
std::recursive_mutex& mutex_of(const Context& context) {
    static std::mutex guard;
    static std::map<const ContextImpl*, std::unique_ptr<std::recursive_mutex>> mutexes;
    const std::lock_guard<std::mutex> lock(guard);
    auto& mutex = mutexes[&context.impl()];
    if (!mutex) mutex = std::make_unique<std::recursive_mutex>();
    return *mutex;
}

}  // namespace

ContextLock::ContextLock(const Context& context) : mutex_(&mutex_of(context)) {
    static_cast<std::recursive_mutex*>(mutex_)->lock();
}

ContextLock::~ContextLock() { static_cast<std::recursive_mutex*>(mutex_)->unlock(); }

void bind_context(nb::module_& module) {
    nb::class_<Context>(module, "Context")
        .def(nb::init<std::string_view>(), nb::arg("device") = "")
        .def_prop_ro("name", [](const Context& context) { return context.info().name; });
}

}  // namespace dlprim::python
