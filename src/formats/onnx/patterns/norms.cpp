// SPDX-License-Identifier: MIT
// LayerNorm that exporters write in pieces; see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include <array>
#include <utility>

namespace dlprim::onnx {

namespace {

/// A value and the trailing dimensions over which it is normalised, for one row its statistics.
struct Deviation {
    Ref x = nullptr, mean = nullptr;
    Shape rows;
    double eps = 0;
};

class Norms {
  public:
    explicit Norms(Finder& finder) : finder_(finder) {}

    void run() {
        for (BuiltOperator& op : finder_.operators()) {
            if (finder_.is_dead(op)) continue;
            if (is_code(op, "y0 = x0 / x1")) merge_quotient(op);
            if (is_elementwise(op, "prod")) merge_product(op);
            if (is_elementwise(op, "sum")) merge_sum(op);
        }
    }

  private:
    /// The value whose mean over trailing dimensions, which stay with size 1, this is; nothing
    /// where it is no such mean.
    std::pair<Ref, Shape> mean_of(Ref value) {
        const BuiltOperator* const op = finder_.maker(value);
        if (!op || op->type != "Reduction" || !has_text(*op, "method", "mean") ||
            !boolean_of(*op, "keep_dim"))
            return {};
        const Ref x = op->inputs[0];
        const Ints dims = op->options.ints("dims");
        const int rank = x->spec.shape.rank();
        Ints rows;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            const int axis = rank - static_cast<int>(dims.size() - i);
            if (dims[i] != axis) return {};
            rows.push_back(x->spec.shape[axis]);
        }
        return {x, Shape(rows)};
    }

    /// Where the value is x - mean.
    Deviation difference(Ref value) {
        const BuiltOperator* const op = finder_.maker(value);
        if (!op || !is_code(*op, "y0 = x0 - x1")) return {};
        const auto [x, rows] = mean_of(op->inputs[1]);
        if (!x || x != op->inputs[0]) return {};
        return {x, op->inputs[1], rows, 0};
    }

    /// Where the value is sqrt(variance + eps), the variance that of some x.
    Deviation deviation(Ref value) {
        const BuiltOperator* const root = finder_.sole_maker(value);
        if (!root || !is_code(*root, "y0 = sqrt(x0)")) return {};
        const BuiltOperator* const sum = finder_.sole_maker(root->inputs[0]);
        const auto eps = sum ? scalar_of(*sum, "y0 = x0 + p0") : std::nullopt;
        if (!eps || *eps < 0) return {};
        const auto mean = mean_of(sum->inputs[0]);
        const BuiltOperator* const square = mean.first ? finder_.maker(mean.first) : nullptr;
        if (!square) return {};
        const bool is_square =
            is_code(*square, "y0 = x0 * x0") ||
            (is_elementwise(*square, "prod") && square->inputs[0] == square->inputs[1]);
        Deviation found = is_square ? difference(square->inputs[0]) : Deviation();
        if (!found.x || found.rows != mean.second) return {};
        found.eps = *eps;
        return found;
    }

    /// Where the value is 1 / sqrt(variance + eps).
    Deviation inverse_deviation(Ref value) {
        const BuiltOperator* const op = finder_.sole_maker(value);
        if (!op) return {};
        const bool is_inverse =
            is_code(*op, "y0 = 1 / x0") || is_expression(*op, "y0 = p0 / x0", 1);
        return is_inverse ? deviation(op->inputs[0]) : Deviation();
    }

    /// `params`: none, a weight, or a weight and a bias.
    void become(BuiltOperator& op, const Deviation& of, const std::vector<Ref>& params) {
        if (!of.x || of.x->spec != op.outputs[0]->spec || !is_float(of.x->spec.dtype)) return;
        finder_.rewrite(op, "LayerNorm",
                        {{"normalized_shape", Ints(of.rows.to_vector())},
                         {"eps", of.eps},
                         {"elementwise_affine", !params.empty()},
                         {"bias", params.size() == 2}},
                        {of.x}, params);
    }

    /// (x - mean) / sqrt(variance + eps).
    void merge_quotient(BuiltOperator& op) {
        const Deviation of = deviation(op.inputs[1]);
        if (of.x && difference(op.inputs[0]).x == of.x) become(op, of, {});
    }

    /// (x - mean) times 1 / sqrt(variance + eps), or LayerNorm times a weight.
    void merge_product(BuiltOperator& op) {
        for (const bool swapped : {false, true}) {
            const Ref value = op.inputs[swapped ? 1 : 0], factor = op.inputs[swapped ? 0 : 1];
            const Deviation of = inverse_deviation(factor);
            if (of.x && difference(value).x == of.x) return become(op, of, {});
            if (merge_parameter(op, value, factor, 0)) return;
        }
    }

    /// Adds a weight or a bias to a LayerNorm that has `count` parameters.
    bool merge_parameter(BuiltOperator& op, Ref value, Ref param, std::size_t count) {
        const BuiltOperator* const norm = finder_.sole_maker(value, "LayerNorm");
        if (!norm || norm->params.size() != count || !param->known) return false;
        const Shape rows(norm->options.ints("normalized_shape"));
        const bool fits = param->spec.shape == rows && param->spec.dtype == value->spec.dtype;
        if (!fits || value->spec != op.outputs[0]->spec) return false;
        std::vector<Ref> params = norm->params;
        params.push_back(param);
        become(op, {norm->inputs[0], nullptr, rows, norm->options.number("eps")}, params);
        return true;
    }

    /// LayerNorm plus a bias, or TensorFlow's form.
    void merge_sum(BuiltOperator& op) {
        for (const bool swapped : {false, true}) {
            const Ref first = op.inputs[swapped ? 1 : 0], second = op.inputs[swapped ? 0 : 1];
            if (merge_parameter(op, first, second, 1) || merge_scaled(op, first, second)) return;
        }
    }

    /// The operands of a product that one operator reads.
    std::array<Ref, 2> factors(Ref value) {
        const BuiltOperator* const op = finder_.sole_maker(value);
        if (!op || !is_elementwise(*op, "prod")) return {};
        return {op->inputs[0], op->inputs[1]};
    }

    /// x * s + (bias - mean * s), where s = weight / sqrt(variance + eps).
    bool merge_scaled(BuiltOperator& op, Ref product, Ref rest) {
        const BuiltOperator* const shift = finder_.sole_maker(rest);
        if (!shift || !is_code(*shift, "y0 = x0 - x1") || !shift->inputs[0]->known) return false;
        const std::array<Ref, 2> scaled = factors(product), shifted = factors(shift->inputs[1]);
        if (!scaled[0] || !shifted[0]) return false;
        for (const int x : {0, 1}) {
            const Ref s = scaled[1 - x];
            const int mean = shifted[0] == s ? 1 : 0;
            if (shifted[1 - mean] != s || finder_.uses(s) != 2) continue;
            const BuiltOperator* const scale = finder_.maker(s);
            if (!scale || !is_elementwise(*scale, "prod")) continue;
            for (const int weight : {0, 1}) {
                const Ref gamma = scale->inputs[weight], beta = shift->inputs[0];
                const Deviation of = inverse_deviation(scale->inputs[1 - weight]);
                if (of.x != scaled[x] || of.mean != shifted[mean] || !gamma->known) continue;
                if (gamma->spec.shape != of.rows || beta->spec.shape != of.rows) continue;
                become(op, of, {gamma, beta});
                return true;
            }
        }
        return false;
    }

    Finder& finder_;
};

}  // namespace

void merge_norms(Finder& finder) {
    Norms(finder).run();
}

}  // namespace dlprim::onnx
