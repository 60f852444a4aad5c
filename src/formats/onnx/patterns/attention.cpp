// SPDX-License-Identifier: MIT
// Attention that exporters write in pieces; see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

Shape with_last_two_swapped(const Shape& shape) {
    Ints sizes = shape.to_vector();
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    return Shape(sizes);
}

/// What stands between q k^T and the product with v.
struct Scores {
    Ref mask = nullptr;
    double scale = 1, softcap = 0;
    bool guarded = false;  ///< NaN after the softmax becomes 0
};

class AttentionPattern {
  public:
    explicit AttentionPattern(Finder& finder) : finder_(finder) {}

    void run() {
        for (BuiltOperator& op : finder_.operators())
            if (op.type == "MatMul" && !finder_.is_dead(op)) merge(op);
    }

  private:
    static bool is_plain(const BuiltOperator& op) {
        return !boolean_of(op, "transpose_a") && !boolean_of(op, "bias");
    }
    static double alpha(const BuiltOperator& op) {
        return op.options.has("alpha") ? op.options.number("alpha") : 1;
    }

    /// The number by which the value's maker multiplies its input, for one reader; 0 for others.
    double factor_of(Ref value) {
        const BuiltOperator* const op = finder_.sole_maker(value);
        if (!op) return 0;
        if (const auto factor = scalar_of(*op, "y0 = x0 * p0")) return *factor;
        const auto divisor = scalar_of(*op, "y0 = x0 / p0");
        return divisor && *divisor != 0 ? 1 / *divisor : 0;
    }

    /// Leaves out products with numbers, which `scale` takes in.
    Ref without_factors(Ref value, double& scale) {
        for (double factor; (factor = factor_of(value)) != 0; scale *= factor)
            value = finder_.maker(value)->inputs[0];
        return value;
    }

    /// The scores behind "isnan(s) ? 0 : s"; the value itself where it is something else.
    Ref without_guard(Ref value, bool& guarded) {
        const BuiltOperator* const choice = finder_.sole_maker(value);
        if (!choice || !is_code(*choice, "y0 = x0 ? x1 : x2")) return value;
        const Ref scores = choice->inputs[2];
        const BuiltOperator* const test = finder_.sole_maker(choice->inputs[0]);
        if (!test || !is_code(*test, "y0 = isnan(x0)") || test->inputs[0] != scores ||
            uniform(choice->inputs[1]) != 0.0 || finder_.uses(scores) != 2)
            return value;
        guarded = true;
        return scores;
    }

    /// The mask of booleans that a mask of 0 and -inf stands for.
    Ref boolean_mask(Ref mask) {
        const BuiltOperator* const choice = finder_.maker(mask);
        if (!choice || !is_code(*choice, "y0 = x0 ? x1 : x2")) return nullptr;
        const Ref condition = choice->inputs[0];
        const bool fits =
            condition->spec.dtype == DType::boolean && condition->spec.shape == mask->spec.shape &&
            uniform(choice->inputs[1]) == 0.0 && uniform(choice->inputs[2]) == -HUGE_VAL;
        return fits ? condition : nullptr;
    }

    /// The scores that a choice leaves where a condition is true, with -inf elsewhere; the
    /// value itself where it is something else. The lowest float would not do: a row of it alone is
    /// the mean of all values.
    Ref without_choice(Ref value, Scores& scores) {
        const BuiltOperator* const choice = finder_.sole_maker(value);
        if (!choice || !is_code(*choice, "y0 = x0 ? x1 : x2")) return value;
        const std::optional<double> other = uniform(choice->inputs[2]);
        if (choice->inputs[0]->spec.dtype != DType::boolean || !other ||
            !(*other < 0 && std::isinf(*other)))
            return value;
        scores.mask = choice->inputs[0];
        return choice->inputs[1];
    }

    /// The product in front of a softmax: what is added to it, or chooses of it, is a mask.
    BuiltOperator* product_of(Ref value, Scores& scores) {
        const Shape shape = value->spec.shape;
        if (const Ref chosen = without_choice(value, scores); scores.mask)
            return scaled_product(chosen, shape, scores);
        if (const BuiltOperator* const sum = finder_.sole_maker(value);
            sum && is_elementwise(*sum, "sum")) {
            for (const bool swapped : {false, true}) {
                Scores found = scores;
                found.mask = sum->inputs[swapped ? 0 : 1];
                BuiltOperator* const product =
                    scaled_product(sum->inputs[swapped ? 1 : 0], shape, found);
                if (!product) continue;
                scores = found;
                return product;
            }
            return nullptr;
        }
        return scaled_product(value, shape, scores);
    }

