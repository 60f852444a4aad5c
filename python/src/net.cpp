// SPDX-License-Identifier: MIT
// Net: include/dlprim/net.hpp for Python. The class dlprim.Net derives from this one and adds what
// is more readable in Python (python/dlprim/net.py).
#include "bind.hpp"
#include "net_options.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>

namespace dlprim::python {
namespace {

/// A member function of Net as one for Python that holds the context's lock.
template <typename Result, typename Class, typename... Args>
auto locked(Result (Class::*call)(Args...)) {
    return [call](Net& net, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(net.context());
        return (net.*call)(args...);
    };
}
template <typename Result, typename Class, typename... Args>
auto locked(Result (Class::*call)(Args...) const) {
    return [call](const Net& net, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(net.context());
        return (net.*call)(args...);
    };
}

void make_net(Net* self, const Context& context, const std::string& text, bool is_path,
              const nb::dict& keywords) {
    const NetOptions options = net_options(keywords);
    const ContextLock lock(context);
    new (self) Net(is_path ? Net::from_json_file(context, text, options)
                           : Net::from_json(context, text, options));
}

/// The first number of an integer type, and the one behind its last.
std::pair<double, double> range_of(DType dtype) {
    const double bits = 8.0 * static_cast<double>(size_of(dtype));
    if (dtype == DType::boolean) return {0, 2};
    if (dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32)
        return {0, std::exp2(bits)};
    return {-std::exp2(bits - 1), std::exp2(bits - 1)};
}

/// Refuses numbers that the integer type of an input does not hold, a NaN among them.
void check_whole(const std::string& name, DType dtype, const std::vector<double>& values) {
    const auto [lowest, end] = range_of(dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        if (value >= lowest && value < end && value == std::floor(value)) continue;
        throw Error(ErrorKind::invalid_argument,
                    "the array for input '" + name + "' holds " + std::to_string(value) +
                        " at position " + std::to_string(i) + ", which " + dtype_name(dtype) +
                        " does not hold");
    }
}

/// An array's elements in the dtype of an input. A float type rounds; what an integer type does not
/// hold is refused.
std::vector<std::byte> converted(const HostArray& array, const std::string& name, DType dtype) {
    const auto count = static_cast<std::size_t>(array.shape.numel());
    if (!is_float(dtype)) {
        std::vector<double> values(count);
        convert(array.data, array.dtype, values.data(), DType::f64, count);
        check_whole(name, dtype, values);
    }
    std::vector<std::byte> result(count * size_of(dtype));
    convert(array.data, array.dtype, result.data(), dtype, count);
    return result;
}

void set_input(Net& net, const std::string& name, nb::handle values) {
    const HostArray array = to_host_array(values);
    const ContextLock lock(net.context());
    const DType dtype = net.input_dtype(name);
    if (const Shape wanted = net.input_shape(name); array.shape != wanted)
        throw Error(ErrorKind::invalid_argument, "input '" + name + "' takes an array of shape " +
                                                     wanted.str() + ", got " +
                                                     array.shape.str());
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(array.shape.numel()) * size_of(dtype);
    if (array.dtype == dtype) return net.set_input(name, array.data, bytes);
    net.set_input(name, converted(array, name, dtype).data(), bytes);
}

void bind_node_report(nb::module_& module) {
    nb::class_<NodeReport>(module, "NodeReport",
                           "One node of a plan: what computes it, and what that takes.")
        .def_ro("name", &NodeReport::name)
        .def_ro("type", &NodeReport::type)
        .def_ro("engine", &NodeReport::engine)
        .def_ro("device", &NodeReport::device)
        .def_ro("fused", &NodeReport::fused, "Names of operators that this node computes, too.")
        .def_ro("part", &NodeReport::part, "'forward', 'backward', 'accumulate' or 'update'.")
        .def_ro("ms", &NodeReport::ms, "Measured milliseconds; 0 where nothing was profiled.")
        .def_ro("start_ms", &NodeReport::start_ms,
                "Measured milliseconds from the first launch of the profile.")
        .def_ro("gflop", &NodeReport::gflop, "Nominal operations, in 10^9.")
        .def_ro("gbytes", &NodeReport::gbytes, "Operands read and written once, in 10^9 bytes.")
        .def_ro("bound_ms", &NodeReport::bound_ms, "The device's roofline, in milliseconds.")
        .def_ro("params", &NodeReport::params, "Elements of the parameters.")
        .def("__repr__", [](const NodeReport& node) {
            return nb::str("NodeReport(name={!r}, type={!r}, engine={!r}, part={!r}, ms={:.3f})")
                .format(node.name, node.type, node.engine, node.part, node.ms);
        });
}

}  // namespace

void bind_net(nb::module_& module) {
    bind_node_report(module);
    nb::class_<Net>(module, "Net")
        .def("__init__", make_net, nb::arg("context"), nb::arg("text"), nb::arg("is_path"),
             nb::arg("options"))
        .def_prop_ro("context", [](const Net& net) { return net.context(); })
        .def_prop_ro("input_names", locked(&Net::input_names))
        .def_prop_ro("output_names", locked(&Net::output_names))
        .def_prop_ro("loss_names", locked(&Net::loss_names))
        .def_prop_ro("loss_weights", locked(&Net::loss_weights))
        .def_prop_ro("param_names", locked(&Net::param_names))
        .def_prop_ro("has_loss", locked(&Net::has_loss))
        .def("is_trainable", locked(&Net::is_trainable), nb::arg("param"))
        .def("label_classes", locked(&Net::label_classes), nb::arg("input"))
        .def("input_shape",
             [](const Net& net, const std::string& name) {
                 return to_tuple(net.input_shape(name));
             },
             nb::arg("name"))
        .def("input_dtype",
             [](const Net& net, const std::string& name) {
                 return dtype_name(net.input_dtype(name));
             },
             nb::arg("name"))
        .def("param_shape",
             [](const Net& net, const std::string& name) {
                 return to_tuple(net.param_shape(name));
             },
             nb::arg("name"))
        .def("input", locked(&Net::input), nb::arg("name"))
        .def("output", locked(&Net::output), nb::arg("name"))
        .def("param", locked(&Net::param), nb::arg("name"))
        .def("gradient", locked(&Net::gradient), nb::arg("name"))
        .def("output_gradient", locked(&Net::output_gradient), nb::arg("name"))
        .def("gradient_names", locked(&Net::gradient_names))
        .def("output_gradient_names", locked(&Net::output_gradient_names))
        .def("changed_by_forward", locked(&Net::changed_by_forward))
        .def("set_input", set_input, nb::arg("name"), nb::arg("array"))
        .def("load_weights", locked(&Net::load_weights), nb::arg("path"),
             nb::arg("missing_ok") = false)
        .def("save_weights", locked(&Net::save_weights), nb::arg("path"))
        .def("initialize", locked(&Net::initialize), nb::arg("method") = "default")
        .def("params_changed", locked(&Net::params_changed))
        .def("prepare", locked(&Net::prepare))
        .def("forward", locked(&Net::forward))
        .def("backward", locked(&Net::backward))
        .def("planned_peak_bytes", locked(&Net::planned_peak_bytes))
        .def("planned_setup_peak_bytes", locked(&Net::planned_setup_peak_bytes))
        .def("memory_report", locked(&Net::memory_report))
        .def("nodes", locked(&Net::nodes))
        .def("profile", locked(&Net::profile), nb::arg("whole_step") = false)
        .def("notes", locked(&Net::notes))
        .def("first_nan", locked(&Net::first_nan));
}

}  // namespace dlprim::python
