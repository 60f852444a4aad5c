// SPDX-License-Identifier: MIT
// dlprim._core: what the package dlprim is made of.
#include "bind.hpp"

NB_MODULE(_core, module) {
    using namespace dlprim::python;
    module.attr("version") = DLPRIM_VERSION;
    bind_errors(module);
    bind_context(module);
    bind_log(module);
    bind_tensor(module);
    bind_ops(module);
    bind_net(module);
    bind_solver(module);
}
