// SPDX-License-Identifier: MIT
// TopK's geometry and keys; see lines.hpp.
#include "ops/topk/lines.hpp"

#include "base/text.hpp"

namespace dlprim::topk {

Lines::Lines(const Attrs& attrs, const Shape& x)
    : AxisLines(x, dimension_of(attrs.integer("dim"), x)),
      k(attrs.integer("k")),
      largest(attrs.boolean("largest")),
      result(x) {
    const int dim = dimension_of(attrs.integer("dim"), x);
    require(k >= 0 && k <= length, "k is ", k, ", dimension ", dim, " of input ", x, " has ",
            length, " elements");
    if (x.rank() == 0)
        require(k == 1, "k is ", k, ", a scalar has one element");
    else
        result = x.with(dim, k);
}

KeyForm::KeyForm(DType dtype) {
    const std::size_t bits = 8 * size_of(dtype);
    all = ~std::uint64_t{0} >> (64 - bits);
    const bool is_unsigned = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 ||
                             dtype == DType::u64 || dtype == DType::boolean;
    if (!is_unsigned) sign = std::uint64_t{1} << (bits - 1);
    if (dtype == DType::f16) infinity = 0x7c00;
    if (dtype == DType::bf16) infinity = 0x7f80;
    if (dtype == DType::f32) infinity = 0x7f800000;
    if (dtype == DType::f64) infinity = std::uint64_t{0x7ff} << 52;
}

}  // namespace dlprim::topk
