// SPDX-License-Identifier: MIT
// Operators over lists of tensors (torch._foreach_*), of which optimizers and the clipping of
// gradients are made: a launch or two for a list. Lists that do not fit (many.hpp) run as PyTorch's
// loop over the tensors.
#include "ops/call.hpp"
#include "ops/literal.hpp"
#include "ops/many.hpp"

#include <ATen/NativeFunctions.h>

#include <algorithm>
#include <type_traits>

namespace dlprim_torch {
namespace {

namespace slow = at::native;
using Tensors = std::vector<at::Tensor>;

/// The arguments of a call: lists are x0, x1, ..., and a number is p0.
class Call {
  public:
    void add(at::TensorList list) {
        fits_ = fits_ && (lists_.empty() || list.size() == lists_[0].size());
        lists_.push_back(list);
    }
    /// Of the CPU it may be a number; else it serves all positions.
    void add(const at::Tensor& tensor) {
        if (tensor.numel() == 1 && tensor.device().is_cpu() && !tensor.is_complex())
            numbers_.push_back(tensor.item<double>());
        else
            lists_.emplace_back(tensor);
    }
    void add(const at::Scalar& number) {
        if (number.isComplex())
            fits_ = false;
        else
            numbers_.push_back(number.toDouble());
    }
    /// One number for each position, of which all are the same, as an optimizer's step sizes are.
    void add(at::ArrayRef<at::Scalar> numbers) {
        if (!numbers.empty()) add(numbers[0]);
        fits_ = fits_ && numbers.size() == lists_[0].size() &&
                std::all_of(numbers.begin(), numbers.end(), [&](const at::Scalar& number) {
                    return !number.isComplex() && number.toDouble() == numbers_[0];
                });
    }

    /// Whether one program gives what PyTorch's loop gives: results have the type of the first
    /// list.
    bool joins() const { return fits_ && lists_[0].size() > 1 && fits_many(lists_); }
    /// `by_number` stands for `code` where a tensor was a number.
    void run(const char* code, const char* by_number, at::TensorList outs) const {
        const bool is_number = *by_number != 0 && !numbers_.empty();
        run_many(is_number ? by_number : code, lists_, numbers_, {outs});
    }
    at::TensorList first() const { return lists_[0]; }

