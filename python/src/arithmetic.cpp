// SPDX-License-Identifier: MIT
// Arithmetic operators on tensors. Each is one pointwise kernel, or a matrix product.
//
// The other operand may be a tensor, a number or a numpy array. Shapes broadcast like numpy's. A
// number gets the tensor's element type if that type can hold it, so that 2 * t has the type of t.
#include "tensor.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

namespace dlprim::python {
namespace {

/// An operator: its program for two tensors, and for a number on the right and on the left, and the
/// type of its results if that differs from the operands'.
struct Binary {
    const char* symbol;
    const char* tensors;  ///< "x0 + x1"
    const char* right;    ///< "x0 + p0"
    const char* left;     ///< "p0 + x0"
    bool truth = false;   ///< the result is of bool
};

constexpr Binary add{"+", "y0 = x0 + x1", "y0 = x0 + p0", "y0 = p0 + x0"};
constexpr Binary subtract{"-", "y0 = x0 - x1", "y0 = x0 - p0", "y0 = p0 - x0"};
constexpr Binary multiply{"*", "y0 = x0 * x1", "y0 = x0 * p0", "y0 = p0 * x0"};
constexpr Binary divide{"/", "y0 = x0 / x1", "y0 = x0 / p0", "y0 = p0 / x0"};
constexpr Binary power{"**", "y0 = pow(x0, x1)", "y0 = pow(x0, p0)", "y0 = pow(p0, x0)"};
constexpr Binary less{"<", "y0 = x0 < x1", "y0 = x0 < p0", "", true};
constexpr Binary less_equal{"<=", "y0 = x0 <= x1", "y0 = x0 <= p0", "", true};
constexpr Binary greater{">", "y0 = x0 > x1", "y0 = x0 > p0", "", true};
constexpr Binary greater_equal{">=", "y0 = x0 >= x1", "y0 = x0 >= p0", "", true};
constexpr Binary equal{"==", "y0 = x0 == x1", "y0 = x0 == p0", "", true};
constexpr Binary not_equal{"!=", "y0 = x0 != x1", "y0 = x0 != p0", "", true};
constexpr Binary both{"&", "y0 = x0 && x1", "", "", true};
constexpr Binary either{"|", "y0 = x0 || x1", "", "", true};
constexpr Binary one_of{"^", "y0 = x0 != x1", "", "", true};

nb::object not_implemented() {
    return nb::borrow(Py_NotImplemented);
}

/// Runs a pointwise program whose results have the operands' type, or bool.
Tensor run(const char* program, const std::vector<Tensor>& inputs,
           const std::vector<double>& scalars, bool truth) {
    if (!truth) return ops::pointwise(program, inputs, scalars).at(0);
    std::string options = std::string(R"({"code": ")") + program + R"(", "dtypes": ["bool"])";
    char number[32];
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        std::snprintf(number, sizeof(number), "%.17g", scalars[i]);
        options += std::string(i == 0 ? R"(, "scalars": [)" : ", ") + number;
    }
    options += scalars.empty() ? "}" : "]}";
    return ops::call("Pointwise", options, inputs).at(0);
}

Tensor converted(const Tensor& tensor, DType dtype) {
    const std::string options = std::string(R"({"dtype": ")") + dtype_name(dtype) + R"("})";
    return ops::call("Cast", options, {tensor}).at(0);
}

/// Throws if the operands belong to two contexts.
void check_contexts(const char* symbol, const Tensor& a, const Tensor& b) {
    if (a.context() == b.context()) return;
    const auto& device = [](const Tensor& tensor) { return tensor.context().info().str(); };
    throw Error(ErrorKind::invalid_argument,
                std::string("the operands of ") + symbol + " belong to two contexts, of " +
                    device(a) + " and of " + device(b) +
                    "; dlprim.Tensor(context, tensor.numpy()) copies one to the other's");
}

/// &, | and ^, which are for bool only.
bool is_logical(const Binary& op) {
    return &op == &both || &op == &either || &op == &one_of;
}

void check_truth(const Binary& op, const Tensor& tensor) {
    if (is_logical(op) && tensor.dtype() != DType::boolean)
        throw Error(ErrorKind::invalid_argument, std::string(op.symbol) +
                                                     " takes tensors of bool, as comparisons give, "
                                                     "not of " +
                                                     dtype_name(tensor.dtype()));
    if (&op == &subtract && tensor.dtype() == DType::boolean)
        throw Error(ErrorKind::invalid_argument,
                    "- takes numbers, not bool; tensor.astype(\"int32\") makes numbers of truth");
}

nb::object combine(const Binary& op, const Tensor& a, const Tensor& b) {
    check_contexts(op.symbol, a, b);
    check_truth(op, a);
    check_truth(op, b);
    Tensor result;
    {
        const ContextLock lock(a.context());
        result = run(op.tensors, {a, b}, {}, op.truth);
    }
    return nb::cast(std::move(result));
}

// Numbers.

/// A number as an operand. It is decoded while the interpreter's lock is held.
struct Number {
    bool whole = false;  ///< an int, or a bool
    bool truth = false;
    bool fits = false;         ///< whether it fits into `integer`
    std::int64_t integer = 0;  ///< the value of an int
    double value = 0;
};

Number to_number(nb::handle object) {
    Number number;
    number.truth = PyBool_Check(object.ptr());
    number.whole = PyIndex_Check(object.ptr());
    const nb::object plain =
        nb::steal(number.whole ? PyNumber_Index(object.ptr()) : PyNumber_Float(object.ptr()));
    if (!plain.is_valid()) throw nb::python_error();
    number.value = PyFloat_AsDouble(plain.ptr());
    if (number.value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (number.whole) {
        int overflow = 0;
        number.integer = PyLong_AsLongLongAndOverflow(plain.ptr(), &overflow);
        number.fits = overflow == 0;
    }
    return number;
}

/// Whether an integer type can hold the int.
bool holds(DType dtype, const Number& number) {
    if (!number.fits || dtype == DType::i64) return number.fits;
    if (dtype == DType::boolean) return number.integer == 0 || number.integer == 1;
    const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32;
    const int bits = static_cast<int>(size_of(dtype)) * 8 - (is_signed ? 1 : 0);
    const std::int64_t limit = std::int64_t{1} << bits;
    return number.integer < limit && number.integer >= (is_signed ? -limit : 0);
}

[[noreturn]] void does_not_hold(DType dtype, const Number& number) {
    const std::string value =
        number.fits ? std::to_string(number.integer) : "an int of more than 64 bits";
    throw Error(ErrorKind::invalid_argument,
                std::string("a tensor of ") + dtype_name(dtype) + " does not hold " + value);
}

/// A tensor of one element.
Tensor single(const Context& context, const Number& number, DType dtype) {
    Tensor tensor(context, Shape{}, dtype);
    if (dtype == DType::i64 && number.fits)
        tensor.copy_from_host(&number.integer, sizeof(number.integer));
    else
        tensor.fill(number.value);
    return tensor;
}

/// The type of an int operand whose other operand is a tensor of integers.
DType type_beside(const Tensor& tensor, const Number& number, bool comparison) {
    const bool truth = tensor.dtype() == DType::boolean && !number.truth;
    const DType dtype = truth ? DType::i64 : tensor.dtype();
    if (holds(dtype, number)) return dtype;
    if (comparison && number.fits) return DType::i64;
    does_not_hold(dtype, number);
}

nb::object combine_with_number(const Binary& op, const Tensor& tensor, const Number& number,
                               bool reversed) {
    check_truth(op, tensor);
    if (is_logical(op) && !number.truth)
        throw Error(ErrorKind::invalid_argument,
                    std::string(op.symbol) + " takes tensors of bool, True and False, no number");
    const bool integers = !is_float(tensor.dtype()) && number.whole;
    const char* with_scalar = reversed ? op.left : op.right;
    // Scalars are floats, and JSON text cannot contain infinity.
    const bool scalar =
        !integers && *with_scalar != 0 && (std::isfinite(number.value) || !op.truth);
    DType dtype = is_float(tensor.dtype()) ? tensor.dtype() : DType::f32;
    if (integers) dtype = type_beside(tensor, number, op.truth);
    Tensor result;
    {
        const ContextLock lock(tensor.context());
        const Tensor& x = tensor;
        if (scalar) {
            result = run(with_scalar, {x}, {number.value}, op.truth);
        } else {
            std::vector<Tensor> operands{x, single(tensor.context(), number, dtype)};
            if (reversed) std::swap(operands[0], operands[1]);
            result = run(op.tensors, operands, {}, op.truth);
        }
    }
    return nb::cast(std::move(result));
}

/// `reversed`: the tensor is the right operand.
template <const Binary& op, bool reversed = false>
nb::object operate(const Tensor& tensor, nb::handle other) {
    const Tensor* second = nullptr;
    if (nb::try_cast(other, second) && second != nullptr)
        return reversed ? combine(op, *second, tensor) : combine(op, tensor, *second);
    if (is_number(other)) return combine_with_number(op, tensor, to_number(other), reversed);
    if (!nb::hasattr(other, "__array__")) return not_implemented();
    const Tensor made = to_tensor(tensor.context(), other);
    return reversed ? combine(op, made, tensor) : combine(op, tensor, made);
}

/// Small whole exponents become products, which are exact for integers and match numpy's squares.
nb::object raise(const Tensor& tensor, nb::handle exponent) {
    if (!is_number(exponent) || !PyIndex_Check(exponent.ptr()))
        return operate<power>(tensor, exponent);
    const Number number = to_number(exponent);
    const int most = is_float(tensor.dtype()) ? 2 : 63;
    const int least = is_float(tensor.dtype()) ? 2 : 0;
    if (tensor.dtype() == DType::boolean || number.value < least || number.value > most)
        return operate<power>(tensor, exponent);
    std::string program = number.value == 0 ? "y0 = x0 * 0 + 1" : "y0 = x0";
    for (int i = 1; i < static_cast<int>(number.value); ++i) program += " * x0";
    Tensor result;
    {
        const ContextLock lock(tensor.context());
        result = run(program.c_str(), {tensor}, {}, false);
    }
    return nb::cast(std::move(result));
}

Tensor unary(const Tensor& tensor, const char* program, bool truth) {
    const ContextLock lock(tensor.context());
    return run(program, {tensor}, {}, truth);
}

Tensor negated(const Tensor& tensor) {
    check_truth(subtract, tensor);
    return unary(tensor, "y0 = -x0", false);
}

Tensor inverted(const Tensor& tensor) {
    if (tensor.dtype() != DType::boolean)
        throw Error(ErrorKind::invalid_argument,
                    std::string("~ takes tensors of bool, as comparisons give, not of ") +
                        dtype_name(tensor.dtype()));
    return unary(tensor, "y0 = !x0", true);
}

// Matrix products.

Tensor product(const Tensor& a, const Tensor& b) {
    check_contexts("@", a, b);
    const ContextLock lock(a.context());
    return ops::call("MatMul", "{}", {a, b}).at(0);
}

template <bool reversed>
nb::object multiply_matrices(const Tensor& tensor, nb::handle other) {
    const Tensor* second = nullptr;
    Tensor made;
    if (!nb::try_cast(other, second) || second == nullptr) {
        if (is_number(other) || !nb::hasattr(other, "__array__")) return not_implemented();
        made = to_tensor(tensor.context(), other);
        second = &made;
    }
    return nb::cast(reversed ? product(*second, tensor) : product(tensor, *second));
}

using Operator = nb::object (*)(const Tensor&, nb::handle);

void bind(TensorClass& type, const char* name, Operator function, const char* operand,
          const char* result = "Tensor") {
    const std::string signature =
        std::string("def ") + name + "(self, other: " + operand + ", /) -> " + result;
    type.def(name, function, nb::arg("other").none(), nb::sig(signature.c_str()));
}

constexpr const char* array_or_tensor = "Tensor | numpy.typing.NDArray[typing.Any]";
constexpr const char* operand = "Tensor | float | numpy.typing.NDArray[typing.Any]";

}  // namespace

bool is_number(nb::handle object) {
    if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return true;
    if (!nb::hasattr(object, "__array__")) return false;
    const nb::module_ numpy = nb::module_::import_("numpy");
    return nb::isinstance(object, numpy.attr("number")) &&
           !nb::isinstance(object, numpy.attr("complexfloating"));
}

void fill(Tensor& tensor, nb::handle object) {
    if (!is_number(object)) wrong_type("what fills a tensor", "a number", object);
    const Number number = to_number(object);
    if (number.whole && !is_float(tensor.dtype()) && !holds(tensor.dtype(), number))
        does_not_hold(tensor.dtype(), number);
    const ContextLock lock(tensor.context());
    constexpr double exact = 9007199254740992.0;  // 2^53
    if (tensor.dtype() == DType::i64 && number.whole && std::abs(number.value) > exact) {
        const auto count = static_cast<std::size_t>(tensor.shape().numel());
        const std::vector<std::int64_t> values(count, number.integer);
        tensor.copy_from_host(values.data(), tensor.bytes());
    } else {
        tensor.fill(number.value);
    }
}

Tensor copied(const Tensor& tensor) {
    const ContextLock lock(tensor.context());
    if (!tensor.contiguous()) return tensor.to_contiguous();
    Tensor copy(tensor.context(), tensor.shape(), tensor.dtype());
    ops::copy(tensor, copy);
    return copy;
}

bool copy_on_device(Tensor& to, const Tensor& from) {
    if (!(to.context() == from.context()) || to.shape() != from.shape()) return false;
    const ContextLock lock(to.context());
    ops::copy(from, to);
    return true;
}

Tensor cast_to(const Tensor& tensor, DType dtype) {
    if (dtype == tensor.dtype()) return copied(tensor);
    const ContextLock lock(tensor.context());
    return converted(tensor, dtype);
}

void bind_arithmetic(TensorClass& type) {
    bind(type, "__add__", &operate<add>, operand);
    bind(type, "__radd__", &operate<add, true>, operand);
    bind(type, "__sub__", &operate<subtract>, operand);
    bind(type, "__rsub__", &operate<subtract, true>, operand);
    bind(type, "__mul__", &operate<multiply>, operand);
    bind(type, "__rmul__", &operate<multiply, true>, operand);
    bind(type, "__truediv__", &operate<divide>, operand);
    bind(type, "__rtruediv__", &operate<divide, true>, operand);
    bind(type, "__pow__", &raise, operand);
    bind(type, "__rpow__", &operate<power, true>, operand);
    bind(type, "__matmul__", &multiply_matrices<false>, array_or_tensor);
    bind(type, "__rmatmul__", &multiply_matrices<true>, array_or_tensor);
    // numpy's arrays compare with anything, so mypy considers pairs of narrower types unsafe. For
    // equality it expects a bool, as object's own method returns.
    bind(type, "__lt__", &operate<less>, "typing.Any");
    bind(type, "__le__", &operate<less_equal>, "typing.Any");
    bind(type, "__gt__", &operate<greater>, "typing.Any");
    bind(type, "__ge__", &operate<greater_equal>, "typing.Any");
    bind(type, "__eq__", &operate<equal>, "object", "typing.Any");
    bind(type, "__ne__", &operate<not_equal>, "object", "typing.Any");
    bind(type, "__and__", &operate<both>, operand);
    bind(type, "__rand__", &operate<both, true>, operand);
    bind(type, "__or__", &operate<either>, operand);
    bind(type, "__ror__", &operate<either, true>, operand);
    bind(type, "__xor__", &operate<one_of>, operand);
    bind(type, "__rxor__", &operate<one_of, true>, operand);
    type.def("__neg__", &negated)
        .def("__pos__", &copied)
        .def("__abs__", [](const Tensor& self) { return unary(self, "y0 = abs(x0)", false); })
        .def("__invert__", &inverted)
        // Comparisons return tensors. As a key, a tensor is identified by its object.
        .def("__hash__", [](nb::handle self) { return std::hash<const void*>()(self.ptr()); });
}

}  // namespace dlprim::python
