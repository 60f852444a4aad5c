// SPDX-License-Identifier: MIT
// Scan's options; see options.hpp.
#include "ops/scan/options.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"
#include "engine/element.hpp"

#include <dlprim/op_options.hpp>

namespace dlprim::scan {

namespace {

DType result_of(const Attrs& attrs, Method method, DType dtype) {
    require_comparable(dtype);
    const std::string& name = attrs.text("dtype");
    const DType result = name.empty() ? dtype : parse_dtype(name);
    if (result == dtype) return result;
    require(method == Method::sum || method == Method::prod, "dtype is for sums and products, not ",
            attrs.text("method"));
    require(!is_float(dtype) && is_integer(result), "dtype is ", name_of(result),
            ": the results of ", name_of(dtype),
            is_float(dtype) ? " have its type; cast the input" : " are that or integers");
    return result;
}

}  // namespace

Method method_of(const Attrs& attrs) {
    return chosen<Method, &ops::Scan::method>(attrs);
}

Options::Options(const Attrs& attrs, const Shape& x, DType dtype)
    : method(method_of(attrs)),
      dim(dimension_of(attrs.integer("dim"), x)),
      reverse(attrs.boolean("reverse")),
      exclusive(attrs.boolean("exclusive")),
      result(result_of(attrs, method, dtype)),
      lines(x, dim) {
    require(method != Method::logsumexp || is_float(dtype), "the input is ", name_of(dtype),
            ", logsumexp is made of floats; cast it");
    require(!exclusive || method == Method::sum || method == Method::prod,
            "exclusive is for sums and products: there is no ", attrs.text("method"),
            " of no elements");
}

}  // namespace dlprim::scan
