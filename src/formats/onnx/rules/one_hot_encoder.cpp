// SPDX-License-Identifier: MIT
// OneHotEncoder of the domain ai.onnx.ml: a row of zeros and a one for each element's category.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Strings are known, so that they are encoded here.
Ref encoded_texts(Call& call, const std::vector<std::string>& categories, const Shape& shape,
                  bool zeros) {
    call.build.claim(shape, DType::f64);
    std::vector<double> rows(static_cast<std::size_t>(shape.numel()), 0);
    std::size_t at = 0;
    for (const std::string& text : call.build.texts(call.in(0))) {
        const auto found = std::find(categories.begin(), categories.end(), text);
        call.check(zeros || found != categories.end(), "'", text, "' is no category");
        if (found != categories.end())
            rows[at + static_cast<std::size_t>(found - categories.begin())] = 1;
        at += categories.size();
    }
    return call.build.constant("", host_numbers(shape, rows, DType::f32));
}

void one_hot_encoder(Call& call) {
    Builder& build = call.build;
    const std::vector<std::string> texts =
        call.given("cats_strings") ? call.texts("cats_strings") : std::vector<std::string>{};
    const Ints numbers = call.integers("cats_int64s");
    const bool zeros = call.integer("zeros", 1) != 0;
    const Ref x = call.in(0);
    const std::int64_t count = x->strings ? std::ssize(texts) : std::ssize(numbers);
    call.check(count >= 1, "there are no categories for an input of type ", call.value(0).str());
    Ints sizes = x->spec.shape.to_vector();
    sizes.push_back(count);
    if (x->strings) return call.set(0, encoded_texts(call, texts, Shape(sizes), zeros));
    sizes.back() = 1;
    const Ref y = build.pointwise("y0 = x0 == x1",
                                  {build.reshape(build.cast(x, DType::i64), Shape(sizes)),
                                   build.constant("", host_integers({count}, numbers))},
                                  DType::f32);
    if (zeros) return call.set(0, y);
    // Whether every element is of a category is read.
    const Ref matches =
        build.pointwise("y0 = min[](x0)", {build.pointwise("y0 = max[-1](x0)", {y})});
    call.check(to_numbers(*call.known(matches, "whether all elements are categories"))[0] == 1,
               "an element is no category, and the attribute zeros is 0");
    call.set(0, y);
}

}  // namespace

std::vector<Rule> one_hot_encoder_rules() {
    return {
        {"ai.onnx.ml.OneHotEncoder", 1, one_hot_encoder, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
