// SPDX-License-Identifier: MIT
// dlprim._core: the native part of the package dlprim.
#include "bind.hpp"

namespace dlprim::python {
namespace {

/// Objects that daemon threads hold at Python's end are never released. nanobind would print that
/// they leaked.
void expect_leaks_of_threads() {
    const nb::object count = nb::module_::import_("threading").attr("active_count")();
    if (nb::cast<int>(count) > 1) nb::set_leak_warnings(false);
}

}  // namespace
}  // namespace dlprim::python

NB_MODULE(_core, module) {
    using namespace dlprim::python;
    module.attr("version") = DLPRIM_VERSION;
    bind_errors(module);
    bind_dtypes(module);
    bind_context(module);
    bind_log(module);
    bind_compile_wait(module);
    bind_settings(module);
    bind_tensor(module);
    bind_ops(module);
    bind_function(module);
    bind_net(module);
    bind_onnx(module);
    bind_solver(module);
    bind_placed(module);
    bind_language(module);
    bind_embedding(module);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(expect_leaks_of_threads));
}