    /// x of c tanh(f x), which is a soft cap c of scores with a further factor f c; the value
    /// itself where it is something else.
    Ref without_softcap(Ref value, Scores& scores) {
        double cap = 1;
        const Ref bent = without_factors(value, cap);
        const BuiltOperator* const tanh = finder_.sole_maker(bent, "Activation");
        if (!tanh || !has_text(*tanh, "activation", "tanh") || !(cap > 0)) return value;
        scores.softcap = cap;
        scores.scale *= cap;
        return tanh->inputs[0];
    }

    BuiltOperator* scaled_product(Ref value, const Shape& shape, Scores& scores) {
        value = without_softcap(value, scores);
        value = without_factors(value, scores.scale);
        BuiltOperator* const product = finder_.sole_maker(value, "MatMul");
        return product && is_plain(*product) && value->spec.shape == shape ? product : nullptr;
    }

    /// The tensor whose last two dimensions are swapped in this one, whose maker may be changed for
    /// it; null where there is none.
    Ref transposed(Ref value, double& scale) {
        BuiltOperator* const op = finder_.sole_maker(value);
        if (!op || value->spec.shape.rank() < 2) return nullptr;
        const Shape shape = with_last_two_swapped(value->spec.shape);
        if (op->type == "Reshape") {
            const BuiltOperator* const inner = finder_.sole_maker(op->inputs[0], "Transpose");
            if (!inner || !swaps_last_two(*inner)) return nullptr;
            const BuiltOperator* const outer = finder_.sole_maker(inner->inputs[0], "Reshape");
            return outer && outer->inputs[0]->spec.shape == shape ? outer->inputs[0] : nullptr;
        }
        if (op->type != "Transpose") return nullptr;
        if (swaps_last_two(*op)) return without_factors(op->inputs[0], scale);
        Ints order = op->options.ints("dims");
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        op->options.set("dims", order);
        return finder_.replace_output(*op, shape);
    }

    static bool swaps_last_two(const BuiltOperator& op) {
        Ints order = op.options.ints("dims");
        if (order.size() < 2) return false;
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        return std::is_sorted(order.begin(), order.end());
    }

    /// op is softmax(...) v.
    void merge(BuiltOperator& op) {
        if (!is_plain(op) || boolean_of(op, "transpose_b") || alpha(op) != 1) return;
        Scores scores;
        const Ref weights = without_guard(op.inputs[0], scores.guarded), v = op.inputs[1];
        const BuiltOperator* const softmax =
            scores.guarded ? finder_.maker(weights) : finder_.sole_maker(weights);
        if (!softmax || softmax->type != "Softmax" || boolean_of(*softmax, "log") ||
            softmax->options.integer("axis") != weights->spec.shape.rank() - 1)
            return;
        BuiltOperator* const product = product_of(softmax->inputs[0], scores);
        if (!product || !settle_mask(scores, op)) return;
        double scale = scores.scale * alpha(*product);
        const Ref q = without_factors(product->inputs[0], scale);
        Ref k = without_factors(product->inputs[1], scale);
        if (!std::isfinite(scale) || scale == 0 || q->spec.shape.rank() < 2) return;
        if (!boolean_of(*product, "transpose_b")) k = transposed(k, scale);
        if (!k) return;
        std::vector<Ref> inputs{q, k, v};
        if (scores.mask) inputs.push_back(scores.mask);
        finder_.rewrite(op, "Attention", {{"scale", scale}, {"softcap", scores.softcap}}, inputs);
    }

    /// A guard only matters for rows that the mask excludes completely, which Attention makes 0
    /// where the mask is of booleans.
    bool settle_mask(Scores& scores, const BuiltOperator& op) {
        if (!scores.mask) return true;
        if (scores.guarded && scores.mask->spec.dtype != DType::boolean)
            scores.mask = boolean_mask(scores.mask);
        return scores.mask && (scores.mask->spec.dtype == DType::boolean ||
                               scores.mask->spec.dtype == op.outputs[0]->spec.dtype);
    }

    Finder& finder_;
};

}  // namespace

void merge_attention(Finder& finder) {
    AttentionPattern(finder).run();
}

}  // namespace dlprim::onnx
