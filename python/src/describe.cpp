// SPDX-License-Identifier: MIT
// describe(): include/dlprim/describe.hpp for Python, where descriptions are records.
#include "net_options.hpp"
#include "net_parts.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace dlprim::python {
namespace {

/// Adds the shape and dtype that several records have.
template <typename Record>
nb::class_<Record> bind_tensor_record(nb::module_& module, const char* name, const char* what) {
    return nb::class_<Record>(module, name, what)
        .def_ro("name", &Record::name, "The tensor's name in the network.")
        .def_prop_ro(
            "shape", [](const Record& record) { return to_tuple(record.shape); },
            nb::sig("def shape(self) -> tuple[int, ...]"),
            "Sizes of its dimensions, slowest first.")
        .def_prop_ro(
            "dtype", [](const Record& record) { return dtype_name(record.dtype); },
            "The element type, e.g. 'float32'.")
        .def("__repr__", [name](const Record& record) {
            return nb::str("{}(name={!r}, shape={}, dtype={!r})")
                .format(name, record.name, to_tuple(record.shape), dtype_name(record.dtype));
        });
}

void bind_operator(nb::module_& module) {
    using Op = OperatorDescription;
    nb::class_<Op>(module, "OperatorDescription", "One operator of a network, with shapes.")
        .def_ro("name", &Op::name, "Unique in the network.")
        .def_ro("type", &Op::type, "E.g. 'Convolution'.")
        .def_prop_ro(
            "options",
            [](const Op& op) { return nb::module_::import_("json").attr("loads")(op.options); },
            nb::sig("def options(self) -> dict[str, typing.Any]"),
            "All options, including defaults.")
        .def_prop_ro(
            "precision", [](const Op& op) { return std::string(name_of(op.precision)); },
            "The precision of its products: 'fp32', 'tf32', 'fp16' or 'bf16'.")
        .def_ro("frozen", &Op::frozen, "Whether its parameters are excluded from training.")
        .def_ro("gflop", &Op::gflop,
                "Nominal operations of the forward pass in 10^9; a multiply-add counts as 2.")
        .def_ro("inputs", &Op::inputs, "The tensors that it reads, without parameters.")
        .def_ro("outputs", &Op::outputs, "The tensors that it makes.")
        .def_ro("params", &Op::params, "Its parameters: weight, bias.")
        .def("__repr__", [](const Op& op) {
            return nb::str("OperatorDescription(name={!r}, type={!r}, outputs={!r})")
                .format(op.name, op.type, nb::cast(op.outputs));
        });
}

void bind_network(nb::module_& module) {
    using Network = NetworkDescription;
    nb::class_<Network>(module, "NetworkDescription", "The operators of a network.")
        .def_ro("inputs", &Network::inputs, "In declared order.")
        .def_ro("operators", &Network::operators,
                "In an order in which every tensor is made before it is used.")
        .def_ro("outputs", &Network::outputs, "In declared order.")
        .def_ro("losses", &Network::losses, "The outputs that are losses, with their weights.")
        .def_ro("params", &Network::params,
                "Number of elements of all parameters; shared ones count once.")
        .def_ro("trainable_params", &Network::trainable_params,
                "Number of elements of the parameters that a solver would change.")
        .def("__repr__", [](const Network& network) {
            return nb::str("NetworkDescription({} operators, {} parameters)")
                .format(network.operators.size(), network.params);
        });
}

}  // namespace

void bind_describe(nb::module_& module) {
    bind_tensor_record<TensorDescription>(module, "TensorDescription",
                                          "A tensor of a network: its name, shape and maker.")
        .def_ro("producer", &TensorDescription::producer,
                "Index in NetworkDescription.operators of the operator that makes it, or -1 for an "
                "input of the network. Names are not enough, because an operator may overwrite a "
                "tensor.");
    bind_tensor_record<ParamDescription>(module, "ParamDescription", "A parameter of an operator.")
        .def_ro("trainable", &ParamDescription::trainable, "Whether a solver would change it.")
        .def_ro("shared", &ParamDescription::shared,
                "Whether an earlier operator has the same parameter, so that it counts only once.")
        .def_prop_ro(
            "count", [](const ParamDescription& param) { return param.shape.numel(); },
            "Number of its elements.");
    bind_operator(module);
    bind_network(module);
    module.def(
        "describe",
        [](const std::string& text, bool is_path, const nb::dict& keywords) {
            const NetOptions options = net_options(keywords);
            const GilRelease release;
            return is_path ? describe_file(text, options) : describe(text, options);
        },
        nb::arg("text"), nb::arg("is_path"), nb::arg("options"),
        nb::sig("def describe(text: str, is_path: bool, options: dict[str, typing.Any]) -> "
                "NetworkDescription"),
        "dlprim.describe() documents the options.");
    module.def("name_hint", &name_hint, nb::arg("name"), nb::arg("known"),
               "What a message offers for a name that is none of `known`: '; did you mean "
               "\"channels_out\"?', or ''.");
    module.def("operator_type_of", &operator_type_of, nb::arg("name"),
               "The operator type that other frameworks call `name`, or ''.");
}

}  // namespace dlprim::python