  private:
    Lists lists_;
    std::vector<double> numbers_;
    bool fits_ = true;
};

/// `slow` is PyTorch's loop: for new tensors, or for the first list itself.
template <auto slow, Literal code, Literal by_number, typename Result, typename... Values>
Result called_as_one(Values... values) {
    Call call;
    (call.add(values), ...);
    if (!call.joins()) return slow(values...);
    if constexpr (std::is_void_v<Result>) {
        call.run(code.text, by_number.text, call.first());
    } else {
        Tensors results = empty_like_all(call.first());
        call.run(code.text, by_number.text, results);
        return results;
    }
}

template <auto slow, Literal code, Literal by_number, typename Result, typename... Values>
constexpr auto as_one_of(Result (*)(Values...)) {
    return &called_as_one<slow, code, by_number, Result, Values...>;
}

template <auto slow, Literal code, Literal by_number = "">
constexpr auto as_one = as_one_of<slow, code, by_number>(slow);

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_foreach_sqrt", as_one<slow::foreach_tensor_sqrt_slow, "y0 = sqrt(x0)">);
    m.impl("_foreach_sqrt_", as_one<slow::foreach_tensor_sqrt_slow_, "y0 = sqrt(x0)">);
    m.impl("_foreach_neg", as_one<slow::foreach_tensor_neg_slow, "y0 = -x0">);
    m.impl("_foreach_neg_", as_one<slow::foreach_tensor_neg_slow_, "y0 = -x0">);
    m.impl("_foreach_abs", as_one<slow::foreach_tensor_abs_slow, "y0 = abs(x0)">);
    m.impl("_foreach_abs_", as_one<slow::foreach_tensor_abs_slow_, "y0 = abs(x0)">);
    m.impl("_foreach_reciprocal", as_one<slow::foreach_tensor_reciprocal_slow, "y0 = 1 / x0">);
    m.impl("_foreach_reciprocal_", as_one<slow::foreach_tensor_reciprocal_slow_, "y0 = 1 / x0">);
    m.impl("_foreach_add.Scalar",
           as_one<slow::foreach_tensor_add_scalar_kernel_slow, "y0 = x0 + p0">);
    m.impl("_foreach_add_.Scalar",
           as_one<slow::foreach_tensor_add_scalar_kernel_slow_, "y0 = x0 + p0">);
    m.impl("_foreach_add.ScalarList",
           as_one<slow::foreach_tensor_add_scalarlist_kernel_slow, "y0 = x0 + p0">);
    m.impl("_foreach_add_.ScalarList",
           as_one<slow::foreach_tensor_add_scalarlist_kernel_slow_, "y0 = x0 + p0">);
    m.impl("_foreach_add.List",
           as_one<slow::foreach_tensor_add_list_kernel_slow, "y0 = x0 + p0 * x1">);
    m.impl("_foreach_add_.List",
           as_one<slow::foreach_tensor_add_list_kernel_slow_, "y0 = x0 + p0 * x1">);
    m.impl("_foreach_sub.Scalar",
           as_one<slow::foreach_tensor_sub_scalar_kernel_slow, "y0 = x0 - p0">);
    m.impl("_foreach_sub_.Scalar",
           as_one<slow::foreach_tensor_sub_scalar_kernel_slow_, "y0 = x0 - p0">);
    m.impl("_foreach_sub.ScalarList",
           as_one<slow::foreach_tensor_sub_scalarlist_kernel_slow, "y0 = x0 - p0">);
    m.impl("_foreach_sub_.ScalarList",
           as_one<slow::foreach_tensor_sub_scalarlist_kernel_slow_, "y0 = x0 - p0">);
    m.impl("_foreach_sub.List",
           as_one<slow::foreach_tensor_sub_list_kernel_slow, "y0 = x0 - p0 * x1">);
    m.impl("_foreach_sub_.List",
           as_one<slow::foreach_tensor_sub_list_kernel_slow_, "y0 = x0 - p0 * x1">);
    m.impl("_foreach_mul.Scalar",
           as_one<slow::foreach_tensor_mul_scalar_kernel_slow, "y0 = x0 * p0">);
    m.impl("_foreach_mul_.Scalar",
           as_one<slow::foreach_tensor_mul_scalar_kernel_slow_, "y0 = x0 * p0">);
    m.impl("_foreach_mul.ScalarList",
           as_one<slow::foreach_tensor_mul_scalarlist_kernel_slow, "y0 = x0 * p0">);
    m.impl("_foreach_mul_.ScalarList",
           as_one<slow::foreach_tensor_mul_scalarlist_kernel_slow_, "y0 = x0 * p0">);
    m.impl("_foreach_mul.List", as_one<slow::foreach_tensor_mul_list_kernel_slow, "y0 = x0 * x1">);
    m.impl("_foreach_mul_.List",
           as_one<slow::foreach_tensor_mul_list_kernel_slow_, "y0 = x0 * x1">);
    m.impl("_foreach_mul.Tensor",
           as_one<slow::foreach_tensor_mul_tensor_kernel_slow, "y0 = x0 * x1", "y0 = x0 * p0">);
    m.impl("_foreach_mul_.Tensor",
           as_one<slow::foreach_tensor_mul_tensor_kernel_slow_, "y0 = x0 * x1", "y0 = x0 * p0">);
    m.impl("_foreach_div.Scalar",
           as_one<slow::foreach_tensor_div_scalar_kernel_slow, "y0 = x0 / p0">);
    m.impl("_foreach_div_.Scalar",
           as_one<slow::foreach_tensor_div_scalar_kernel_slow_, "y0 = x0 / p0">);
    m.impl("_foreach_div.ScalarList",
           as_one<slow::foreach_tensor_div_scalarlist_kernel_slow, "y0 = x0 / p0">);
    m.impl("_foreach_div_.ScalarList",
           as_one<slow::foreach_tensor_div_scalarlist_kernel_slow_, "y0 = x0 / p0">);
    m.impl("_foreach_div.List", as_one<slow::foreach_tensor_div_list_kernel_slow, "y0 = x0 / x1">);
    m.impl("_foreach_div_.List",
           as_one<slow::foreach_tensor_div_list_kernel_slow_, "y0 = x0 / x1">);
    m.impl("_foreach_div.Tensor",
           as_one<slow::foreach_tensor_div_tensor_kernel_slow, "y0 = x0 / x1", "y0 = x0 / p0">);
    m.impl("_foreach_div_.Tensor",
           as_one<slow::foreach_tensor_div_tensor_kernel_slow_, "y0 = x0 / x1", "y0 = x0 / p0">);
    m.impl("_foreach_maximum.List",
           as_one<slow::foreach_tensor_clamp_min_list_kernel_slow, "y0 = max(x0, x1)">);
    m.impl("_foreach_maximum_.List",
           as_one<slow::foreach_tensor_clamp_min_list_kernel_slow_, "y0 = max(x0, x1)">);
    m.impl("_foreach_minimum.List",
           as_one<slow::foreach_tensor_clamp_max_list_kernel_slow, "y0 = min(x0, x1)">);
    m.impl("_foreach_minimum_.List",
           as_one<slow::foreach_tensor_clamp_max_list_kernel_slow_, "y0 = min(x0, x1)">);
    m.impl("_foreach_addcmul.Scalar",
           as_one<slow::foreach_tensor_addcmul_scalar_slow, "y0 = x0 + p0 * x1 * x2">);
    m.impl("_foreach_addcmul_.Scalar",
           as_one<slow::foreach_tensor_addcmul_scalar_slow_, "y0 = x0 + p0 * x1 * x2">);
    m.impl("_foreach_addcmul.ScalarList",
           as_one<slow::foreach_tensor_addcmul_scalarlist_slow, "y0 = x0 + p0 * x1 * x2">);
    m.impl("_foreach_addcmul_.ScalarList",
           as_one<slow::foreach_tensor_addcmul_scalarlist_slow_, "y0 = x0 + p0 * x1 * x2">);
    m.impl("_foreach_addcdiv.Scalar",
           as_one<slow::foreach_tensor_addcdiv_scalar_slow, "y0 = x0 + p0 * x1 / x2">);
    m.impl("_foreach_addcdiv_.Scalar",
           as_one<slow::foreach_tensor_addcdiv_scalar_slow_, "y0 = x0 + p0 * x1 / x2">);
    m.impl("_foreach_addcdiv.ScalarList",
           as_one<slow::foreach_tensor_addcdiv_scalarlist_slow, "y0 = x0 + p0 * x1 / x2">);
    m.impl("_foreach_addcdiv_.ScalarList",
           as_one<slow::foreach_tensor_addcdiv_scalarlist_slow_, "y0 = x0 + p0 * x1 / x2">);
    m.impl("_foreach_lerp.Scalar",
           as_one<slow::foreach_tensor_lerp_list_kernel_slow, "y0 = x0 + p0 * (x1 - x0)">);
    m.impl("_foreach_lerp_.Scalar",
           as_one<slow::foreach_tensor_lerp_list_kernel_slow_, "y0 = x0 + p0 * (x1 - x0)">);
}

}  // namespace
}  // namespace dlprim_torch
