// SPDX-License-Identifier: MIT
// The products of a language model.
#include "language/products.hpp"

#include "language/architecture.hpp"
#include "language/head_rows.hpp"
#include "language/network.hpp"

namespace dlprim::language {

std::vector<Product> products_of(const ModelFile& model) {
    const Architecture& architecture = find_decoder(model);
    const NetDescription net = make_network(architecture, model, model.sizes(),
                                            {.capacity = 1, .positions = 2, .training = true});
    constexpr std::string_view end = ".weight", layers = "blk.", table = "token_embd.weight";
    std::vector<Product> products;
    for (const NetDescription::Op& op : net.operators) {
        if (op.type != "InnerProduct" || op.params[0] == table) continue;
        const std::string& weight = op.params[0];
        const auto named = hugging_face_weight(architecture, weight);
        const Shape shape = model.shape(weight).value();
        if (!named || shape.rank() != 2) continue;
        const std::string& name = named->names.front();
        products.push_back({weight, name.substr(0, name.size() - end.size()), shape[0], shape[1],
                            weight.starts_with(layers),
                            interleaves(architecture, model.architecture(), *named->source),
                            named->source->transpose});
    }
    return products;
}

}  // namespace dlprim::language
