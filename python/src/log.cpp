// SPDX-License-Identifier: MIT
// dlprim.set_log: passes the library's messages to a Python callable.
#include "bind.hpp"

#include <nanobind/stl/string_view.h>

#include <memory>

namespace dlprim::python {
namespace {

const char* name_of(LogLevel level) {
    constexpr const char* names[] = {"debug", "info", "warning"};
    return names[static_cast<int>(level)];
}

/// Holds a callable for threads that do not hold the interpreter's lock.
std::shared_ptr<nb::object> shared(nb::object callable) {
    return {new nb::object(std::move(callable)), [](nb::object* held) {
                const GilAcquire lock;
                delete held;
            }};
}

/// An exception of the callable has no caller that could handle it, so Python reports it
/// (sys.unraisablehook).
void deliver(const nb::object& receiver, LogLevel level, std::string_view line) {
    const GilAcquire lock;
    try {
        receiver(name_of(level), nb::str(line.data(), line.size()));
    } catch (nb::python_error& error) {
        error.discard_as_unraisable(receiver);
    }
}

void set_receiver(nb::handle receiver) {
    if (!receiver.is_none() && !PyCallable_Check(receiver.ptr()))
        wrong_type("the receiver of log lines", "a callable or None", receiver);
    std::function<void(LogLevel, std::string_view)> call;
    if (!receiver.is_none())
        call = [held = shared(nb::borrow(receiver))](LogLevel level, std::string_view line) {
            deliver(*held, level, line);
        };
    const GilRelease release;
    set_log(std::move(call));
}

}  // namespace

void bind_log(nb::module_& module) {
    module.def("set_log", &set_receiver, nb::arg("receiver").none(),
               nb::sig("def set_log(receiver: collections.abc.Callable[[str, str], object] | None) "
                       "-> None"),
               R"(Install the receiver of the library's notices; None, the default, drops them.

The library never prints. The receiver is called with a level ("debug", "info" or "warning") and a
line, for example about an engine that does not build on this device. Calls are serialised, may come
from any thread, and must not call back into dlprim. What the receiver raises goes to
sys.unraisablehook.)");
    // The callable is not called any more once the interpreter ends.
    nb::module_::import_("atexit").attr("register")(
        nb::cpp_function([] { set_receiver(nb::none()); }));
}

}  // namespace dlprim::python
