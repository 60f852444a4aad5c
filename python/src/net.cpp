// SPDX-License-Identifier: MIT
// Net: include/dlprim/net.hpp for Python. The class dlprim.Net derives from this one and adds what
// is easier to read in Python (python/dlprim/net.py).
#include "net_options.hpp"
#include "net_parts.hpp"
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
namespace {

using OwnedNet = Owned<Net>;

void make_net(OwnedNet* self, nb::handle on, const std::string& text, bool is_path,
              const nb::dict& keywords) {
    const Context& context = to_context(on);
    const NetOptions options = net_options(keywords);
    new (self) OwnedNet({context}, [&] {
        return std::make_unique<Net>(!is_path ? Net::from_json(context, text, options)
                                     : text.ends_with(".onnx")
                                         ? Net::from_onnx_file(context, text, options)
                                         : Net::from_json_file(context, text, options));
    });
}

void set_input(const OwnedNet& net, const std::string& name, nb::handle values) {
    const HostArray array = to_host_array(values);
    const ContextLock lock(net.contexts());
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

nb::dict weights(const OwnedNet& net) {
    nb::dict result;
    for (const std::string& name : locked (&Net::param_names)(net))
        result[name.c_str()] = to_array(locked(&Net::read_param)(net, name));
    return result;
}

void set_weights(const OwnedNet& net, nb::handle given, bool missing_ok) {
    std::map<std::string, nb::object> arrays;
    if (!nb::try_cast(given, arrays))
        wrong_type("the argument of set_weights()", "a dict of arrays by name", given);
    std::map<std::string, HostTensor> values;
    for (const auto& [name, object] : arrays) {
        const HostArray array = to_host_array(object);
        const DType dtype = locked(&Net::param_dtype)(net, name);
        values[name] = {array.shape, dtype,
                        converted(array, dtype, "the array for parameter '" + name + "'")};
    }
    const ContextLock lock(net.contexts());
    net->write_params(std::move(values), missing_ok);
}

std::string mode_of(const OwnedNet& net) {
    switch (net->options().mode) {
        case Mode::inference:
            return "inference";
        case Mode::evaluation:
            return "evaluation";
        case Mode::training:
            break;
    }
    return "training";
}

void bind_node_report(nb::module_& module) {
    using Node = NodeReport;
    nb::class_<Node>(module, "NodeReport", "One node of a plan: what computes it, at which cost.")
        .def_ro("name", &Node::name, "The operator's name, or one derived from it.")
        .def_ro("type", &Node::type, "The operator's type.")
        .def_ro("engine", &Node::engine, "What computes it, e.g. 'conv2d.blocked_winograd'.")
        .def_ro("device", &Node::device, "The device's id.")
        .def_ro("fused", &Node::fused, "Names of other operators that this node computes, too.")
        .def_ro("part", &Node::part, "'forward', 'backward', 'accumulate' or 'update'.")
        .def_ro("ms", &Node::ms, "Measured milliseconds; 0 where nothing was profiled.")
        .def_ro("start_ms", &Node::start_ms,
                "Measured milliseconds from the first launch of the profile.")
        .def_ro("gflop", &Node::gflop, "Nominal operations, in 10^9.")
        .def_ro("gbytes", &Node::gbytes, "Operands read and written once, in 10^9 bytes.")
        .def_ro("bound_ms", &Node::bound_ms, "The roofline on the device, in milliseconds.")
        .def_ro("params", &Node::params, "Elements of its operators' parameters.")
        .def("__repr__", [](const Node& node) {
            return nb::str("NodeReport(name={!r}, type={!r}, engine={!r}, part={!r}, ms={:.3f})")
                .format(node.name, node.type, node.engine, node.part, node.ms);
        });
}

using NetClass = nb::class_<OwnedNet>;

/// Names, shapes, values and runs.
void bind_names_and_runs(NetClass& net) {
    void (Net::*const save_weights)(const std::string&) = &Net::save_weights;
    net.def_prop_ro("input_names", locked(&Net::input_names), "In declared order.")
        .def_prop_ro("output_names", locked(&Net::output_names), "In declared order.")
        .def_prop_ro("loss_names", locked(&Net::loss_names), "Outputs that are losses.")
        .def_prop_ro("param_names", locked(&Net::param_names), "Trained and not.")
        .def("is_trainable", locked(&Net::is_trainable), nb::arg("param"),
             "Whether a solver changes the parameter; False for names that there are not.")
        .def("input_shape", locked_as<to_tuple>(&Net::input_shape), nb::arg("name"),
             nb::sig("def input_shape(self, name: str) -> tuple[int, ...]"),
             "The input's sizes, slowest dimension first. Raises NotFoundError.")
        .def("set_input", set_input, nb::arg("name"), nb::arg("array"),
             nb::sig("def set_input(self, name: str, array: numpy.typing.ArrayLike) -> None"),
             "Copies an array into an input, on every device that reads it.\n\n"
             "The array has the input's shape. One of the input's dtype, C-ordered and of native "
             "byte order, is read where it lies; others are converted. May be changed as soon as "
             "this returns. Raises InvalidArgumentError on another shape, on labels that are no "
             "class numbers, and on numbers that an integer input does not hold; TypeError on "
             "arrays that hold no numbers.")
        .def("load_weights", locked_file(&Net::load_weights), nb::arg("path"),
             nb::arg("missing_ok") = false,
             "Every parameter from an HDF5 file, of a Net or a PlacedNet. missing_ok: those that "
             "the file lacks are initialised. Raises FileError, FormatError, NotFoundError naming "
             "the parameter; then nothing has changed.")
        .def("save_weights", locked_file(save_weights), nb::arg("path"),
             "Writes every parameter to an HDF5 file, whole or not at all.")
        .def("weights", weights,
             nb::sig("def weights(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Copies of all parameters as numpy arrays, by name. The dict can be pickled. Raises "
             "InvalidArgumentError where parameters have no values yet.")
        .def("initialize", locked(&Net::initialize), nb::arg("method") = "default",
             "Gives all parameters their first values: 'default', 'he' or 'xavier'.")
        .def("params_changed", locked(&Net::params_changed),
             "To be called after writing to param() tensors.")
        .def("prepare", locked(&Net::prepare),
             "Plans, compiles and allocates, as forward() does where it has not been done. Raises "
             "OutOfMemoryError where that does not fit a device.")
        .def("enqueue_forward", locked(&Net::forward),
             "What forward() does without setting inputs or returning outputs.")
        .def("backward", locked(&Net::backward),
             "Enqueues the gradients of the last forward(). Raises InvalidArgumentError where "
             "there was none of these shapes, or in inference.")
        .def("first_nan", locked(&Net::first_nan),
             "Runs forward again, operator by operator, on the same inputs: the name of the first "
             "whose output holds a NaN or an infinity, or ''. Waits.");
}

void bind_lock(NetClass& net) {
    net.def(
           "enter_lock", [](const OwnedNet& self) { enter_context_lock(self->context()); },
           "Keeps other threads' calls on nets of the context waiting until leave_lock(), which "
           "the "
           "same thread calls as often: what locked() does.")
        .def(
            "leave_lock", [](const OwnedNet& self) { leave_context_lock(self->context()); },
            "Ends what enter_lock() began.");
}

void bind_facts(NetClass& net) {
    net.def_prop_ro(
           "context", [](const OwnedNet& self) { return self->context(); },
           "The Context that the net is on, or that of a PlacedNet's first device.")
        .def_prop_ro("mode", mode_of, "'training', 'evaluation' or 'inference'.")
        .def_prop_ro(
            "precision",
            [](const OwnedNet& self) { return std::string(name_of(self->options().precision)); },
            "What operators without a precision of their own compute in.")
        .def_prop_ro("loss_weights", locked(&Net::loss_weights), "Losses and their weights.")
        .def_prop_ro("has_loss", locked(&Net::has_loss), "Whether an output is a loss.")
        .def("label_classes", locked(&Net::label_classes), nb::arg("input"),
             "How many classes an input of class numbers has; 0 for other inputs.")
        .def("input_dtype", locked_as<dtype_name>(&Net::input_dtype), nb::arg("name"),
             "E.g. 'float32'. Raises NotFoundError.")
        .def("param_shape", locked_as<to_tuple>(&Net::param_shape), nb::arg("name"),
             nb::sig("def param_shape(self, name: str) -> tuple[int, ...]"),
             "The parameter's sizes, slowest dimension first. Raises NotFoundError.")
        .def("param_dtype", locked_as<dtype_name>(&Net::param_dtype), nb::arg("name"),
             "E.g. 'float32'. Raises NotFoundError.")
        .def(
            "describe",
            [](const OwnedNet& self) {
                const ContextLock lock(self.contexts());
                return describe(*self);
            },
            "A NetworkDescription: operators with shapes and parameters. Plans nothing.");
}

void bind_tensors(NetClass& net) {
    net.def("input", locked(&Net::input), nb::arg("name"),
            "An input's own Tensor, in place until reshape(). Counts as setting the input. Raises "
            "NotFoundError.")
        .def("output", locked(&Net::output), nb::arg("name"),
             "An output's own Tensor, in place until reshape(): the next forward() writes to it. "
             "Raises NotFoundError, and InvalidArgumentError before a forward() of the net's "
             "present shapes.")
        .def("param", locked(&Net::param), nb::arg("name"),
             "A parameter's own Tensor. Call params_changed() after writing to it. Counts as "
             "setting the parameter. Raises NotFoundError.")
        .def("gradient", locked(&Net::gradient), nb::arg("name"),
             "The gradient of a parameter or, with input_gradients, of an input, which backward() "
             "writes. Raises NotFoundError.")
        .def("output_gradient", locked(&Net::output_gradient), nb::arg("name"),
             "With output_gradients: the gradient of an output, which backward() starts from and "
             "the caller writes. Raises NotFoundError.")
        .def("gradient_names", locked(&Net::gradient_names), "What gradient() knows.")
        .def("output_gradient_names", locked(&Net::output_gradient_names),
             "What output_gradient() knows.")
        .def("changed_by_forward", locked(&Net::changed_by_forward),
             "Parameters that a training forward changes: running statistics.");
}

void bind_shapes_and_weights(NetClass& net) {
    net.def(
           "reshape",
           [](const OwnedNet& self, std::int64_t batch) {
               const ContextLock lock(self.contexts());
               self->reshape(batch);
           },
           nb::arg("batch"), "A new first dimension for every input.")
        .def(
            "reshape",
            [](const OwnedNet& self, const nb::dict& input_shapes) {
                std::map<std::string, Shape> shapes;
                if (!to_shapes(input_shapes, shapes))
                    throw nb::type_error("reshape() takes a dict of input names and shapes");
                const ContextLock lock(self.contexts());
                self->reshape(shapes);
            },
            nb::arg("input_shapes"),
            nb::sig("def reshape(self, input_shapes: dict[str, collections.abc.Sequence[int]]) -> "
                    "None"),
            "New shapes for the inputs that are named; others keep theirs.")
        .def("set_weights", set_weights, nb::arg("weights"), nb::arg("missing_ok") = false,
             nb::sig("def set_weights(self, weights: collections.abc.Mapping[str, "
                     "numpy.typing.ArrayLike], missing_ok: bool = False) -> None"),
             "Every parameter from a dict of arrays of its shape. missing_ok: those that the dict "
             "lacks are initialised. Raises NotFoundError on a name that is missing or that the "
             "net has not, InvalidArgumentError on a wrong shape; then nothing has changed.");
}

void bind_plans(NetClass& net) {
    net.def("planned_peak_bytes", locked(&Net::planned_peak_bytes),
            "Peak device memory while batches run, in bytes. Plans the net; allocates nothing.")
        .def("planned_setup_peak_bytes", locked(&Net::planned_setup_peak_bytes),
             "Peak device memory while parameters are packed before the first batch, in bytes.")
        .def("memory_report", locked(&Net::memory_report), "What takes device memory, as a text.")
        .def("nodes", locked(&Net::nodes), "The plan's nodes as NodeReports, nothing measured.")
        .def("profile", locked(&Net::profile), nb::arg("whole_step") = false,
             "Runs one batch with every launch timed, and returns a NodeReport per node.\n\n"
             "whole_step: backward and update, too. Waits. Parameters, solver state and gradients "
             "are afterwards as they were. Ctrl-C ends it between nodes.")
        .def("notes", locked(&Net::notes), "Remarks of the planner and on a loaded checkpoint.");
}

}  // namespace

void bind_net(nb::module_& module) {
    bind_node_report(module);
    bind_describe(module);
    NetClass net(module, "Net",
                 "A network; dlprim.Net and dlprim.PlacedNet are what programs use.");
    net.def("__init__", make_net, nb::arg("context"), nb::arg("text"), nb::arg("is_path"),
            nb::arg("options"),
            nb::sig("def __init__(self, context: Context, text: str, is_path: bool, options: "
                    "dict[str, typing.Any]) -> None"),
            "dlprim.Net says what the options are.");
    bind_names_and_runs(net);
    bind_facts(net);
    bind_lock(net);
    bind_tensors(net);
    bind_shapes_and_weights(net);
    bind_plans(net);
}

}  // namespace dlprim::python
