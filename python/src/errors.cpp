// SPDX-License-Identifier: MIT
// Converts dlprim::Error to the exception of dlprim.errors for its kind.
#include "bind.hpp"

#include <cstring>
#include <new>
#include <string>
#include <string_view>

namespace dlprim::python {
namespace {

/// The name of the class in dlprim.errors for an error.
const char* class_of(const Error& error) {
    switch (error.kind()) {
        case ErrorKind::invalid_argument:
            return "InvalidArgumentError";
        case ErrorKind::not_found:
            return std::string_view(error.what()).starts_with("there is no file ")
                       ? "MissingFileError"
                       : "NotFoundError";
        case ErrorKind::out_of_memory:
            return "OutOfMemoryError";
        case ErrorKind::device:
            return "DeviceError";
        case ErrorKind::build:
            return "BuildError";
        case ErrorKind::io:
            return "FileError";
        case ErrorKind::format:
            return "FormatError";
        case ErrorKind::unsupported:
            return "UnsupportedError";
        case ErrorKind::numeric:
            return "NumericError";
    }
    return "DlprimError";
}

void translate(const std::exception_ptr& thrown, void*) {
    // Classes are looked up when they are needed, because errors are rare and nothing may outlive
    // Python.
    const auto raise = [](const char* name, const char* message) {
        const nb::object type = nb::module_::import_("dlprim.errors").attr(name);
        // Paths need not be UTF-8. Their bytes are decoded as by os.fsdecode().
        const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
            message, static_cast<Py_ssize_t>(std::strlen(message)), "surrogateescape"));
        if (text.is_valid()) PyErr_SetObject(type.ptr(), text.ptr());
    };
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        raise(class_of(error), error.what());
    } catch (const std::bad_alloc&) {
        raise("OutOfMemoryError", "the host's memory does not suffice");
    }
}

}  // namespace

std::string kind_of(nb::handle object) {
    const auto text = [&](const char* name) {
        return std::string(nb::borrow<nb::str>(object.type().attr(name)).c_str());
    };
    if (object.is_none()) return "None";
    const std::string module = text("__module__"), name = text("__qualname__");
    const std::string whole = module == "builtins" ? name : module + "." + name;
    const bool vowel = std::string_view("aeio").find(whole[0]) != std::string_view::npos;
    return (vowel ? "an " : "a ") + whole;
}

void wrong_type(const char* what, const char* wanted, nb::handle got) {
    throw nb::type_error((std::string(what) + " is " + wanted + ", not " + kind_of(got)).c_str());
}

const Context& to_context(nb::handle context) {
    const Context* found = nullptr;
    if (!nb::try_cast(context, found) || found == nullptr)
        wrong_type("a context", "a dlprim.Context", context);
    return *found;
}

bool is_int(nb::handle object) {
    if (PyLong_Check(object.ptr())) return true;
    return PyIndex_Check(object.ptr()) && !nb::hasattr(object, "__len__");
}

void bind_errors(nb::module_&) {
    nb::register_exception_translator(translate, nullptr);
}

}  // namespace dlprim::python
