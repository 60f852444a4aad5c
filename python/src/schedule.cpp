// SPDX-License-Identifier: MIT
// Schedule: include/dlprim/schedule.hpp for Python; dlprim.schedules makes them.
#include "net_parts.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>

namespace dlprim::python {
namespace {

ScheduleOptions::Kind to_schedule_kind(const std::string& name) {
    using Kind = ScheduleOptions::Kind;
    static const std::map<std::string, Kind> kinds{{"constant", Kind::constant},
                                                   {"step", Kind::step},
                                                   {"cosine", Kind::cosine},
                                                   {"plateau", Kind::plateau}};
    if (const auto found = kinds.find(name); found != kinds.end()) return found->second;
    throw Error(ErrorKind::invalid_argument,
                "schedule '" + name + "' is none of 'constant', 'step', 'cosine' and 'plateau'");
}

void make_schedule(Schedule* self, const std::string& kind, double learning_rate, double epochs,
                   double warmup_epochs, double step_epochs, double gamma, double minimum,
                   int patience) {
    ScheduleOptions options;
    options.kind = to_schedule_kind(kind);
    options.warmup_epochs = warmup_epochs;
    options.step_epochs = step_epochs;
    options.gamma = gamma;
    options.minimum = minimum;
    options.patience = patience;
    new (self) Schedule(options, learning_rate, epochs);
}

/// Numbers for a checkpoint's `extra`.
using State = std::map<std::string, double>;

State state(const Schedule& schedule) {
    return {{"schedule_factor", schedule.factor},
            {"schedule_best", schedule.best},
            {"schedule_waited", schedule.epochs_without_improvement}};
}

void set_state(Schedule& schedule, const State& state) {
    const auto read = [&](const char* name, double& value) {
        if (const auto found = state.find(name); found != state.end()) value = found->second;
    };
    read("schedule_factor", schedule.factor);
    read("schedule_best", schedule.best);
    read("schedule_waited", schedule.epochs_without_improvement);
}

}  // namespace

void bind_schedule(nb::module_& module) {
    nb::class_<Schedule>(module, "Schedule", "The learning rate as a function of the epoch.")
        .def("__init__", make_schedule, nb::arg("kind"), nb::arg("learning_rate"),
             nb::arg("epochs"), nb::kw_only(), nb::arg("warmup_epochs") = 0.0,
             nb::arg("step_epochs") = 30.0, nb::arg("gamma") = 0.1, nb::arg("minimum") = 0.0,
             nb::arg("patience") = 5,
             "dlprim.schedules documents the numbers. Raises InvalidArgumentError on invalid "
             "numbers.")
        .def_prop_ro("warmup_epochs", &Schedule::warmup_epochs,
                     "The number of epochs in which the rate rises to the full rate.")
        .def("rate", &Schedule::rate, nb::arg("epoch"),
             "Return the learning rate at an epoch, counted from 0. A fraction counts batches of "
             "the epoch.")
        .def("__call__", &Schedule::rate, nb::arg("epoch"), "The same as rate().")
        .def("report", &Schedule::report, nb::arg("loss"),
             "Report the loss on the test set after an epoch. Only plateau schedules use it.")
        .def("state", state,
             "Return the state that report() has changed, for `extra` of Solver.save_checkpoint().")
        .def("set_state", set_state, nb::arg("state"),
             "Restore the result of state(). Other names, which load_checkpoint() may return, are "
             "ignored.");
}

}  // namespace dlprim::python
