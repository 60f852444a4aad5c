// SPDX-License-Identifier: MIT
// dlprim.set_compile_wait: tells a Python callable how far a wait for compilers has come.
#include "callback.hpp"

#include <dlprim/compile_wait.hpp>

#include <nanobind/stl/string.h>

namespace dlprim::python {
namespace {

void set_receiver(nb::handle receiver) {
    if (!receiver.is_none() && !PyCallable_Check(receiver.ptr()))
        wrong_type("the receiver of waits for compilers", "a callable or None", receiver);
    auto call = [callback = Callback(receiver),
                 shows = !receiver.is_none()](const CompileWait& wait) {
        if (wait.ended)
            callback.tell(wait.str(), wait.done, wait.total, wait.seconds, true);
        else if (shows)
            callback(wait.str(), wait.done, wait.total, wait.seconds, false);
        else
            callback();  // looks for Ctrl-C
    };
    const GilRelease release;
    set_compile_wait(std::move(call));
}

void show_line() {
    set_compile_wait(
        [check = Callback(nb::none()), line = compile_wait_line()](const CompileWait& wait) {
            if (!wait.ended) check();
            line(wait);
        });
}

}  // namespace

void bind_compile_wait(nb::module_& module) {
    module.def("set_compile_wait", &set_receiver, nb::arg("receiver").none(),
               nb::sig("def set_compile_wait(receiver: collections.abc.Callable[[str, int, int, "
                       "float, bool], object] | None) -> None"),
               R"(Install the receiver of waits for compilers, in place of a line on the terminal.

It is called as receiver(text, done, total, seconds, ended): a sentence for a person, the programs
that are compiled and those of the whole wait, the seconds since it began, and whether nobody waits
any more. None shows nothing. Without a call of this function, a wait of more than two seconds shows
the sentence as a line of standard error, if that is a terminal. What the receiver raises, and
Ctrl-C, ends the wait and reaches the caller of dlprim; at the end it goes to sys.unraisablehook.
The receiver must not call dlprim.)");
    show_line();
    // The callable is not called any more once the interpreter ends.
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { set_compile_wait({}); }));
}

}  // namespace dlprim::python
