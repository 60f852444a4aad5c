// SPDX-License-Identifier: MIT
// Pairs of QuantizeLinear and DequantizeLinear, as models that were trained for integers hold them;
// see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

namespace dlprim::onnx {

namespace {

/// Whether two values are the same, or constants with the same elements.
bool are_equal(Ref a, Ref b) {
    if (a == b) return true;
    return a->known && b->known && a->spec == b->spec && a->known->data == b->known->data;
}

/// What rules/quantization.cpp writes, and the two in one.
struct Forms {
    std::string_view quantize, dequantize, both;
    std::size_t inputs;
};
constexpr Forms forms[] = {
    {"y0 = min(max(round(x0 / x1), p0), p1)", "y0 = x0 * x1",
     "y0 = min(max(round(x0 / x1), p0), p1) * x1", 2},
    {"y0 = min(max(round(x0 / x1) + x2, p0), p1)", "y0 = (x0 - x2) * x1",
     "y0 = (min(max(round(x0 / x1) + x2, p0), p1) - x2) * x1", 3},
};

bool merge(Finder& finder, BuiltOperator& op, const Forms& form) {
    if (!is_code(op, form.dequantize) || op.inputs.size() != form.inputs) return false;
    const BuiltOperator* const first = finder.sole_maker(op.inputs[0]);
    if (!first || !is_code(*first, form.quantize) || !is_float(first->inputs[0]->spec.dtype))
        return false;
    if (first->inputs[0]->spec != op.outputs[0]->spec) return false;
    for (std::size_t i = 1; i < form.inputs; ++i)
        if (!are_equal(first->inputs[i], op.inputs[i])) return false;
    Attrs options = op.options;
    options.set("code", std::string(form.both));
    options.set("scalars", first->options.numbers("scalars"));
    const std::vector<Ref> inputs = first->inputs;
    finder.rewrite(op, "Pointwise", options, inputs);
    return true;
}

}  // namespace

void merge_quantization(Finder& finder) {
    for (BuiltOperator& op : finder.operators())
        for (const Forms& form : forms)
            if (!finder.is_dead(op) && merge(finder, op, form)) break;
}

}  // namespace dlprim::onnx
