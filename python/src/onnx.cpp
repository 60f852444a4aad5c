// SPDX-License-Identifier: MIT
// ONNXSession: ONNX models run on values of Python: arrays, arrays of strings, lists and None.
#include "bind.hpp"
#include "net_values.hpp"
#include "owned.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <filesystem>
#include <map>

namespace dlprim::python {
namespace {

using OwnedSession = Owned<ONNXSession>;

/// Python's strings as bytes. Bytes that are no UTF-8 survive the way to Python and back.
std::string to_text(nb::handle value) {
    if (PyBytes_Check(value.ptr()))
        return {PyBytes_AsString(value.ptr()), static_cast<std::size_t>(PyBytes_Size(value.ptr()))};
    if (!PyUnicode_Check(value.ptr()))
        wrong_type("an element of an array of strings", "a str or bytes", value);
    nb::object bytes =
        nb::steal(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "surrogateescape"));
    if (!bytes) throw nb::python_error();
    return to_text(bytes);
}

nb::object from_text(const std::string& text) {
    nb::object result = nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
    if (!result) throw nb::python_error();
    return result;
}

constexpr int deepest_value = 16;  ///< sequences in sequences; a list may contain itself

ONNXValue to_value(nb::handle value, int depth = 0) {
    if (value.is_none()) return {};
    if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
        if (depth == deepest_value)
            throw nb::value_error("sequences are nested deeper than 16 levels");
        ONNXValue::Sequence elements;
        for (nb::handle element : value) elements.push_back(to_value(element, depth + 1));
        return elements;
    }
    nb::object array = numpy().attr("asarray")(value);
    const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    if (kind == "U" || kind == "S" || kind == "O") {
        ONNXStrings strings{to_shape(array.attr("shape")), {}};
        for (nb::handle element : array.attr("ravel")().attr("tolist")())
            strings.values.push_back(to_text(element));
        return strings;
    }
    const HostArray host = to_host_array(value);
    return HostTensor{host.shape, host.dtype, converted(host, host.dtype, "a value")};
}

nb::object from_tensor(const HostTensor& tensor) {
    nb::object array = numpy().attr("empty")(
        to_tuple(tensor.shape),
        is_held_by_bits(tensor.dtype) ? bits_name(tensor.dtype) : dtype_name(tensor.dtype));
    if (!tensor.data.empty())
        std::memcpy(nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(array).data(),
                    tensor.data.data(), tensor.data.size());
    return typed_bits(array, tensor.dtype);
}

/// A list of a dict for each map, as ONNX Runtime gives it.
nb::object from_maps(const ONNXMaps& maps) {
    nb::list keys, dicts;
    for (const std::string& text : maps.texts) keys.append(from_text(text));
    for (const std::int64_t number : maps.numbers) keys.append(nb::int_(number));
    for (nb::handle row : from_tensor(maps.values).attr("tolist")()) {
        nb::dict dict;
        std::size_t i = 0;
        for (nb::handle value : row) dict[keys[i++]] = value;
        dicts.append(dict);
    }
    return dicts;
}

/// The array has the tensor's memory, where nothing else has.
nb::object from_tensor(const std::shared_ptr<const HostTensor>& tensor) {
    if (tensor.use_count() > 1 || tensor->data.empty()) return from_tensor(*tensor);
    return to_array(std::move(const_cast<HostTensor&>(*tensor)));
}

nb::object from_value(const ONNXValue& value) {
    switch (value.kind()) {
        case ONNXValue::Kind::tensor:
            return from_tensor(value.shared_tensor());
        case ONNXValue::Kind::strings: {
            nb::list texts;
            for (const std::string& text : value.strings().values) texts.append(from_text(text));
            return numpy()
                .attr("array")(texts, nb::arg("dtype") = "object")
                .attr("reshape")(to_tuple(value.strings().shape));
        }
        case ONNXValue::Kind::sequence: {
            nb::list elements;
            for (const ONNXValue& element : value.sequence()) elements.append(from_value(element));
            return elements;
        }
        case ONNXValue::Kind::maps:
            return from_maps(value.maps());
        case ONNXValue::Kind::none:
            break;
    }
    return nb::none();
}

