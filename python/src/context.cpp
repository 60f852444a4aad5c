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

ContextLock::~ContextLock() {
    static_cast<std::recursive_mutex*>(mutex_)->unlock();
}

void bind_context(nb::module_& module) {
    nb::class_<DeviceInfo>(module, "DeviceInfo")
        .def_ro("id", &DeviceInfo::id)
        .def_ro("name", &DeviceInfo::name)
        .def_ro("platform", &DeviceInfo::platform)
        .def_ro("vendor", &DeviceInfo::vendor)
        .def_ro("driver", &DeviceInfo::driver)
        .def_prop_ro("kind", [](const DeviceInfo& info) { return name_of(info.kind); })
        .def_ro("memory_mib", &DeviceInfo::memory_mib)
        .def("__repr__", &DeviceInfo::str);
    nb::class_<Context>(module, "Context")
        .def(nb::init<std::string_view>(), nb::arg("device") = "",
             nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("info", &Context::info)
        .def_prop_ro("name", [](const Context& context) { return context.info().name; })
        .def("finish", [](const Context& context) {
            const ContextLock lock(context);
            context.finish();
        });
    module.def("devices", &Context::devices, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace dlprim::python
