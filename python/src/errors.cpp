// SPDX-License-Identifier: MIT
#include "bind.hpp"

namespace dlprim::python {

void bind_errors(nb::module_&) {}

}  // namespace dlprim::python
