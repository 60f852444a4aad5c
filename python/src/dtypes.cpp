// SPDX-License-Identifier: MIT
// Element types: their names in Python ("float32"), numpy's dtypes, and DLPack's types.
#include "bind.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace dlprim::python {
namespace {

constexpr std::array<std::pair<DType, const char*>, 23> dtype_names{{
    {DType::f32, "float32"},
    {DType::f16, "float16"},
    {DType::bf16, "bfloat16"},
    {DType::f64, "float64"},
    {DType::i8, "int8"},
    {DType::u8, "uint8"},
    {DType::i16, "int16"},
    {DType::u16, "uint16"},
    {DType::i32, "int32"},
    {DType::u32, "uint32"},
    {DType::i64, "int64"},
    {DType::boolean, "bool"},
    {DType::u64, "uint64"},
    // As the package ml_dtypes calls them.
    {DType::f8e4m3fn, "float8_e4m3fn"},
    {DType::f8e4m3fnuz, "float8_e4m3fnuz"},
    {DType::f8e5m2, "float8_e5m2"},
    {DType::f8e5m2fnuz, "float8_e5m2fnuz"},
    {DType::f8e8m0, "float8_e8m0fnu"},
    {DType::f4e2m1, "float4_e2m1fn"},
    {DType::i4, "int4"},
    {DType::u4, "uint4"},
    {DType::i2, "int2"},
    {DType::u2, "uint2"},
}};

bool find_dtype(std::string_view name, DType& dtype) {
    for (const auto& [value, known] : dtype_names)
        if (name == known) {
            dtype = value;
            return true;
        }
    return false;
}

std::string all_names() {
    std::string text;
    for (const auto& [value, name] : dtype_names)
        text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

[[noreturn]] void refuse(const std::string& name) {
    const char* instead = name.starts_with("complex") ? "; its .real and .imag have one"
                          : name == "object"          ? "; an array of numbers has"
                          : name.starts_with("float128") || name.starts_with("longdouble")
                              ? "; astype('float64') converts"
                              : "";
    throw nb::type_error(
        ("tensors have no element type '" + name + "', but " + all_names() + instead).c_str());
}

}  // namespace

const char* dtype_name(DType dtype) {
    for (const auto& [value, name] : dtype_names)
        if (value == dtype) return name;
    return "unknown";
}

DType to_dtype(nb::handle dtype) {
    DType found{};
    if (PyUnicode_Check(dtype.ptr())) {
        std::string name;
        if (!nb::try_cast(dtype, name))  // characters that UTF-8 cannot encode
            refuse(nb::cast<std::string>(nb::object(nb::steal(PyObject_ASCII(dtype.ptr())))));
        if (find_dtype(name, found)) return found;
        try {
            return parse_dtype(name);  // as in network JSON: "float", "half", "int"
        } catch (const Error&) {
            // numpy may know it, such as "f4".
        }
    }
    if (dtype.is_none()) refuse("None");  // numpy takes None as float64
    nb::object numpy = nb::module_::import_("numpy");
    std::string name;
    try {
        // This handles 'f4', numpy.float32, numpy.dtype('>f4'), float, and ml_dtypes.bfloat16.
        name = nb::cast<std::string>(nb::str(numpy.attr("dtype")(dtype).attr("name")));
    } catch (nb::python_error&) {
        name = nb::cast<std::string>(nb::str(dtype));
    }
    if (find_dtype(name, found)) return found;
    refuse(name);
}

void bind_dtypes(nb::module_& module) {
    module.def(
        "dtype_name", [](nb::handle dtype) { return dtype_name(to_dtype(dtype)); },
        nb::arg("dtype").none(), nb::sig("def dtype_name(dtype: typing.Any) -> str"),
        "Return the name of an element type, such as \"float32\". The argument is a name, which "
        "may be one of network JSON, or anything that numpy.dtype() accepts. Raises TypeError on "
        "types that tensors cannot have.");
}

}  // namespace dlprim::python
