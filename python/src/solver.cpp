// SPDX-License-Identifier: MIT
// Solver: include/dlprim/solver.hpp for Python. The class dlprim.Solver derives from this one.
#include "callback.hpp"
#include "net_classes.hpp"
#include "net_parts.hpp"

namespace dlprim::python {
namespace {

using OwnedSolver = Owned<Solver>;

bool step_if(const OwnedSolver& self, const nb::callable& proceed) {
    const ContextLock lock(self.context());
    return self->step_if([&] {
        const GilAcquire gil;
        return static_cast<bool>(nb::bool_(proceed()));
    });
}

}  // namespace

void bind_solver(nb::module_& module) {
    nb::class_<OwnedSolver> solver(module, "Solver", "Trains a Net. Programs use dlprim.Solver.");
    bind_any_solver<Solver, Net>(
        solver, "def __init__(self, net: Net, options: dict[str, typing.Any]) -> None");
    solver
        .def("step_if", step_if, nb::arg("proceed"),
             nb::sig("def step_if(self, proceed: collections.abc.Callable[[], object]) -> bool"),
             "What step() does, but calls proceed() after forward and returns its result. If that "
             "is False, parameters and solver state stay unchanged.")
        .def_prop_ro(
            "options", [](const OwnedSolver& self) { return dict_of(self->options()); },
            nb::sig("def options(self) -> dict[str, typing.Any]"),
            "The keyword arguments with which it was made.")
        .def("loss_scale", locked(&Solver::loss_scale),
             "The current factor of the loss; 1 if no operator has precision fp16. Waits.");
    bind_schedule(module);
    bind_train(module);
}

}  // namespace dlprim::python
