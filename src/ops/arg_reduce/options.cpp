// SPDX-License-Identifier: MIT
// ArgReduce's options; see options.hpp.
#include "ops/arg_reduce/options.hpp"

#include "base/text.hpp"

namespace dlprim::arg_reduce {

namespace {

int dim_of(const Attrs& attrs, const Shape& x) {
    const Ints given = attrs.ints("dim");
    require(given.size() <= 1, "dim names ", given.size(), " dimensions, it names one or, empty, ",
            "all elements");
    return given.empty() ? -1 : dimension_of(given[0], x);
}

Shape result_of(const Shape& x, int dim, bool keep_dim) {
    Ints sizes = x.to_vector();
    if (dim < 0 && keep_dim) sizes.assign(sizes.size(), 1);
    if (dim < 0 && !keep_dim) sizes.clear();
    if (dim < 0 || sizes.empty()) return Shape(sizes);
    if (keep_dim)
        sizes[static_cast<std::size_t>(dim)] = 1;
    else
        sizes.erase(sizes.begin() + dim);
    return Shape(sizes);
}

}  // namespace

Options::Options(const Attrs& attrs, const Shape& x)
    : largest(attrs.text("method") == "max"),
      keep_dim(attrs.boolean("keep_dim")),
      values(attrs.boolean("values")),
      dim(dim_of(attrs, x)),
      lines(dim < 0 ? AxisLines(x.numel()) : AxisLines(x, dim)),
      result(result_of(x, dim, keep_dim)) {
    require(lines.length > 0, "input ", x, " has no elements to choose the ", attrs.text("method"),
            " of");
}

}  // namespace dlprim::arg_reduce
