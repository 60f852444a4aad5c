// SPDX-License-Identifier: MIT
// The checks that PyTorch's generated code and its TensorIterator make for devices of their own:
// operands are on one device, and what is written shares no memory with itself nor in part with
// what is read. Nothing waits.
#pragma once

#include "common.hpp"

#include <string_view>

namespace dlprim_torch {

/// Where a tensor that is written may lie beside one that is read.
enum class Overlap : std::uint8_t {
    same,  ///< both may be the same elements, as in x.add_(x), but not some of them
    none,  ///< they share no element
    any,   ///< PyTorch does not ask, and the library computes what a new tensor would hold
};

/// Whether the device computes a call whose first tensor this is.
using Takes = bool (*)(const at::Tensor& first);

/// What happens where several elements of a tensor that is written are the same memory.
enum class Repeats : std::uint8_t {
    refused,
    left,  ///< those of expanded tensors, to the kernel (fallback.hpp, on_expanded)
};

/// Throws PyTorch's "unsupported operation" where several elements of `written` are the same
/// memory.
void check_written(const at::Tensor& written);
/// Throws the same sentence where two operands overlap as `allowed` does not.
void check_overlap(const at::Tensor& written, const at::Tensor& read, Overlap allowed);

/// The operator of an overload such as "put_" or "take.out".
c10::OperatorHandle operator_of(std::string_view overload);

/// Whether a tensor is an operand on any device: an undefined one, and a number in a tensor of the
/// CPU without dimensions, which the kernel takes or refuses.
bool is_anywhere(const at::Tensor& tensor);
/// Throws "Expected all tensors to be on the same device" for a boxed call. Lists of indices may be
/// on the CPU.
void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// The operands of one call, in the order of the schema's arguments.
class Operands {
  public:
    /// `name`: the overload, as "put_" or "take.out".
    Operands(const char* name, Overlap allowed, Repeats repeats = Repeats::refused)
        : name_(name), allowed_(allowed), repeats_(repeats) {}

    void add(at::Tensor& written) {
        see(written);
        written_.push_back(&written);
    }
    void add(const at::Tensor& read) {
        see(read);
        read_.push_back(&read);
    }
    void add(const std::optional<at::Tensor>& read) {
        if (read) return add(*read);
        ++arguments_;
    }
    void add(const at::ITensorListRef& read) {
        for (const at::Tensor& tensor : read) see(tensor, 0);
        ++arguments_;
    }
    void add(const c10::List<std::optional<at::Tensor>>& indices);
    template <typename Other>
    void add(const Other&) {
        ++arguments_;
    }

    void check_memory() const;
    /// Whether the device computes the call: `takes` is true of the first tensor, and the library
    /// has the types and ranks of all others.
    bool are_served(Takes takes) const;

  private:
    void see(const at::Tensor& tensor, std::size_t arguments = 1) {
        if (first_ == nullptr) first_ = &tensor;
        arguments_ += arguments;
        if (device_ == tensor_device(tensor) || is_anywhere(tensor)) return;
        if (device_) refuse_device(tensor, arguments_ - arguments);
        device_ = tensor.device();
    }
    static std::optional<c10::Device> tensor_device(const at::Tensor& tensor) {
        return tensor.defined() ? std::optional(tensor.device()) : std::nullopt;
    }
    [[noreturn]] void refuse_device(const at::Tensor& tensor, std::size_t argument) const;

    const char* name_;
    Overlap allowed_;
    Repeats repeats_;
    std::size_t arguments_ = 0;
    const at::Tensor* first_ = nullptr;
    std::optional<c10::Device> device_;
    c10::SmallVector<const at::Tensor*, 4> written_;
    c10::SmallVector<const at::Tensor*, 8> read_;
    std::vector<at::Tensor> indices_;
};

}  // namespace dlprim_torch
