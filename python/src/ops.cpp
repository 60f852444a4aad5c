// SPDX-License-Identifier: MIT
#include "bind.hpp"

namespace dlprim::python {

void bind_ops(nb::module_&) {}

}  // namespace dlprim::python
