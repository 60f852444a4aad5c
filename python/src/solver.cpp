// SPDX-License-Identifier: MIT
// Solver: include/dlprim/solver.hpp for Python. The class dlprim.Solver derives from this one.
#include "callback.hpp"
#include "net_options.hpp"
#include "net_parts.hpp"
#include "owned.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include <map>
#include <memory>
#include <string>

namespace dlprim::python {
namespace {

using OwnedSolver = Owned<Solver>;

void make_solver(OwnedSolver* self, const Owned<Net>& net, const nb::dict& keywords) {
    const SolverOptions options = solver_options(keywords);
    new (self) OwnedSolver(net.contexts(), [&] { return std::make_unique<Solver>(*net, options); });
}

bool step_if(const OwnedSolver& self, const nb::callable& proceed) {
    const ContextLock lock(self.contexts());
    return self->step_if([&] {
        const GilAcquire gil;
        return static_cast<bool>(nb::bool_(proceed()));
    });
}

void bind_steps(nb::class_<OwnedSolver>& solver) {
    using Extra = std::map<std::string, double>;
    solver
        .def("__init__", make_solver, nb::arg("net"), nb::arg("options"),
             nb::sig("def __init__(self, net: Net, options: dict[str, typing.Any]) -> None"),
             "The class of the package documents the options.")
        .def("step", locked(&Solver::step),
             "Enqueues forward, backward and, at every accumulate-th call, or after the last of a "
             "batch's shards, the update.")
        .def("call_off", locked(&Solver::call_off), nb::arg("back") = 1,
             "With guard_loss: restores the state before the step `back` steps ago (1: the last "
             "one; at most 2), whose loss was not finite, as if no step had followed. Raises "
             "InvalidArgumentError.")
        .def("use_averages", locked(&Solver::use_averages),
             "With average: gives the parameters that are trained their averages, for good. "
             "Raises InvalidArgumentError without averages, or before the first update.")
        .def_prop_rw("learning_rate", locked(&Solver::learning_rate),
                     locked(&Solver::set_learning_rate),
                     "The learning rate from the next step on. Raises InvalidArgumentError unless "
                     "it is a number of at least 0.")
        .def_prop_ro("steps", locked(&Solver::steps), "Updates done.")
        .def("save_checkpoint", locked_file(&Solver::save_checkpoint), nb::arg("path"),
             nb::arg("extra") = Extra{},
             "Write weights, solver state, step and seed to one HDF5 file, whole or not at all, "
             "without a trace of a placement. load_weights() can read it too. extra: numbers that "
             "load_checkpoint() returns.")
        .def("load_checkpoint", locked_file(&Solver::load_checkpoint), nb::arg("path"),
             "Continue from a checkpoint of a Solver or a PlacedSolver, and return its extra "
             "numbers. Raises FileError, FormatError, and InvalidArgumentError if it was trained "
             "in another precision.");
}

}  // namespace

void bind_solver(nb::module_& module) {
    nb::class_<OwnedSolver> solver(
        module, "Solver", "Trains a Net. Programs use dlprim.Solver and dlprim.PlacedSolver.");
    bind_steps(solver);
    solver
        .def("step_if", step_if, nb::arg("proceed"),
             nb::sig("def step_if(self, proceed: collections.abc.Callable[[], object]) -> bool"),
             "What step() does, but calls proceed() after forward and returns its result. If that "
             "is False, parameters and solver state stay unchanged.")
        .def_prop_ro(
            "options", [](const OwnedSolver& self) { return dict_of(self->options()); },
            nb::sig("def options(self) -> dict[str, typing.Any]"),
            "The keyword arguments with which it was made.")
        .def("output_of_batch", locked(&Solver::output_of_batch), nb::arg("name"),
             "The Tensor that holds this output of whole batches after each later step: with "
             "shards the rows of all of them. Raises NotFoundError, InvalidArgumentError.")
        .def("loss_scale", locked(&Solver::loss_scale),
             "The current factor of the loss; 1 if no operator has precision fp16. Waits.");
    bind_schedule(module);
    bind_train(module);
}

}  // namespace dlprim::python
