// SPDX-License-Identifier: MIT
// What the classes Net and PlacedNet have in common for Python, and Solver and PlacedSolver.
#pragma once

#include "net_options.hpp"
#include "net_values.hpp"
#include "owned.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <string>

namespace dlprim::python {

template <typename AnyNet>
void set_input(const Owned<AnyNet>& net, const std::string& name, nb::handle values) {
    const HostArray array = to_host_array(values);
    const ContextLock lock(net.context());
    const Shape wanted = net->input_shape(name);
    if (array.shape != wanted)
        throw Error(ErrorKind::invalid_argument, "input '" + name + "' takes an array of shape " +
                                                     wanted.str() + ", got " + array.shape.str());
    const DType dtype = net->input_dtype(name);
    const std::uint64_t bytes = static_cast<std::uint64_t>(wanted.numel()) * size_of(dtype);
    if (array.dtype == dtype) return net->set_input(name, array.data, bytes);
    net->set_input(name, converted(array, dtype, "the array for input '" + name + "'").data(),
                   bytes);
}

template <typename AnyNet>
nb::dict weights(const Owned<AnyNet>& net) {
    nb::dict result;
    for (const std::string& name : locked (&AnyNet::param_names)(net))
        result[name.c_str()] = to_array(locked(&AnyNet::read_param)(net, name));
    return result;
}

/// Names, shapes, values and runs.
template <typename AnyNet>
void bind_any_net(nb::class_<Owned<AnyNet>>& net) {
    void (AnyNet::*const save_weights)(const std::string&) = &AnyNet::save_weights;
    net.def_prop_ro("input_names", locked(&AnyNet::input_names), "In declared order.")
        .def_prop_ro("output_names", locked(&AnyNet::output_names), "In declared order.")
        .def_prop_ro("loss_names", locked(&AnyNet::loss_names), "Outputs that are losses.")
        .def_prop_ro("param_names", locked(&AnyNet::param_names), "Trained and not.")
        .def("is_trainable", locked(&AnyNet::is_trainable), nb::arg("param"),
             "Whether a solver changes the parameter; False for names that there are not.")
        .def("input_shape", locked_as<to_tuple>(&AnyNet::input_shape), nb::arg("name"),
             nb::sig("def input_shape(self, name: str) -> tuple[int, ...]"),
             "The input's sizes, slowest dimension first. Raises NotFoundError.")
        .def("set_input", set_input<AnyNet>, nb::arg("name"), nb::arg("array"),
             nb::sig("def set_input(self, name: str, array: numpy.typing.ArrayLike) -> None"),
             "Copies an array into an input, on every device that reads it.\n\n"
             "The array has the input's shape. One of the input's dtype, C-ordered and of native "
             "byte order, is read where it lies; others are converted. May be changed as soon as "
             "this returns. Raises InvalidArgumentError on another shape, on labels that are no "
             "class numbers, and on numbers that an integer input does not hold; TypeError on "
             "arrays that hold no numbers.")
        .def("load_weights", locked_file(&AnyNet::load_weights), nb::arg("path"),
             nb::arg("missing_ok") = false,
             "Every parameter from an HDF5 file, of a Net or a PlacedNet. missing_ok: those that "
             "the file lacks are initialised. Raises FileError, FormatError, NotFoundError naming "
             "the parameter; then nothing has changed.")
        .def("save_weights", locked_file(save_weights), nb::arg("path"),
             "Writes every parameter to an HDF5 file, whole or not at all.")
        .def("weights", weights<AnyNet>,
             nb::sig("def weights(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Copies of all parameters as numpy arrays, by name. The dict can be pickled. Raises "
             "InvalidArgumentError where parameters have no values yet.")
        .def("initialize", locked(&AnyNet::initialize), nb::arg("method") = "default",
             "Gives all parameters their first values: 'default', 'he' or 'xavier'.")
        .def("params_changed", locked(&AnyNet::params_changed),
             "To be called after writing to param() tensors.")
        .def("prepare", locked(&AnyNet::prepare),
             "Plans, compiles and allocates, as forward() does where it has not been done. Raises "
             "OutOfMemoryError where that does not fit a device.")
        .def("enqueue_forward", locked(&AnyNet::forward),
             "What forward() does without setting inputs or returning outputs.")
        .def("backward", locked(&AnyNet::backward),
             "Enqueues the gradients of the last forward(). Raises InvalidArgumentError where "
             "there was none of these shapes, or in inference.")
        .def("first_nan", locked(&AnyNet::first_nan),
             "Runs forward again, operator by operator, on the same inputs: the name of the first "
             "whose output holds a NaN or an infinity, or ''. Waits.");
}

template <typename AnySolver, typename AnyNet>
void make_solver(Owned<AnySolver>* self, const Owned<AnyNet>& net, const nb::dict& keywords) {
    const SolverOptions options = solver_options(keywords);
    new (self)
        Owned<AnySolver>(net.context(), [&] { return std::make_unique<AnySolver>(*net, options); });
}

template <typename AnySolver, typename AnyNet>
void bind_any_solver(nb::class_<Owned<AnySolver>>& solver, const char* making) {
    using Extra = std::map<std::string, double>;
    solver
        .def("__init__", make_solver<AnySolver, AnyNet>, nb::arg("net"), nb::arg("options"),
             nb::sig(making), "The class of the package documents the options.")
        .def("step", locked(&AnySolver::step),
             "Enqueues forward, backward and, at every accumulate-th call, or after the last of a "
             "batch's shards, the update.")
        .def("call_off", locked(&AnySolver::call_off), nb::arg("back") = 1,
             "With guard_loss: restores the state before the step `back` steps ago (1: the last "
             "one; at most 2), whose loss was not finite, as if no step had followed. Raises "
             "InvalidArgumentError.")
        .def("use_averages", locked(&AnySolver::use_averages),
             "With average: gives the parameters that are trained their averages, for good. "
             "Raises InvalidArgumentError without averages, or before the first update.")
        .def_prop_rw("learning_rate", locked(&AnySolver::learning_rate),
                     locked(&AnySolver::set_learning_rate),
                     "The learning rate from the next step on. Raises InvalidArgumentError unless "
                     "it is a number of at least 0.")
        .def_prop_ro("steps", locked(&AnySolver::steps), "Updates done.")
        .def("save_checkpoint", locked_file(&AnySolver::save_checkpoint), nb::arg("path"),
             nb::arg("extra") = Extra{},
             "Write weights, solver state, step and seed to one HDF5 file, whole or not at all, "
             "without a trace of a placement. load_weights() can read it too. extra: numbers that "
             "load_checkpoint() returns.")
        .def("load_checkpoint", locked_file(&AnySolver::load_checkpoint), nb::arg("path"),
             "Continue from a checkpoint of a Solver or a PlacedSolver, and return its extra "
             "numbers. Raises FileError, FormatError, and InvalidArgumentError if it was trained "
             "in another precision.");
}

}  // namespace dlprim::python
