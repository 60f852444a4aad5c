// SPDX-License-Identifier: MIT
// dlprim::Error becomes the exception of dlprim.errors that its kind asks for.
#include "bind.hpp"

#include <string_view>

namespace dlprim::python {
namespace {

/// The name of an error's class in dlprim.errors.
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
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        // Classes are looked up when they are needed: errors are rare, and nothing outlives Python.
        nb::object type = nb::module_::import_("dlprim.errors").attr(class_of(error));
        PyErr_SetString(type.ptr(), error.what());
    }
}

}  // namespace

void bind_errors(nb::module_&) {
    nb::register_exception_translator(translate, nullptr);
}

}  // namespace dlprim::python
