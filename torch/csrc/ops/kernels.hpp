// SPDX-License-Identifier: MIT
// Registration of kernels written by hand. Each runs in an OperatorScope, so that an error of the
// library names PyTorch's operator.
//
//   DLPRIM_TORCH_KERNELS(m) { m.impl("_softmax.out", softmax_out); }
#pragma once

#include "device/errors.hpp"
#include "fallback/fallback.hpp"
#include "memory/view.hpp"

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
    Takes takes = nullptr;  ///< none: the device computes every call
    Result (*otherwise)(const char* name, Values...) = nullptr;

    Result operator()(Values... values) const {
        const OperatorScope scope(name);
        if (checked) {
            Operands operands(name, allowed, repeats);
            (operands.add(values), ...);
            operands.check_memory();
            if (takes != nullptr && !operands.are_served(takes))
                return otherwise(name, std::forward<Values>(values)...);
        }
        return function(std::forward<Values>(values)...);
    }
};

/// Registers kernels of some calls. The CPU computes the others (fallback.hpp).
class KernelsOfSome {
  public:
    KernelsOfSome(torch::Library& library, Takes takes) : library_(library), takes_(takes) {}

    template <typename Function>
    void impl(const char* name, Function&& function, Overlap allowed = Overlap::same) const {
        add(name, +function, allowed);
    }

  private:
    template <typename Result, typename... Values>
    void add(const char* name, Result (*function)(Values...), Overlap allowed) const {
        library_.impl(
            name, NamedKernel<Result, Values...>{name, function, allowed, Repeats::refused, true,
                                                 takes_, named_on_cpu<Result, Values...>});
    }

    torch::Library& library_;
    Takes takes_;
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
    /// For kernels that compute only calls of whose first tensor `takes` is true, and whose other
    /// tensors the library has types and ranks for.
    KernelsOfSome where(Takes takes) const { return {library_, takes}; }
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
