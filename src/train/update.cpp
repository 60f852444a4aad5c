// SPDX-License-Identifier: MIT
// add_update: SGD, Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019) as pointwise
// programs.
#include "train/update.hpp"

#include "base/text.hpp"

namespace dlprim {

namespace {

class UpdateBuilder {
  public:
    UpdateBuilder(Graph& graph, const SolverOptions& options) : graph_(graph), options_(options) {}

    void run() {
        if (graph_.block_elements() == 0) return;
        params_ = graph_.block("@params");
        gradients_ = graph_.block("@gradients");
        if (options_.accumulate > 1) accumulate();
        graph_.part = Part::update;
        clip();
        if (options_.kind == SolverOptions::Kind::sgd)
            sgd();
        else
            adam();
        if (options_.accumulate > 1) clear_accumulated();
        graph_.part = Part::forward;
    }

  private:
    ValueId state(const char* name) {
        Value value;
        value.name = name;
        value.spec = graph_.spec(params_);
        value.role = Role::state;
        return graph_.add_value(std::move(value));
    }

    void assign(ValueId target, ValueId source) { graph_.assignments.push_back({target, source}); }

    void accumulate() {
        graph_.part = Part::accumulate;
        accumulated_ = state("@accumulated");
        const double share = 1.0 / options_.accumulate;
        const ValueId sum = graph_.pointwise1("@solver/accumulate", "y0 = x0 + p0 * x1",
                                              {accumulated_, gradients_}, {share});
        assign(accumulated_, sum);
        gradients_ = sum;  // the state itself would be what it was before this step
    }

    void clear_accumulated() {
        const Ints dims = graph_.shape(accumulated_).to_vector();
        assign(accumulated_, graph_.add1("Pointwise", "@solver/clear", {},
                                         Attrs{{"code", std::string("y0 = 0")}, {"shape", dims}}));
    }

    /// Leaves in factor_ a [1] value that scales gradients, and in gradient_ the expression of a
    /// gradient element in terms of input x1 and, if there is one, the factor input `factor`.
    void clip() {
        if (options_.clip_norm <= 0) return;
        // PyTorch's clip_grad_norm_: min(1, limit / (norm + 1e-6)).
        const ValueId squares =
            graph_.pointwise1("@solver/norm", "y0 = sum[](x0 * x0)", {gradients_});
        const ValueId flat = graph_.reshape("@solver/norm_flat", squares, Shape{1});
        factor_ = graph_.pointwise1("@solver/clip", "y0 = min(1, p0 / (sqrt(x0) + 1e-6))", {flat},
                                    {options_.clip_norm});
    }

    /// "g = ...;" from x1, the factor (input number `factor` when there is one), decay by x0.
    std::string gradient(int factor, const std::string& decay) const {
        std::string g = factor_ == no_value ? "x1" : cat("x1 * x", factor);
        if (options_.clip_value > 0)
            g = cat("min(max(", g, ", -", options_.clip_value, "), ", options_.clip_value, ")");
        if (!decay.empty()) g += " + " + decay + " * x0";
        return "g = " + g + "; ";
    }

    void sgd() {
        const bool moving = options_.momentum != 0;
        std::vector<ValueId> inputs{params_, gradients_, graph_.scalar("@lr", DType::f32)};
        const ValueId velocity = moving ? state("@velocity") : no_value;
        if (moving) inputs.push_back(velocity);
        const int factor = static_cast<int>(inputs.size());
        if (factor_ != no_value) inputs.push_back(factor_);
        std::string code = gradient(factor, options_.weight_decay != 0 ? "p0" : "");
        if (moving)
            code += cat("v = p1 * x3 + g; y0 = x0 - x2 * ",
                        options_.nesterov ? "(g + p1 * v)" : "v", "; y1 = v");
        else
            code += "y0 = x0 - x2 * g";
        const auto made = graph_.pointwise("@solver/sgd", code, inputs,
                                           {options_.weight_decay, options_.momentum});
        assign(params_, made[0]);
        if (moving) assign(velocity, made[1]);
    }

    void adam() {
        const bool decoupled = options_.kind == SolverOptions::Kind::adamw;
        const ValueId m = state("@moment1"), v = state("@moment2");
        std::vector<ValueId> inputs{params_,
                                    gradients_,
                                    graph_.scalar("@lr", DType::f32),
                                    m,
                                    v,
                                    graph_.scalar("@correction1", DType::f32),
                                    graph_.scalar("@correction2", DType::f32)};
        if (factor_ != no_value) inputs.push_back(factor_);
        std::string code = gradient(7, options_.weight_decay != 0 && !decoupled ? "p0" : "");
        code += "m = p1 * x3 + (1 - p1) * g; v = p2 * x4 + (1 - p2) * g * g; ";
        code += decoupled && options_.weight_decay != 0 ? "w = x0 - x2 * p0 * x0; " : "w = x0; ";
        code += "y0 = w - x2 / x5 * m / (sqrt(v) / sqrt(x6) + p3); y1 = m; y2 = v";
        const auto made = graph_.pointwise(
            "@solver/adam", code, inputs,
            {options_.weight_decay, options_.beta1, options_.beta2, options_.epsilon});
        assign(params_, made[0]);
        assign(m, made[1]);
        assign(v, made[2]);
    }

    Graph& graph_;
    const SolverOptions& options_;
    ValueId params_ = no_value, gradients_ = no_value, accumulated_ = no_value, factor_ = no_value;
};

}  // namespace

void add_update(Graph& graph, const SolverOptions& options) {
    UpdateBuilder(graph, options).run();
}

}  // namespace dlprim
