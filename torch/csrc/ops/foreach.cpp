// SPDX-License-Identifier: MIT
// Operators over lists of tensors (torch._foreach_*), of which optimizers and the clipping of
// gradients are made: a launch or two for a list. Lists that do not fit (many.hpp) run as PyTorch's
// loop over the tensors.
#include "ops/call.hpp"
#include "ops/many.hpp"

#include <ATen/NativeFunctions.h>

#include <algorithm>

namespace dlprim_torch {
namespace {

namespace slow = at::native;
using Tensors = std::vector<at::Tensor>;
using Scalars = at::ArrayRef<at::Scalar>;

/// Whether the program gives what PyTorch's loop gives: results have the type of the first list.
bool joins(const Lists& inputs) {
    return inputs[0].size() > 1 && fits_many(inputs);
}

bool in_place(const char* code, const Lists& inputs, const std::vector<double>& scalars = {}) {
    if (!joins(inputs)) return false;
    run_many(code, inputs, scalars, {inputs[0]});
    return true;
}

/// The results, or none where the lists do not fit.
Tensors made(const char* code, const Lists& inputs, const std::vector<double>& scalars = {}) {
    if (!joins(inputs)) return {};
    Tensors results = empty_like_all(inputs[0]);
    run_many(code, inputs, scalars, {results});
    return results;
}

/// Whether they are one number, as an optimizer's step sizes are.
bool are_one(Scalars scalars) {
    return !scalars.empty() && std::all_of(scalars.begin(), scalars.end(), [&](const auto& scalar) {
        return !scalar.isComplex() && scalar.toDouble() == scalars[0].toDouble();
    });
}

bool is_real(const at::Scalar& scalar) {
    return !scalar.isComplex();
}

/// A number that a tensor of the CPU holds, or nothing.
std::optional<double> number_of(const at::Tensor& tensor) {
    if (tensor.numel() != 1 || !tensor.device().is_cpu() || tensor.is_complex())
        return std::nullopt;
    return tensor.item<double>();
}

// Each pair: `NAME` for new tensors and `NAME_` for the first list itself.

#define DLPRIM_UNARY(name, code)                                                  \
    Tensors name(at::TensorList x) {                                              \
        Tensors results = made(code, {x});                                        \
        return results.empty() ? slow::foreach_tensor_##name##_slow(x) : results; \
    }                                                                             \
    void name##_(at::TensorList x) {                                              \
        if (!in_place(code, {x})) slow::foreach_tensor_##name##_slow_(x);         \
    }

DLPRIM_UNARY(sqrt, "y0 = sqrt(x0)")
DLPRIM_UNARY(neg, "y0 = -x0")
DLPRIM_UNARY(abs, "y0 = abs(x0)")
DLPRIM_UNARY(reciprocal, "y0 = 1 / x0")
#undef DLPRIM_UNARY

#define DLPRIM_SCALAR(name, code)                                                           \
    Tensors name##_scalar(at::TensorList x, const at::Scalar& p) {                          \
        if (is_real(p))                                                                     \
            if (Tensors results = made(code, {x}, {p.toDouble()}); !results.empty())        \
                return results;                                                             \
        return slow::foreach_tensor_##name##_scalar_kernel_slow(x, p);                      \
    }                                                                                       \
    void name##_scalar_(at::TensorList x, const at::Scalar& p) {                            \
        if (!is_real(p) || !in_place(code, {x}, {p.toDouble()}))                            \
            slow::foreach_tensor_##name##_scalar_kernel_slow_(x, p);                        \
    }                                                                                       \
    Tensors name##_scalars(at::TensorList x, Scalars p) {                                   \
        if (p.size() == x.size() && are_one(p))                                             \
            if (Tensors results = made(code, {x}, {p[0].toDouble()}); !results.empty())     \
                return results;                                                             \
        return slow::foreach_tensor_##name##_scalarlist_kernel_slow(x, p);                  \
    }                                                                                       \
    void name##_scalars_(at::TensorList x, Scalars p) {                                     \
        if (p.size() != x.size() || !are_one(p) || !in_place(code, {x}, {p[0].toDouble()})) \
            slow::foreach_tensor_##name##_scalarlist_kernel_slow_(x, p);                    \
    }

DLPRIM_SCALAR(add, "y0 = x0 + p0")
DLPRIM_SCALAR(sub, "y0 = x0 - p0")
DLPRIM_SCALAR(mul, "y0 = x0 * p0")
DLPRIM_SCALAR(div, "y0 = x0 / p0")
#undef DLPRIM_SCALAR

