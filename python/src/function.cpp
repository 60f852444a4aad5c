// SPDX-License-Identifier: MIT
// dlprim._core.Function: include/dlprim/function.hpp for Python. dlprim.Function
// (python/dlprim/function.py) reads what a network may be given as.
#include "bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

namespace dlprim::python {
namespace {

using Names = std::vector<std::string>;

void make_function(Function* self, const Context& context, const std::string& json,
                   std::string name, Names constants, bool training, std::string_view precision,
                   std::vector<std::pair<std::string, std::string>> engines) {
    FunctionOptions options{.name = std::move(name),
                            .constants = std::move(constants),
                            .training = training,
                            .precision = parse_precision(precision),
                            .engines = std::move(engines)};
    const ContextLock lock(context);
    new (self) Function(context, json, options);
}

nb::tuple call(const Function& function, const nb::args& inputs, std::uint64_t seed,
               std::uint64_t step) {
    std::vector<Tensor> tensors;
    for (const nb::handle input : inputs) {
        if (!nb::isinstance<Tensor>(input))
            wrong_type(("input " + std::to_string(tensors.size())).c_str(), "a dlprim.Tensor",
                       input);
        tensors.push_back(nb::cast<Tensor>(input));
    }
    std::vector<Tensor> made;
    {
        const ContextLock lock(function.context());
        made = function(tensors, seed, step);
    }
    nb::list results;
    for (Tensor& result : made) results.append(nb::cast(std::move(result)));
    return nb::tuple(results);
}

}  // namespace

void bind_function(nb::module_& module) {
    nb::class_<Function>(module, "Function", "A graph of operators that is planned as a whole.")
        .def("__init__", make_function, nb::arg("context"), nb::arg("json"), nb::arg("name"),
             nb::arg("constants"), nb::arg("training"), nb::arg("precision"), nb::arg("engines"))
        .def_prop_ro("context", &Function::context, "The context that it runs on.")
        .def_prop_ro("input_names", &Function::input_names,
                     "Names of the inputs, in the order in which a call takes them.")
        .def_prop_ro("output_names", &Function::output_names,
                     "Names of the results, in the order in which a call returns them.")
        .def("__call__", call, nb::arg("inputs"), nb::arg("seed") = 1, nb::arg("step") = 0,
             nb::sig("def __call__(self, *inputs: Tensor, seed: int = 1, step: int = 0) -> "
                     "tuple[Tensor, ...]"),
             "Enqueue the operators and return the results.");
}

}  // namespace dlprim::python