ONNXModel to_model(nb::handle source) {
    ONNXModel model;
    if (PyBytes_Check(source.ptr()))
        model.parse(
            {PyBytes_AsString(source.ptr()), static_cast<std::size_t>(PyBytes_Size(source.ptr()))},
            "the model");
    else if (std::filesystem::path path; nb::try_cast(source, path))
        model.load(path.string());
    else
        wrong_type("an ONNX model", "a path or bytes", source);
    return model;
}

void make_session(OwnedSession* self, nb::handle on, nb::handle source,
                  const std::string& precision, int max_programs, std::uint64_t max_program_bytes,
                  std::int64_t max_iterations, std::int64_t max_nodes,
                  std::uint64_t max_known_bytes) {
    const Context& context = to_context(on);
    ONNXSessionOptions options;
    options.precision = parse_precision(precision);
    options.max_programs = max_programs;
    options.max_program_bytes = max_program_bytes;
    options.max_iterations = max_iterations;
    options.max_nodes = max_nodes;
    options.max_known_bytes = max_known_bytes;
    const ONNXModel model = to_model(source);
    new (self) OwnedSession({context},
                            [&] { return std::make_unique<ONNXSession>(context, model, options); });
}

nb::dict run_session(const OwnedSession& session, const nb::dict& given) {
    ONNXSession::Values inputs;
    for (const auto& [name, value] : given)
        inputs.emplace(nb::cast<std::string>(name), to_value(value));
    ONNXSession::Values outputs;
    {
        const ContextLock lock(session.contexts());
        outputs = session->run(inputs);
    }
    nb::dict result;
    for (const std::string& name : session->output_names())
        result[name.c_str()] = from_value(outputs.at(name));
    return result;
}

std::vector<std::string> input_names(const OwnedSession& session) {
    std::vector<std::string> names;
    for (const ONNXInput& input : session->inputs()) names.push_back(input.name);
    return names;
}

}  // namespace

void bind_onnx(nb::module_& module) {
    module.attr("newest_onnx_opset") = ONNXModel::newest_opset();
    const ONNXSessionOptions usual;
    nb::class_<OwnedSession>(
        module, "ONNXSession",
        "Runs an ONNX model whose shapes, branches and loops may depend on values "
        "(docs/onnx.md).\n\n"
        "Values are numpy arrays. A tensor of strings is an array of str, a sequence is a list, "
        "and None is an optional without an element.")
        .def("__init__", make_session, nb::arg("context"), nb::arg("model"),
             nb::arg("precision") = "fp32", nb::kw_only(),
             nb::arg("max_programs") = usual.max_programs,
             nb::arg("max_program_bytes") = usual.max_program_bytes,
             nb::arg("max_iterations") = usual.max_iterations,
             nb::arg("max_nodes") = usual.max_nodes,
             nb::arg("max_known_bytes") = usual.max_known_bytes,
             nb::sig("def __init__(self, context: Context, model: str | os.PathLike[str] | bytes, "
                     "precision: str = 'fp32', *, max_programs: int = 512, "
                     "max_program_bytes: int = 1073741824, "
                     "max_iterations: int = 16384, max_nodes: int = 262144, "
                     "max_known_bytes: int = 1073741824) -> None"),
             "`model` is a path, or a file's contents as bytes. `max_programs` is how many ways "
             "through the model, of other shapes or values, are kept, and `max_program_bytes` "
             "about how much memory they may keep; `max_iterations` how often "
             "one loop may go round; `max_nodes` how many nodes functions, branches and loops may "
             "stand for in one run; `max_known_bytes` how much the constants may take that nodes "
             "make. Raises MissingFileError, FormatError, and InvalidArgumentError for a limit "
             "below 1.")
        .def("run", run_session, nb::arg("inputs"),
             nb::sig("def run(self, inputs: dict[str, typing.Any]) -> dict[str, typing.Any]"),
             "Run the model on values by name, and return the outputs' values by name, in the "
             "model's order. Raises UnsupportedError, which names the node, for what the library "
             "does not have; InvalidArgumentError for an input that is missing or of another "
             "type or shape; TypeError for arrays that hold neither numbers nor strings.")
        .def_prop_ro("input_names", input_names, "What run() takes, in the model's order.")
        .def_prop_ro(
            "output_names", [](const OwnedSession& self) { return self->output_names(); },
            "What run() returns, in the model's order.");
}

}  // namespace dlprim::python