#define DLPRIM_LIST(name, code)                                                             \
    Tensors name##_list(at::TensorList x, at::TensorList other) {                           \
        if (x.size() == other.size())                                                       \
            if (Tensors results = made(code, {x, other}); !results.empty()) return results; \
        return slow::foreach_tensor_##name##_list_kernel_slow(x, other);                    \
    }                                                                                       \
    void name##_list_(at::TensorList x, at::TensorList other) {                             \
        if (x.size() != other.size() || !in_place(code, {x, other}))                        \
            slow::foreach_tensor_##name##_list_kernel_slow_(x, other);                      \
    }

DLPRIM_LIST(mul, "y0 = x0 * x1")
DLPRIM_LIST(div, "y0 = x0 / x1")
DLPRIM_LIST(clamp_min, "y0 = max(x0, x1)")
DLPRIM_LIST(clamp_max, "y0 = min(x0, x1)")
#undef DLPRIM_LIST

#define DLPRIM_SUM(name, code)                                                                  \
    Tensors name##_list(at::TensorList x, at::TensorList other, const at::Scalar& alpha) {      \
        if (is_real(alpha) && x.size() == other.size())                                         \
            if (Tensors results = made(code, {x, other}, {alpha.toDouble()}); !results.empty()) \
                return results;                                                                 \
        return slow::foreach_tensor_##name##_list_kernel_slow(x, other, alpha);                 \
    }                                                                                           \
    void name##_list_(at::TensorList x, at::TensorList other, const at::Scalar& alpha) {        \
        if (!is_real(alpha) || x.size() != other.size() ||                                      \
            !in_place(code, {x, other}, {alpha.toDouble()}))                                    \
            slow::foreach_tensor_##name##_list_kernel_slow_(x, other, alpha);                   \
    }

DLPRIM_SUM(add, "y0 = x0 + p0 * x1")
DLPRIM_SUM(sub, "y0 = x0 - p0 * x1")
#undef DLPRIM_SUM

#define DLPRIM_TENSOR(name, code, by_number)                                                   \
    Tensors name##_tensor(at::TensorList x, const at::Tensor& other) {                         \
        const auto number = number_of(other);                                                  \
        Tensors results = number ? made(by_number, {x}, {*number}) : made(code, {x, {other}}); \
        return results.empty() ? slow::foreach_tensor_##name##_tensor_kernel_slow(x, other)    \
                               : results;                                                      \
    }                                                                                          \
    void name##_tensor_(at::TensorList x, const at::Tensor& other) {                           \
        const auto number = number_of(other);                                                  \
        if (!(number ? in_place(by_number, {x}, {*number}) : in_place(code, {x, {other}})))    \
            slow::foreach_tensor_##name##_tensor_kernel_slow_(x, other);                       \
    }

DLPRIM_TENSOR(mul, "y0 = x0 * x1", "y0 = x0 * p0")
DLPRIM_TENSOR(div, "y0 = x0 / x1", "y0 = x0 / p0")
#undef DLPRIM_TENSOR

#define DLPRIM_PRODUCT(name, code)                                                                \
    Tensors name##_scalar(at::TensorList x, at::TensorList a, at::TensorList b,                   \
                          const at::Scalar& p) {                                                  \
        if (is_real(p))                                                                           \
            if (Tensors results = made(code, {x, a, b}, {p.toDouble()}); !results.empty())        \
                return results;                                                                   \
        return slow::foreach_tensor_##name##_scalar_slow(x, a, b, p);                             \
    }                                                                                             \
    void name##_scalar_(at::TensorList x, at::TensorList a, at::TensorList b,                     \
                        const at::Scalar& p) {                                                    \
        if (!is_real(p) || !in_place(code, {x, a, b}, {p.toDouble()}))                            \
            slow::foreach_tensor_##name##_scalar_slow_(x, a, b, p);                               \
    }                                                                                             \
    Tensors name##_scalars(at::TensorList x, at::TensorList a, at::TensorList b, Scalars p) {     \
        if (p.size() == x.size() && are_one(p))                                                   \
            if (Tensors results = made(code, {x, a, b}, {p[0].toDouble()}); !results.empty())     \
                return results;                                                                   \
        return slow::foreach_tensor_##name##_scalarlist_slow(x, a, b, p);                         \
    }                                                                                             \
    void name##_scalars_(at::TensorList x, at::TensorList a, at::TensorList b, Scalars p) {       \
        if (p.size() != x.size() || !are_one(p) || !in_place(code, {x, a, b}, {p[0].toDouble()})) \
            slow::foreach_tensor_##name##_scalarlist_slow_(x, a, b, p);                           \
    }

