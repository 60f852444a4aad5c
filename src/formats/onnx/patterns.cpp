// SPDX-License-Identifier: MIT
// Patterns of operators; see patterns.hpp.
#include "formats/onnx/patterns.hpp"

#include <cmath>
#include <map>
#include <string_view>

namespace dlprim::onnx {

namespace {

class Patterns {
  public:
    Patterns(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs)
        : operators_(operators) {
        for (Ref value : outputs) ++uses_[value];
        for (std::size_t i = 0; i < operators_.size(); ++i) {
            for (const auto* list : {&operators_[i].inputs, &operators_[i].params})
                for (Ref value : *list) ++uses_[value];
            for (Ref value : operators_[i].outputs) makers_[value] = i;
        }
    }

    void run() {
        for (BuiltOperator& op : operators_) {
            if (is_elementwise(op, "prod")) merge_product(op);
            if (op.type == "Pointwise") merge_scaled(op);
            if (is_elementwise(op, "sum")) merge_bias(op);
        }
    }

  private:
    static bool has_text(const BuiltOperator& op, std::string_view option, std::string_view text) {
        return op.options.has(option) && op.options.text(option) == text;
    }
    static bool is_elementwise(const BuiltOperator& op, std::string_view operation) {
        return op.type == "Elementwise" && has_text(op, "operation", operation);
    }

    /// The operator that makes the value; null where none does.
    BuiltOperator* maker(Ref value) {
        const auto found = makers_.find(value);
        return found == makers_.end() ? nullptr : &operators_[found->second];
    }
    /// The same where nobody else reads the value.
    BuiltOperator* sole_maker(Ref value) { return uses_[value] == 1 ? maker(value) : nullptr; }

    /// x where the value is this activation of x, for one reader.
    Ref activation_of(Ref value, std::string_view function) {
        const BuiltOperator* const op = sole_maker(value);
        const bool is = op && op->type == "Activation" && has_text(*op, "activation", function);
        return is ? op->inputs[0] : nullptr;
    }

    /// x where the value is this expression of x and the scalar, for one reader.
    Ref expression_of(Ref value, std::string_view code, double scalar) {
        const BuiltOperator* const op = sole_maker(value);
        return op && is_expression(*op, code, scalar) ? op->inputs[0] : nullptr;
    }
    static bool is_expression(const BuiltOperator& op, std::string_view code, double scalar) {
        if (op.type != "Pointwise" || !has_text(op, "code", code)) return false;
        if (!op.options.has("scalars")) return std::isnan(scalar);
        const Doubles scalars = op.options.numbers("scalars");
        // Exporters write constants as floats.
        return scalars.size() == 1 && std::abs(scalars[0] - scalar) <= 1e-6 * std::abs(scalar);
    }

    /// x where the value is relu6(x + 3).
    Ref relu6_of_shifted(Ref value) {
        const Ref shifted = activation_of(value, "relu6");
        return shifted ? expression_of(shifted, "y0 = x0 + p0", 3) : nullptr;
    }

    /// x where the value is erf(x / sqrt(2)) + 1.
    Ref erf_of_scaled(Ref value) {
        const double none = std::nan(""), root = std::sqrt(2.0);
        const Ref erf = expression_of(value, "y0 = x0 + p0", 1);
        const Ref scaled = erf ? expression_of(erf, "y0 = erf(x0)", none) : nullptr;
        if (!scaled) return nullptr;
        if (const Ref x = expression_of(scaled, "y0 = x0 / p0", root)) return x;
        return expression_of(scaled, "y0 = x0 * p0", 1 / root);
    }

    void become(BuiltOperator& op, std::string_view function, Ref x) {
        if (x->spec != op.outputs[0]->spec) return;
        op.type = "Activation";
        op.options = {{"activation", std::string(function)}};
        op.inputs = {x};
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
        const BuiltOperator* const product = sole_maker(op.inputs[0]);
        if (!product || !is_elementwise(*product, "prod")) return;
        for (const bool swapped : {false, true}) {
            const Ref x = product->inputs[swapped ? 1 : 0], f = product->inputs[swapped ? 0 : 1];
            if (sixth && relu6_of_shifted(f) == x) return become(op, "hardswish", x);
            if (half && erf_of_scaled(f) == x) return become(op, "gelu", x);
        }
    }

    /// A sum with a constant that is a bias.
    void merge_bias(BuiltOperator& op) {
        for (const bool swapped : {false, true}) {
            const Ref sum = op.inputs[swapped ? 1 : 0], bias = op.inputs[swapped ? 0 : 1];
            BuiltOperator* const view = sole_maker(sum);
            if (!bias->known || !view) continue;
            BuiltOperator* const linear =
                view->type == "Reshape" ? sole_maker(view->inputs[0]) : view;
            if (!linear || linear->type != "InnerProduct" || linear->options.boolean("bias"))
                continue;
            const std::int64_t columns = linear->outputs[0]->spec.shape[1];
            const bool fits = bias->spec.shape == Shape{columns} &&
                              bias->spec.dtype == sum->spec.dtype &&
                              sum->spec.shape[-1] == columns && sum->spec == op.outputs[0]->spec;
            if (!fits) continue;
            if (linear == view) {
                op.type = "InnerProduct";
                op.inputs = linear->inputs;
                op.params = {linear->params[0], bias};
                op.options = linear->options;
                op.options.set("bias", true);
            } else {
                linear->params.push_back(bias);
                linear->options.set("bias", true);
                op.type = "Reshape";
                op.options = view->options;
                op.inputs = view->inputs;
            }
            return;
        }
    }

    std::vector<BuiltOperator>& operators_;
    std::map<Ref, int> uses_;
    std::map<Ref, std::size_t> makers_;
};

}  // namespace

void merge_patterns(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs) {
    Patterns(operators, outputs).run();
}

}  // namespace dlprim::onnx
