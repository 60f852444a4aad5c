// SPDX-License-Identifier: MIT
// What bind_net() and bind_solver() are made of.
#pragma once

#include "bind.hpp"

namespace dlprim::python {

void bind_describe(nb::module_& module);
void bind_schedule(nb::module_& module);
void bind_train(nb::module_& module);

}  // namespace dlprim::python
