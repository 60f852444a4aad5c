// SPDX-License-Identifier: MIT
// Solver: include/dlprim/solver.hpp for Python. The class dlprim.Solver derives from this one.
#include "callback.hpp"
#include "net_parts.hpp"
#include "owned.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace dlprim::python {
namespace {

namespace fs = std::filesystem;
using Kind = SolverOptions::Kind;

const std::map<std::string, Kind>& kinds() {
    static const std::map<std::string, Kind> known{
        {"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}};
    return known;
}

Kind to_kind(const std::string& name) {
    if (const auto found = kinds().find(name); found != kinds().end()) return found->second;
    throw Error(ErrorKind::invalid_argument,
                "solver '" + name + "' is none of 'sgd', 'adam' and 'adamw'");
}

using OwnedSolver = Owned<Solver>;

void make_solver(OwnedSolver* self, const Owned<Net>& net, const std::string& kind,
                 double learning_rate, double momentum, bool nesterov, double beta1, double beta2,
                 double epsilon, double weight_decay, double clip_norm, double clip_value,
                 int accumulate, int shards, double loss_scale, int loss_scale_steps,
                 double average, bool guard_loss) {
    const SolverOptions options{
        to_kind(kind), learning_rate,    momentum,  nesterov,   beta1,      beta2,
        epsilon,       weight_decay,     clip_norm, clip_value, accumulate, shards,
        loss_scale,    loss_scale_steps, average,   guard_loss};
    new (self) OwnedSolver(net.context(), [&] { return std::make_unique<Solver>(*net, options); });
}

nb::dict options_of(const OwnedSolver& self) {
    const SolverOptions& o = self->options();
    nb::dict options;
    for (const auto& [name, kind] : kinds())
        if (kind == o.kind) options["kind"] = name;
    options["learning_rate"] = o.learning_rate;
    options["momentum"] = o.momentum;
    options["nesterov"] = o.nesterov;
    options["beta1"] = o.beta1;
    options["beta2"] = o.beta2;
    options["epsilon"] = o.epsilon;
    options["weight_decay"] = o.weight_decay;
    options["clip_norm"] = o.clip_norm;
    options["clip_value"] = o.clip_value;
    options["accumulate"] = o.accumulate;
    options["shards"] = o.shards;
    options["loss_scale"] = o.loss_scale;
    options["loss_scale_steps"] = o.loss_scale_steps;
    options["average"] = o.average;
    options["guard_loss"] = o.guard_loss;
    return options;
}

bool step_if(const OwnedSolver& self, const nb::callable& proceed) {
    const ContextLock lock(self.context());
    return self->step_if([&] {
        const GilAcquire gil;
        return static_cast<bool>(nb::bool_(proceed()));
    });
}

using SolverClass = nb::class_<OwnedSolver>;

void bind_making(SolverClass& solver) {
    const SolverOptions o;
    solver.def("__init__", make_solver, nb::arg("net"), nb::arg("kind") = "adam", nb::kw_only(),
               nb::arg("learning_rate") = o.learning_rate, nb::arg("momentum") = o.momentum,
               nb::arg("nesterov") = o.nesterov, nb::arg("beta1") = o.beta1,
               nb::arg("beta2") = o.beta2, nb::arg("epsilon") = o.epsilon,
               nb::arg("weight_decay") = o.weight_decay, nb::arg("clip_norm") = o.clip_norm,
               nb::arg("clip_value") = o.clip_value, nb::arg("accumulate") = o.accumulate,
               nb::arg("shards") = o.shards, nb::arg("loss_scale") = o.loss_scale,
               nb::arg("loss_scale_steps") = o.loss_scale_steps, nb::arg("average") = o.average,
               nb::arg("guard_loss") = o.guard_loss, "dlprim.Solver documents the options.");
}

void bind_steps(SolverClass& solver) {
    solver
        .def("step", locked(&Solver::step),
             "Enqueues forward, backward and, at every accumulate-th call, or after the last of a "
             "batch's shards, the update.")
        .def("step_if", step_if, nb::arg("proceed"),
             nb::sig("def step_if(self, proceed: collections.abc.Callable[[], object]) -> bool"),
             "The same, but calls proceed() after forward and returns its result. If that is "
             "False, parameters and solver state stay unchanged.")
        .def("call_off", locked(&Solver::call_off), nb::arg("back") = 1,
             "With guard_loss: restores the state before the step `back` steps ago (1: the last "
             "one; at most 2), whose loss was not finite, as if step_if() had skipped it and no "
             "step had followed.")
        .def("use_averages", locked(&Solver::use_averages),
             "With average: gives the parameters that are trained their averages, for good. "
             "Raises InvalidArgumentError without averages, or before the first update.")
        .def_prop_rw(
            "learning_rate", locked(&Solver::learning_rate),
            [](const OwnedSolver& self, double rate) {
                const ContextLock lock(self.context());
                self->set_learning_rate(rate);
            },
            "The learning rate from the next step on. Raises InvalidArgumentError unless it is a "
            "number of at least 0.")
        .def_prop_ro("steps", locked(&Solver::steps), "Updates done.")
        .def_prop_ro("options", options_of, nb::sig("def options(self) -> dict[str, typing.Any]"),
                     "The keyword arguments with which it was made.")
        .def("loss_scale", locked(&Solver::loss_scale),
             "The current factor of the loss; 1 if no operator has precision fp16. Waits.");
}

void bind_checkpoints(SolverClass& solver) {
    solver
        .def(
            "save_checkpoint",
            [](const OwnedSolver& self, const fs::path& path,
               const std::map<std::string, double>& extra) {
                const ContextLock lock(self.context());
                self->save_checkpoint(path.string(), extra);
            },
            nb::arg("path"), nb::arg("extra") = std::map<std::string, double>{},
            "Write weights, solver state, step and seed to one HDF5 file, whole or not at all. "
            "load_weights() can read it too. extra: numbers that load_checkpoint() returns.")
        .def(
            "load_checkpoint",
            [](const OwnedSolver& self, const fs::path& path) {
                const ContextLock lock(self.context());
                return self->load_checkpoint(path.string());
            },
            nb::arg("path"),
            "Continue from a checkpoint, and return its extra numbers. Raises FileError, "
            "FormatError, and InvalidArgumentError if it was trained in another precision.");
}

}  // namespace

void bind_solver(nb::module_& module) {
    SolverClass solver(module, "Solver", "Trains a Net. Programs use dlprim.Solver.");
    bind_making(solver);
    bind_steps(solver);
    bind_checkpoints(solver);
    bind_schedule(module);
    bind_train(module);
}

}  // namespace dlprim::python
