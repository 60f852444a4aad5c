// SPDX-License-Identifier: MIT
// dlprim._core.Call: an operator with its options and settings. Gradient asks a Call for its
// gradient. The functions of dlprim.ops (python/dlprim/ops) are built on them.
//
// A Call is made once per set of keywords and kept by Python, so that calling a function again
// builds no text and only looks up the Call. Its methods accept plain handles, so that they can
// report wrong arguments with messages of their own and convert nothing twice.
#include "bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace dlprim::python {

namespace {

using Tensors = std::vector<Tensor>;

/// Whether the object is a Tensor. nanobind's look-up of the type is done only once.
bool is_tensor(nb::handle object) {
    static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<Tensor>().ptr());
    return Py_TYPE(object.ptr()) == type || PyType_IsSubtype(Py_TYPE(object.ptr()), type) != 0;
}

/// Gradients of a function's outputs, which are passed in place of `out`.
struct Gradient {
    nb::object output_gradients;  ///< a tuple or list of tensors
};

class Call {
  public:
    Call(std::string type, std::string options, bool training, std::string_view precision,
         std::string engine, std::vector<std::pair<std::string, std::string>> engines)
        : type_(std::move(type)), options_(std::move(options)) {
        how_.training = training;
        how_.precision = parse_precision(precision);
        how_.engine = std::move(engine);
        how_.engines = std::move(engines);
    }

    const std::string& type() const { return type_; }
    const std::string& options() const { return options_; }

    /// The results, or the gradients if `out` is a Gradient.
    nb::object run(nb::handle inputs, nb::handle params, nb::handle out, nb::handle seed,
                   nb::handle step, bool single) const {
        if (!out.is_none() && nb::isinstance<Gradient>(out))
            return backward(inputs, params, nb::cast<const Gradient&>(out).output_gradients,
                            nb::none(), seed, step);
        Operands operands{tensors(inputs, "input"), tensors(params, "parameter"), {}};
        if (out.is_none() && has_defaults(seed, step))
            return results(work(operands, how_), out, single);
        return results(work(operands, how(out, seed, step, single)), out, single);
    }

    nb::object backward(nb::handle inputs, nb::handle params, nb::handle output_gradients,
                        nb::handle out, nb::handle seed, nb::handle step) const {
        Operands operands{tensors(inputs, "input"), tensors(params, "parameter"),
                          tensors(output_gradients, "output gradient")};
        return results(work(operands, how(out, seed, step, false), true), out, false);
    }

  private:
    struct Operands {
        Tensors inputs, params, output_gradients;
    };

    static bool has_defaults(nb::handle seed, nb::handle step) {
        return seed.is_none() && step.is_none();
    }

    Tensor tensor(nb::handle object, const char* what, Py_ssize_t index) const {
        if (is_tensor(object) && nb::inst_ready(object)) {  // __init__() may not have been called
            const Tensor& given = *nb::inst_ptr<Tensor>(object);
            if (given.defined()) return given;
        }
        const std::string sentence =
            type_ + ": " + what + " " + std::to_string(index) + " is " +
            (object.is_none() ? "None" : kind_of(object)) +
            "; a dlprim.Tensor is needed, which dlprim.Tensor(context, array) makes of an array";
        throw nb::type_error(sentence.c_str());
    }

    /// The tensors of a tuple or list.
    Tensors tensors(nb::handle given, const char* what) const {
        PyObject* const all = given.ptr();
        const bool is_tuple = PyTuple_Check(all) != 0;
        if (!is_tuple && PyList_Check(all) == 0) {
            const std::string sentence = type_ + " takes a tuple or list of " + what +
                                         "s (dlprim.Tensor), got " + kind_of(given);
            throw nb::type_error(sentence.c_str());
        }
        const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(all) : PyList_GET_SIZE(all);
        Tensors made;
        made.reserve(static_cast<std::size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i)
            made.push_back(
                tensor(is_tuple ? PyTuple_GET_ITEM(all, i) : PyList_GET_ITEM(all, i), what, i));
        return made;
    }

    std::uint64_t whole(nb::handle given, const char* what, std::uint64_t standard) const {
        if (given.is_none()) return standard;
        const nb::object index = nb::steal(PyNumber_Index(given.ptr()));
        const std::uint64_t value =
            index.is_valid() ? PyLong_AsUnsignedLongLong(index.ptr()) : std::uint64_t{0};
        if (PyErr_Occurred() == nullptr) return value;
        PyErr_Clear();
        const std::string sentence = type_ + ": " + what + " is " +
                                     nb::cast<std::string>(nb::repr(given)) +
                                     "; an integer from 0 to 2^64 - 1 is needed";
        throw nb::value_error(sentence.c_str());
    }

    /// `how_` with the arguments of this call.
    ops::CallOptions how(nb::handle out, nb::handle seed, nb::handle step, bool single) const {
        ops::CallOptions how = how_;
        how.seed = whole(seed, "seed", 1);
        how.step = whole(step, "step", 0);
        if (out.is_none()) return how;
        if (single || is_tensor(out)) {
            how.out.push_back(tensor(out, "out tensor", 0));
            return how;
        }
        if (PyTuple_Check(out.ptr()) == 0 && PyList_Check(out.ptr()) == 0)
            throw nb::type_error((type_ +
                                  " takes a dlprim.Tensor, or a tuple or list of them, as "
                                  "out, got " +
                                  kind_of(out))
                                     .c_str());
        Py_ssize_t i = 0;
        for (const nb::handle item : nb::borrow<nb::sequence>(out)) {
            how.out.push_back(item.is_none() ? Tensor() : tensor(item, "out tensor", i));
            ++i;
        }
        return how;
    }

