// SPDX-License-Identifier: MIT
// Pooling by windows and of whole images.
#include "formats/onnx/rules/windows.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

void pool(Call& call, const char* mode) {
    const Shape& x = call.shape(0);
    const Windows windows(call, x, {});
    const bool average = std::string_view(mode) == "avg";
    call.supports(std::all_of(windows.dilation.begin(), windows.dilation.end(),
                              [](std::int64_t d) { return d == 1; }),
                  "dilations other than 1 are not supported");
    call.ignore("storage_order");  // of the positions, which are not made
    Attrs options{{"mode", std::string(mode)},
                  {"kernel", windows.kernel},
                  {"stride", windows.stride},
                  {"pad", windows.pad},
                  {"ceil_mode", call.integer("ceil_mode", 0) != 0}};
    if (average) options.set("count_include_pad", call.integer("count_include_pad", 0) != 0);
    const Ref y = call.build.add1("Pooling2D", {as_image(call, call.in(0))}, options);
    call.set(0, from_image(call, y, windows.dims));
}

/// [N, C, ...] -> [N, C, 1, ...].
void pool_all(Call& call, const char* mode) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 3, "an input of shape ", x.str(), " holds no images");
    Ref value = call.in(0);
    if (x.rank() != 4) value = call.build.reshape(value, {x[0], x[1], 1, x.product(2, x.rank())});
    value = call.build.add1("GlobalPooling", {value}, {{"mode", std::string(mode)}});
    Ints kept = x.to_vector();
    std::fill(kept.begin() + 2, kept.end(), 1);
    call.set(0, call.build.reshape(value, Shape(kept)));
}

const Rule rules[] = {
    {"MaxPool", 1, [](Call& call) { pool(call, "max"); }},
    {"AveragePool", 1, [](Call& call) { pool(call, "avg"); }},
    {"GlobalMaxPool", 1, [](Call& call) { pool_all(call, "max"); }},
    {"GlobalAveragePool", 1, [](Call& call) { pool_all(call, "avg"); }},
};

}  // namespace

std::span<const Rule> pooling_rules() {
    return rules;
}

}  // namespace dlprim::onnx
