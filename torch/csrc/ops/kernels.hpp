// SPDX-License-Identifier: MIT
// Registration of kernels written by hand. Each runs in an OperatorScope, so that an error of the
// library names PyTorch's operator.
//
//   DLPRIM_TORCH_KERNELS(m) { m.impl("_softmax.out", softmax_out); }
#pragma once

#include "device/errors.hpp"
#include "ops/checks.hpp"

#include <utility>

namespace dlprim_torch {

/// A function that runs in the scope of its operator, behind the checks of checks.hpp: its
/// signature says what is written (at::Tensor&) and what is read (const at::Tensor&). One type
/// serves all functions of a signature.
template <typename Result, typename... Values>
struct NamedKernel {
    const char* name;
    Result (*function)(Values...);
    Overlap allowed;
    Repeats repeats;
    bool checked;

    Result operator()(Values... values) const {
        const OperatorScope scope(name);
        if (checked) {
            Operands operands(name, allowed, repeats);
            (operands.add(values), ...);
            operands.check_memory();
        }
        return function(std::forward<Values>(values)...);
    }
};

/// What is registered for operators of aten on the device.
class Kernels {
  public:
    explicit Kernels(torch::Library& library) : library_(library) {}

    /// `name` is a literal: the overload's name without the namespace.
    template <typename Function>
    void impl(const char* name, Function&& function, Overlap allowed = Overlap::same,
              Repeats repeats = Repeats::refused) {
        add(name, +function, allowed, repeats, true);
    }
    /// For copies between devices, what moves a tensor to other memory, and what gives all of a
    /// tensor's elements one value.
    template <typename Function>
    void impl_unchecked(const char* name, Function&& function) {
        add(name, +function, Overlap::any, Repeats::left, false);
    }

  private:
    template <typename Result, typename... Values>
    void add(const char* name, Result (*function)(Values...), Overlap allowed, Repeats repeats,
             bool checked) {
        library_.impl(name,
                      NamedKernel<Result, Values...>{name, function, allowed, repeats, checked});
    }

    torch::Library& library_;
};

}  // namespace dlprim_torch

/// Registers the kernels of a file: the body calls m.impl(). Once a file. Functions have numbers,
/// because several files may be compiled as one.
#define DLPRIM_TORCH_KERNELS(m) \
    DLPRIM_TORCH_NUMBERED_KERNELS(C10_CONCATENATE(register_kernels, __COUNTER__), m)
#define DLPRIM_TORCH_NUMBERED_KERNELS(register_them, m) \
    void register_them(::dlprim_torch::Kernels& m);     \
    TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {    \
        ::dlprim_torch::Kernels kernels(library);       \
        register_them(kernels);                         \
    }                                                   \
    void register_them(::dlprim_torch::Kernels& m)
