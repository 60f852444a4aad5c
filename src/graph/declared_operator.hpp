// SPDX-License-Identifier: MIT
// DeclaredOperator: an operator whose type and options a struct declares (dlprim/op_options.hpp, or
// one of the same form in the operator's folder).
#pragma once

#include "base/schema.hpp"
#include "graph/operator.hpp"

#include <dlprim/op_options.hpp>

#include <string_view>
#include <tuple>

namespace dlprim {

template <typename Options, typename Base = Operator>
class DeclaredOperator : public Base {
  public:
    std::string_view type() const override { return Options::type; }
    const Schema& schema() const override { return schema_of<Options>(); }
};

/// The same of an operator that only passes make.
template <typename Options, typename Base = Operator>
class InternalOperator : public DeclaredOperator<Options, Base> {
  public:
    bool internal() const override { return true; }
};

/// The options of a gradient that has those of the forward operator, and the shape of its input,
/// which need not be kept for it.
template <typename Forward>
struct WithSizes : Forward {
    ops::IntList sizes = {};
    static constexpr auto fields() {
        return ops::joined(Forward::fields(), ops::option_table(ops::required<&WithSizes::sizes>(
                                                  "the shape of the forward operator's input")));
    }
};

/// The alias that a struct with a function meant() declares.
template <typename Options>
TypeAlias alias_of(const Options&) {
    return {Options::type, decltype(Options().meant())::type, &schema_of<Options>(),
            [](const Attrs& attrs) { return attrs_of(read<Options>(attrs).meant()); }};
}

}  // namespace dlprim
