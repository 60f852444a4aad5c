// SPDX-License-Identifier: MIT
// Overloads that follow from another one: out= from the functional one, and that from out=.
//
//   m.impl("histc.out", into_outs<histc>);
//   m.impl("index_select", into_new<index_select_out>);
#pragma once

#include "common.hpp"

#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <tuple>
#include <utility>

namespace dlprim_torch {

/// Makes `result` the contents of a tensor that a program gave as out=.
inline void bring(const at::Tensor& out, const at::Tensor& result) {
    at::native::resize_output(out, result.sizes());
    out.copy_(result);
}

template <typename>
using OutOf = at::Tensor&;

template <auto function, typename Type = decltype(function)>
struct IntoOuts;

template <auto function, typename... Values>
struct IntoOuts<function, at::Tensor (*)(Values...)> {
    static at::Tensor& call(Values... values, at::Tensor& out) {
        bring(out, function(std::forward<Values>(values)...));
        return out;
    }
};

template <auto function, typename... Results, typename... Values>
struct IntoOuts<function, std::tuple<Results...> (*)(Values...)> {
    static std::tuple<OutOf<Results>...> call(Values... values, OutOf<Results>... outs) {
        std::apply([&](const Results&... results) { (bring(outs, results), ...); },
                   function(std::forward<Values>(values)...));
        return {outs...};
    }
};

/// Computes new tensors by `function` and brings them to those of out=.
template <auto function>
constexpr auto into_outs = &IntoOuts<function>::call;

/// `Kept` are the arguments of the new overload, and behind them comes the tensor of out=. The
/// result has the type and device of the first argument.
template <auto function, typename Kept, typename... Left>
struct IntoNew;

template <auto function, typename... Kept, typename Next, typename... Left>
struct IntoNew<function, std::tuple<Kept...>, Next, Left...>
    : IntoNew<function, std::tuple<Kept..., Next>, Left...> {};

template <auto function, typename First, typename... Kept>
struct IntoNew<function, std::tuple<First, Kept...>, at::Tensor&> {
    static at::Tensor call(First first, Kept... values) {
        const c10::DeviceGuard guard(first.device());
        at::Tensor out = at::empty({0}, first.options());
        return function(first, std::forward<Kept>(values)..., out);
    }
};

template <auto function, typename... Values>
constexpr auto into_new_of(at::Tensor& (*)(Values...)) {
    return &IntoNew<function, std::tuple<>, Values...>::call;
}

/// Calls `function` with a new tensor like the first argument as out=.
template <auto function>
constexpr auto into_new = into_new_of<function>(function);

}  // namespace dlprim_torch