    /// The part that may wait or take long. It runs with the interpreter's lock released.
    Tensors work(Operands& operands, const ops::CallOptions& how, bool backward = false) const {
        const Tensors& first = operands.inputs.empty() ? operands.params : operands.inputs;
        std::optional<ContextLock> lock;
        if (!first.empty()) lock.emplace(first[0].context());
        return backward ? ops::backward(type_, options_, operands.inputs, operands.params,
                                        operands.output_gradients, how)
                        : ops::call(type_, options_, operands.inputs, operands.params, how);
    }

    /// The results. Tensors of `out` are returned as the caller's own objects.
    static nb::object results(Tensors made, nb::handle out, bool single) {
        const auto object = [&](std::size_t i) -> nb::object {
            if (!out.is_none()) {
                if (is_tensor(out)) {
                    if (i == 0) return nb::borrow(out);
                } else if (i < nb::len(out)) {
                    nb::object given = out[i];
                    if (!given.is_none()) return given;
                }
            }
            return made[i].defined() ? nb::cast(std::move(made[i])) : nb::none();
        };
        if (single) return object(0);
        nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
        if (!all.is_valid()) throw nb::python_error();
        for (std::size_t i = 0; i < made.size(); ++i)
            PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), object(i).release().ptr());
        return all;
    }

    std::string type_, options_;
    ops::CallOptions how_;
};

}  // namespace

void bind_ops(nb::module_& module) {
    module.def(
        "operator_declarations", &ops::declarations,
        "Return what operators declare as a JSON object by type: `group`, what each `takes`, "
        "and its `options`, with kinds, defaults and meanings.");

    nb::class_<Gradient>(module, "Gradient",
                         "The gradients of a function's outputs, passed to it in place of `out`.")
        .def(nb::init<nb::object>(), nb::arg("output_gradients"),
             nb::sig(
                 "def __init__(self, output_gradients: collections.abc.Sequence[Tensor]) -> None"));

    nb::class_<Call>(module, "Call", "An operator with its options, and how to run it.")
        .def(nb::init<std::string, std::string, bool, std::string_view, std::string,
                      std::vector<std::pair<std::string, std::string>>>(),
             nb::arg("type"), nb::arg("options") = "{}", nb::arg("training") = false,
             nb::arg("precision") = "fp32", nb::arg("engine") = "",
             nb::arg("engines") = nb::tuple())
        .def_prop_ro("type", &Call::type, "The operator's type, as in network JSON.")
        .def_prop_ro("options", &Call::options, "Its options as JSON text.")
        .def(
            "one",
            [](const Call& call, nb::handle inputs, nb::handle params, nb::handle out,
               nb::handle seed,
               nb::handle step) { return call.run(inputs, params, out, seed, step, true); },
            nb::arg("inputs"), nb::arg("params") = nb::tuple(), nb::arg("out") = nb::none(),
            nb::arg("seed") = nb::none(), nb::arg("step") = nb::none(),
            nb::sig("def one(self, inputs: collections.abc.Sequence[Tensor], params: "
                    "collections.abc.Sequence[Tensor] = (), "
                    "out: Tensor | None = None, seed: int | None = None, step: int | None = None) "
                    "-> Tensor"),
            "Return the first result. If `out` is a Gradient, return the tuple of gradients.")
        .def(
            "all",
            [](const Call& call, nb::handle inputs, nb::handle params, nb::handle out,
               nb::handle seed,
               nb::handle step) { return call.run(inputs, params, out, seed, step, false); },
            nb::arg("inputs"), nb::arg("params") = nb::tuple(), nb::arg("out") = nb::none(),
            nb::arg("seed") = nb::none(), nb::arg("step") = nb::none(),
            nb::sig("def all(self, inputs: collections.abc.Sequence[Tensor], params: "
                    "collections.abc.Sequence[Tensor] = (), "
                    "out: Tensor | collections.abc.Sequence[Tensor | None] | None = None, seed: "
                    "int | None = None, "
                    "step: int | None = None) -> tuple[Tensor, ...]"),
            "Return all results. If `out` is a Gradient, return the tuple of gradients.")
        .def("backward", &Call::backward, nb::arg("inputs"), nb::arg("params"),
             nb::arg("output_gradients"), nb::arg("out") = nb::none(), nb::arg("seed") = nb::none(),
             nb::arg("step") = nb::none(),
             nb::sig("def backward(self, inputs: collections.abc.Sequence[Tensor], params: "
                     "collections.abc.Sequence[Tensor], "
                     "output_gradients: collections.abc.Sequence[Tensor], "
                     "out: collections.abc.Sequence[Tensor | None] | None = None, seed: int | None "
                     "= None, "
                     "step: int | None = None) -> tuple[Tensor | None, ...]"),
             "Return the gradients of inputs and parameters, with None for those that have none.");
}

}  // namespace dlprim::python
