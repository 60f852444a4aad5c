// SPDX-License-Identifier: MIT
// Activations that exporters write in pieces; see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

class Activations {
  public:
    explicit Activations(Finder& finder) : finder_(finder) {}

    void run() {
        for (BuiltOperator& op : finder_.operators()) {
            if (finder_.is_dead(op)) continue;
            if (is_elementwise(op, "prod")) merge_product(op);
            if (op.type == "Pointwise") merge_scaled(op);
        }
    }

  private:
    /// x where the value is this activation of x, for one reader.
    Ref activation_of(Ref value, std::string_view function) {
        const BuiltOperator* const op = finder_.sole_maker(value);
        const bool is = op && op->type == "Activation" && has_text(*op, "activation", function);
        return is ? op->inputs[0] : nullptr;
    }

    /// x where the value is this expression of x and the scalar, for one reader.
    Ref expression_of(Ref value, std::string_view code, double scalar) {
        const BuiltOperator* const op = finder_.sole_maker(value);
        return op && is_expression(*op, code, scalar) ? op->inputs[0] : nullptr;
    }

    /// x where the value is relu6(x + 3).
    Ref relu6_of_shifted(Ref value) {
        const Ref shifted = activation_of(value, "relu6");
        return shifted ? expression_of(shifted, "y0 = x0 + p0", 3) : nullptr;
    }

    /// x where the value is erf(x / sqrt(2)) + 1.
    Ref erf_of_scaled(Ref value) {
        const double root = std::sqrt(2.0);
        const Ref sum = expression_of(value, "y0 = x0 + p0", 1);
        const BuiltOperator* const erf = sum ? finder_.sole_maker(sum) : nullptr;
        if (!erf || !is_code(*erf, "y0 = erf(x0)")) return nullptr;
        const Ref scaled = erf->inputs[0];
        if (const Ref x = expression_of(scaled, "y0 = x0 / p0", root)) return x;
        return expression_of(scaled, "y0 = x0 * p0", 1 / root);
    }

    void become(BuiltOperator& op, std::string_view function, Ref x) {
        if (x && x->spec == op.outputs[0]->spec)
            finder_.rewrite(op, "Activation", {{"activation", std::string(function)}}, {x});
    }

    /// x * f(x).
    void merge_product(BuiltOperator& op) {
        for (const bool swapped : {false, true}) {
            const Ref x = op.inputs[swapped ? 1 : 0], f = op.inputs[swapped ? 0 : 1];
            if (activation_of(f, "sigmoid") == x) return become(op, "silu", x);
            if (activation_of(f, "hardsigmoid") == x) return become(op, "hardswish", x);
            // (x * 0.5) * (erf + 1)
            const Ref half = expression_of(x, "y0 = x0 * p0", 0.5);
            if (half && erf_of_scaled(f) == half) return become(op, "gelu", half);
        }
    }

    /// A product or f(x) alone, times or over a number.
    void merge_scaled(BuiltOperator& op) {
        const bool sixth =
            is_expression(op, "y0 = x0 / p0", 6) || is_expression(op, "y0 = x0 * p0", 1.0 / 6);
        const bool half = is_expression(op, "y0 = x0 * p0", 0.5);
        if (!sixth && !half) return;
        if (const Ref x = sixth ? relu6_of_shifted(op.inputs[0]) : nullptr)
            return become(op, "hardsigmoid", x);
        const BuiltOperator* const product = finder_.sole_maker(op.inputs[0]);
        if (!product || !is_elementwise(*product, "prod")) return;
        for (const bool swapped : {false, true}) {
            const Ref x = product->inputs[swapped ? 1 : 0], f = product->inputs[swapped ? 0 : 1];
            if (sixth && relu6_of_shifted(f) == x) return become(op, "hardswish", x);
            if (half && erf_of_scaled(f) == x) return become(op, "gelu", x);
        }
    }

    Finder& finder_;
};

}  // namespace

void merge_activations(Finder& finder) {
    Activations(finder).run();
}

}  // namespace dlprim::onnx
