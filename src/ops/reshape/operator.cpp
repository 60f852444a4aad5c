// SPDX-License-Identifier: MIT
// Reshape: the same elements in the same order, with another shape.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/view_operator.hpp"

namespace dlprim::reshape {

namespace {

class Reshape : public DeclaredOperator<ops::Reshape, ViewOperator> {
  public:
    Shape view(const Attrs& attrs, const Shape& input) const override;
};

Shape Reshape::view(const Attrs& attrs, const Shape& input) const {
    const Ints dims = attrs.ints("dims");
    require(dims.size() <= static_cast<std::size_t>(Shape::max_rank), "dims has ", dims.size(),
            " entries, at most ", Shape::max_rank, " are possible");
    Ints sizes;
    std::ptrdiff_t deduced = -1;
    std::int64_t known = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        std::int64_t size = dims[d];
        require(size >= -1, "dims has ", size,
                "; a size is positive, 0 (keeps the input's) or -1 (deduced)");
        if (size == 0) {
            if (static_cast<int>(d) >= input.rank())
                fail(ErrorKind::invalid_argument, "dims keeps dimension ", d,
                     " with 0, which input ", input.str(), " does not have");
            size = input[static_cast<int>(d)];
        }
        if (size == -1) {
            require(deduced < 0, "dims has more than one -1; only one size can be deduced");
            deduced = static_cast<std::ptrdiff_t>(d);
        } else {
            known = Shape{known, size}.numel();
        }
        sizes.push_back(size);
    }
    if (deduced >= 0) {
        const auto at = static_cast<std::size_t>(deduced);
        sizes[at] = 1;
        if (known <= 0 || input.numel() % known != 0)
            fail(ErrorKind::invalid_argument, "dims ", Shape(sizes).str(), " with size ", at,
                 " to deduce does not divide the ", input.numel(), " elements of input ",
                 input.str());
        sizes[at] = input.numel() / known;
    }
    const Shape shape(sizes);
    if (shape.numel() != input.numel())
        fail(ErrorKind::invalid_argument, "input ", input.str(), " has ", input.numel(),
             " elements, shape ", shape.str(), " needs ", shape.numel());
    return shape;
}

}  // namespace

void register_reshape(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Reshape>());
}

}  // namespace dlprim::reshape
