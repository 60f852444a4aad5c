// SPDX-License-Identifier: MIT
// Tensor: memory on a device, from and to numpy.
#include "bind.hpp"

#include <nanobind/stl/string.h>

namespace dlprim::python {

void bind_tensor(nb::module_& module) {
    nb::class_<Tensor>(module, "Tensor")
        .def(
            "__init__",
            [](Tensor* self, const Context& context, nb::handle values, nb::handle dtype) {
                std::optional<DType> wanted;
                if (!dtype.is_none()) wanted = to_dtype(dtype);
                new (self) Tensor(to_tensor(context, values, wanted));
            },
            nb::arg("context"), nb::arg("values"), nb::arg("dtype") = nb::none())
        .def_prop_ro("shape", [](const Tensor& self) { return to_tuple(self.shape()); })
        .def_prop_ro("dtype", [](const Tensor& self) { return dtype_name(self.dtype()); })
        .def_prop_ro("context", &Tensor::context)
        .def("numpy", &to_numpy)
        .def("copy_from", &copy_from, nb::arg("values"));
}

}  // namespace dlprim::python
