// SPDX-License-Identifier: MIT
// Elements by their order.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// Of equal elements the one in front comes first, as ONNX asks.
void top_k(Call& call, std::int64_t k) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    const bool largest = call.integer("largest", 1) != 0;
    call.ignore("sorted");
    call.check(k >= 0 && k <= x[axis], "k is ", k, " for ", x[axis], " elements");
    const std::vector<Ref> found =
        call.build.add("TopK", {call.in(0)}, {{"k", k}, {"dim", axis}, {"largest", largest}});
    call.set(0, found[0]);
    if (call.wants(1)) call.set(1, found[1]);
}

void top_k_by_attribute(Call& call) {
    top_k(call, call.integer("k", 0));
}

void top_k_by_input(Call& call) {
    const Ints k = call.known_integers(1, "k");
    call.check(k.size() == 1, "k is no single number");
    top_k(call, k[0]);
}

}  // namespace

std::vector<Rule> order_rules() {
    return {
        {"TopK", 1, top_k_by_attribute},
        {"TopK", 10, top_k_by_input},
    };
}

}  // namespace dlprim::onnx
