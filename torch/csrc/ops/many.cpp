// SPDX-License-Identifier: MIT
// See many.hpp.
#include "ops/many.hpp"

#include "device/errors.hpp"
#include "memory/view.hpp"

#include <dlprim/pointwise_many.hpp>

#include <algorithm>

namespace dlprim_torch {
namespace {

bool serves_all(at::TensorList list) {
    return list.size() == 1 && list[0].numel() == 1;
}

/// Whether the elements of both lie in the same order, without gaps.
bool lies_like(const at::Tensor& tensor, const at::Tensor& first) {
    if (tensor.sizes() != first.sizes()) return false;
    if (tensor.is_contiguous() && first.is_contiguous()) return true;
    return tensor.strides() == first.strides() && tensor.is_non_overlapping_and_dense();
}

/// The elements in the order of memory.
dp::Tensor flat(const at::Tensor& tensor) {
    return view_of(tensor.is_contiguous() ? tensor : tensor.as_strided({tensor.numel()}, {1}));
}

std::vector<std::vector<dp::Tensor>> flat_all(const Lists& lists) {
    std::vector<std::vector<dp::Tensor>> made;
    made.reserve(lists.size());
    for (const at::TensorList list : lists) {
        made.emplace_back();
        made.back().reserve(list.size());
        for (const at::Tensor& tensor : list) made.back().push_back(flat(tensor));
    }
    return made;
}

}  // namespace

bool fits_many(const Lists& inputs) {
    if (inputs.empty() || inputs[0].empty()) return false;
    const at::Tensor& first = inputs[0][0];
    if (!at::isFloatingType(first.scalar_type())) return false;
    const auto alike = [&](const at::Tensor& tensor) {
        return tensor.device() == first.device() && tensor.scalar_type() == first.scalar_type() &&
               !tensor.is_neg() && tensor.layout() == at::kStrided;
    };
    return std::all_of(inputs.begin(), inputs.end(), [&](at::TensorList list) {
        const bool shared = serves_all(list) && inputs[0].size() != 1;
        if (!shared && list.size() != inputs[0].size()) return false;
        for (std::size_t k = 0; k < list.size(); ++k) {
            if (!alike(list[k])) return false;
            if (!shared && list[k].numel() != 1 && !lies_like(list[k], inputs[0][k])) return false;
        }
        return true;
    });
}

void run_many(std::string_view code, const Lists& inputs, const std::vector<double>& scalars,
              const Lists& outs) {
    translated([&] { dp::ops::pointwise_many(code, flat_all(inputs), scalars, flat_all(outs)); });
}

std::vector<at::Tensor> empty_like_all(at::TensorList list) {
    std::vector<at::Tensor> made;
    made.reserve(list.size());
    for (const at::Tensor& tensor : list) made.push_back(at::empty_like(tensor));
    return made;
}

}  // namespace dlprim_torch
