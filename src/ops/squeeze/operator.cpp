// SPDX-License-Identifier: MIT
// Squeeze: drops dimensions of size 1 and keeps the memory. dims lists dimensions; those of another
// size stay, as in torch.squeeze. With `all`, or without dims, every dimension of size 1 is
// dropped.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/view_operator.hpp"

#include <vector>

namespace dlprim::squeeze {

namespace {

class Squeeze : public DeclaredOperator<ops::Squeeze, ViewOperator> {
  public:
    Shape view(const Attrs& attrs, const Shape& input) const override;
};

Shape Squeeze::view(const Attrs& attrs, const Shape& input) const {
    const Ints dims = attrs.ints("dims");
    std::vector<bool> drop(static_cast<std::size_t>(input.rank()),
                           attrs.boolean("all") || dims.empty());
    for (const std::int64_t d : dims) {
        require(d >= -input.rank() && d < input.rank(), "dims has ", d, ", which input ", input,
                " does not have");
        drop[static_cast<std::size_t>(d < 0 ? d + input.rank() : d)] = true;
    }
    Ints sizes;
    for (int d = 0; d < input.rank(); ++d)
        if (!drop[static_cast<std::size_t>(d)] || input[d] != 1) sizes.push_back(input[d]);
    return Shape(sizes);
}

}  // namespace

void register_squeeze(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Squeeze>());
}

}  // namespace dlprim::squeeze
