// SPDX-License-Identifier: MIT
// One generator per operator type, in families. Sizes are small and odd on purpose, so they fill no
// tile.
#include "support/random_cases.hpp"

#include "support/random_draft.hpp"

#include <stdexcept>

namespace dlprim::testing {

namespace {

const Generators& generators() {
    static const Generators all = [] {
        Generators made;
        for (const auto& family : {window_generators(), product_generators(), movement_generators(),
                                   pointwise_generators()})
            made.insert(family.begin(), family.end());
        return made;
    }();
    return all;
}

}  // namespace

const std::vector<std::string>& activations() {
    static const std::vector<std::string> names = {"relu", "relu6", "sigmoid",   "tanh",
                                                   "gelu", "silu",  "hardswish", "leaky_relu",
                                                   "elu",  "mish",  "softplus"};
    return names;
}

std::vector<std::int64_t> features(Dice& dice, std::int64_t channels) {
    std::vector<std::int64_t> shape{dice.pick(2, 5), channels};
    for (std::int64_t i = dice.pick(0, 2); i > 0; --i) shape.push_back(dice.pick(1, 7));
    return shape;
}

bool has_random_cases(std::string_view type) {
    return generators().find(type) != generators().end();
}

Case random_case(const std::string& type, unsigned number) {
    // A generator may make a case that the operator refuses (such as an empty output). Then the
    // next draw is used.
    std::string refusal;
    for (unsigned attempt = 0; attempt < 50; ++attempt) {
        Dice dice(number * 7919 + attempt * 104729 + 17);
        Case one;
        one.file = "random";
        one.name = "random" + std::to_string(number);
        one.type = type;
        Draft draft{dice, one};
        generators().find(type)->second(draft);
        one.options = draft.options.dump();
        try {
            const Operator& op = OperatorRegistry::instance().get(type);
            const CaseData data = make_case_data(one, 1);
            for (const TensorSpec& output : op.infer(data.attrs, data.specs()))
                if (output.shape.empty()) throw std::runtime_error("an empty output");
            return one;
        } catch (const std::exception& error) {
            refusal = error.what();
        }
    }
    throw std::runtime_error("50 draws refused, the last because " + refusal);
}

}  // namespace dlprim::testing