DLPRIM_PRODUCT(addcmul, "y0 = x0 + p0 * x1 * x2")
DLPRIM_PRODUCT(addcdiv, "y0 = x0 + p0 * x1 / x2")
#undef DLPRIM_PRODUCT

constexpr const char* lerp_code = "y0 = x0 + p0 * (x1 - x0)";

Tensors lerp_scalar(at::TensorList x, at::TensorList end, const at::Scalar& weight) {
    if (is_real(weight))
        if (Tensors results = made(lerp_code, {x, end}, {weight.toDouble()}); !results.empty())
            return results;
    return slow::foreach_tensor_lerp_list_kernel_slow(x, end, weight);
}

void lerp_scalar_(at::TensorList x, at::TensorList end, const at::Scalar& weight) {
    if (!is_real(weight) || !in_place(lerp_code, {x, end}, {weight.toDouble()}))
        slow::foreach_tensor_lerp_list_kernel_slow_(x, end, weight);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_foreach_sqrt", sqrt);
    m.impl("_foreach_sqrt_", sqrt_);
    m.impl("_foreach_neg", neg);
    m.impl("_foreach_neg_", neg_);
    m.impl("_foreach_abs", abs);
    m.impl("_foreach_abs_", abs_);
    m.impl("_foreach_reciprocal", reciprocal);
    m.impl("_foreach_reciprocal_", reciprocal_);
    m.impl("_foreach_add.Scalar", add_scalar);
    m.impl("_foreach_add_.Scalar", add_scalar_);
    m.impl("_foreach_add.ScalarList", add_scalars);
    m.impl("_foreach_add_.ScalarList", add_scalars_);
    m.impl("_foreach_add.List", add_list);
    m.impl("_foreach_add_.List", add_list_);
    m.impl("_foreach_sub.Scalar", sub_scalar);
    m.impl("_foreach_sub_.Scalar", sub_scalar_);
    m.impl("_foreach_sub.ScalarList", sub_scalars);
    m.impl("_foreach_sub_.ScalarList", sub_scalars_);
    m.impl("_foreach_sub.List", sub_list);
    m.impl("_foreach_sub_.List", sub_list_);
    m.impl("_foreach_mul.Scalar", mul_scalar);
    m.impl("_foreach_mul_.Scalar", mul_scalar_);
    m.impl("_foreach_mul.ScalarList", mul_scalars);
    m.impl("_foreach_mul_.ScalarList", mul_scalars_);
    m.impl("_foreach_mul.List", mul_list);
    m.impl("_foreach_mul_.List", mul_list_);
    m.impl("_foreach_mul.Tensor", mul_tensor);
    m.impl("_foreach_mul_.Tensor", mul_tensor_);
    m.impl("_foreach_div.Scalar", div_scalar);
    m.impl("_foreach_div_.Scalar", div_scalar_);
    m.impl("_foreach_div.ScalarList", div_scalars);
    m.impl("_foreach_div_.ScalarList", div_scalars_);
    m.impl("_foreach_div.List", div_list);
    m.impl("_foreach_div_.List", div_list_);
    m.impl("_foreach_div.Tensor", div_tensor);
    m.impl("_foreach_div_.Tensor", div_tensor_);
    m.impl("_foreach_maximum.List", clamp_min_list);
    m.impl("_foreach_maximum_.List", clamp_min_list_);
    m.impl("_foreach_minimum.List", clamp_max_list);
    m.impl("_foreach_minimum_.List", clamp_max_list_);
    m.impl("_foreach_addcmul.Scalar", addcmul_scalar);
    m.impl("_foreach_addcmul_.Scalar", addcmul_scalar_);
    m.impl("_foreach_addcmul.ScalarList", addcmul_scalars);
    m.impl("_foreach_addcmul_.ScalarList", addcmul_scalars_);
    m.impl("_foreach_addcdiv.Scalar", addcdiv_scalar);
    m.impl("_foreach_addcdiv_.Scalar", addcdiv_scalar_);
    m.impl("_foreach_addcdiv.ScalarList", addcdiv_scalars);
    m.impl("_foreach_addcdiv_.ScalarList", addcdiv_scalars_);
    m.impl("_foreach_lerp.Scalar", lerp_scalar);
    m.impl("_foreach_lerp_.Scalar", lerp_scalar_);
}

}  // namespace
}  // namespace dlprim_torch
