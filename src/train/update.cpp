// SPDX-License-Identifier: MIT
// add_update: SGD, Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019) as pointwise
// programs.
#include "train/update.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dlprim {

namespace {

/// Bounds of a dynamic loss scale.
constexpr double least_scale = 0x1p-24, most_scale = 0x1p24;

class UpdateBuilder {
  public:
    UpdateBuilder(Graph& graph, const SolverOptions& options, ValueId loss_scale,
                  const WholeNet& whole)
        : graph_(graph), options_(options), loss_scale_(loss_scale), whole_(whole) {}

    void run() {
        if (graph_.block_elements() == 0) return;
        take_params();
        gradients_ = graph_.block("@gradients");
        if (options_.guard_loss && !graph_.losses.empty()) guard();
        if (options_.accumulate > 1) accumulate();
        own_gradients_ = options_.state_parts == 1
                             ? gradients_
                             : graph_.block_part("@gradients", slice_.begin, slice_.size());
        graph_.part = Part::update;
        if (loss_scale_ != no_value) unscale();
        clip();
        if (options_.kind == SolverOptions::Kind::sgd)
            sgd();
        else
            adam();
        if (options_.accumulate > 1) clear_accumulated();
        graph_.part = Part::forward;
    }

  private:
    void take_params() {
        if (options_.state_parts == 1) {
            params_ = graph_.block("@params");
            return;
        }
        slice_ = state_slice(graph_.block_elements(), options_.state_part, options_.state_parts);
        params_ = graph_.block_part("@params", slice_.begin, slice_.size());
    }

    ValueId state(const char* name) {
        const ValueId made = add_state(name, graph_.spec(params_));
        graph_.value(made).part_begin = graph_.value(params_).part_begin;
        return made;
    }
    ValueId add_state(const char* name, const TensorSpec& spec) {
        Value value;
        value.name = name;
        value.spec = spec;
        value.role = Role::state;
        return graph_.add_value(std::move(value));
    }

    void assign(ValueId target, ValueId source) { graph_.assignments.push_back({target, source}); }

    /// Sets good_, and finite_ initially, to 1 until a loss is not finite.
    void guard() {
        graph_.part =
            options_.accumulate > 1 ? Part::accumulate : Part::update;  // runs every batch
        std::vector<ValueId> inputs{add_state(loss_guard_name, {Shape{1}, DType::f32})};
        std::string worst = "x0";
        for (const auto& [loss, weight] : graph_.losses) {
            const ValueId bad =
                graph_.pointwise1("@solver/loss_overflow",
                                  "y0 = max[](select(isnan(x0) || isinf(x0), 1, 0))", {loss});
            worst = cat("max(", worst, ", x", inputs.size(), ")");
            inputs.push_back(graph_.reshape("@solver/loss_overflow_flat", bad, Shape{1}));
        }
        const ValueId before = inputs[0];
        const auto made = graph_.pointwise(
            "@solver/guard", cat("bad = ", worst, "; y0 = bad; y1 = 1 - bad"), std::move(inputs));
        assign(before, made[0]);
        good_ = finite_ = made[1];
    }

    void accumulate() {
        graph_.part = Part::accumulate;
        accumulated_ = state("@accumulated");
        const double share = 1.0 / options_.accumulate;
        std::vector<ValueId> inputs{accumulated_, gradients_};
        const char* code = "y0 = x0 + p0 * x1";
        if (good_ != no_value) {
            inputs.push_back(good_);
            code = "y0 = select(x2 > 0, x0 + p0 * x1, x0)";
        }
        const ValueId sum =
            graph_.pointwise1("@solver/accumulate", code, std::move(inputs), {share});
        assign(accumulated_, sum);
        sum_ = gradients_ = sum;  // the state still has the value from before this step
    }

    void clear_accumulated() {
        if (good_ != no_value) {
            assign(accumulated_,
                   graph_.pointwise1("@solver/clear", "y0 = select(x1 > 0, 0, x0)", {sum_, good_}));
            return;
        }
        const Ints dims = graph_.shape(accumulated_).to_vector();
        assign(accumulated_, graph_.add1("Pointwise", "@solver/clear", {},
                                         Attrs{{"code", std::string("y0 = 0")}, {"shape", dims}}));
    }

    /// [1]: above 0 where a gradient is not finite.
    ValueId overflow() {
        if (whole_.has_more) return graph_.scalar("@overflow", DType::f32);
        const ValueId bad = graph_.pointwise1("@solver/overflow", find_overflow, {gradients_});
        return graph_.reshape("@solver/overflow_flat", bad, Shape{1});
    }

    /// [1]: the sum of the squares of all gradients.
    ValueId squares() {
        if (whole_.has_more) return graph_.scalar("@squares", DType::f32);
        const std::int64_t grain = Graph::block_grain;
        const ValueId rows = graph_.reshape("@solver/norm_rows", gradients_,
                                            Shape{graph_.block_elements() / grain, grain});
        const ValueId pieces = graph_.pointwise1("@solver/norm_pieces", squares_of_pieces, {rows});
        const ValueId sum = graph_.pointwise1("@solver/norm", sum_of_pieces, {pieces});
        return graph_.reshape("@solver/norm_flat", sum, Shape{1});
    }

    /// Sets finite_ to 1 where all gradients are finite, and factor_ to the inverse of the loss
    /// scale. Updates the scale, the number of consecutive good updates and the number of all good
    /// updates.
    void unscale() {
        const TensorSpec one{Shape{1}, DType::f32};
        const ValueId in_row = add_state("@good_updates", one), all = add_state("@updates", one);
        const auto log_of = [](double beta) { return beta > 0 ? std::log(beta) : -1e3; };
        std::vector<ValueId> inputs{overflow(), loss_scale_, in_row, all};
        std::string code =
            "bad = x0 > 0; full = x2 + 1 >= p0; t = select(bad, x3, x3 + 1); "
            "scale = select(bad, max(x1 * 0.5, min(x1, p1)), "
            "select(full, min(x1 * 2, max(x1, p2)), x1)); "
            "row = select(bad || full, 0, x2 + 1); fine = select(bad, 0, 1); ";
        if (good_ == no_value) {
            code += "y0 = scale; y1 = row; y2 = t; y3 = fine; ";
        } else {
            code +=
                "good = x4 > 0; y0 = select(good, scale, x1); y1 = select(good, row, x2); "
                "y2 = select(good, t, x3); y3 = fine * x4; ";
            inputs.push_back(good_);
        }
        code += "y4 = 1 / x1; y5 = 0 - expm1(t * p3); y6 = 0 - expm1(t * p4)";
        const auto made =
            graph_.pointwise("@solver/loss_scale", code, std::move(inputs),
                             {static_cast<double>(options_.loss_scale_steps), least_scale,
                              most_scale, log_of(options_.beta1), log_of(options_.beta2)});
        assign(loss_scale_, made[0]);
        assign(in_row, made[1]);
        assign(all, made[2]);
        finite_ = made[3];
        factor_ = made[4];
        corrections_ = {made[5], made[6]};
    }

    /// Sets factor_ to a [1] value by which gradients are multiplied.
    void clip() {
        if (options_.clip_norm <= 0) return;
        // PyTorch's clip_grad_norm_: min(1, limit / (norm + 1e-6)).
        const ValueId flat = squares();
        if (factor_ == no_value)
            factor_ = graph_.pointwise1("@solver/clip", "y0 = min(1, p0 / (sqrt(x0) + 1e-6))",
                                        {flat}, {options_.clip_norm});
        else
            factor_ =
                graph_.pointwise1("@solver/clip", "y0 = x1 * min(1, p0 / (x1 * sqrt(x0) + 1e-6))",
                                  {flat, factor_}, {options_.clip_norm});
    }

    /// Code "g = ...;" for the gradient: x1, times the factor if there is one, which is appended to
    /// `inputs`, with weight decay by x0.
    std::string gradient(std::vector<ValueId>& inputs, const std::string& decay) const {
        std::string g = "x1";
        if (factor_ != no_value) {
            g = cat("x1 * x", inputs.size());
            inputs.push_back(factor_);
        }
        if (options_.clip_value > 0)
            g = cat("min(max(", g, ", -", exact(options_.clip_value), "), ",
                    exact(options_.clip_value), ")");
        if (!decay.empty()) g += " + " + decay + " * x0";
        return "g = " + g + "; ";
    }

    /// Adds the average of the parameters to the changes, of which theirs is the first: the launch
    /// that makes new parameters averages them, too.
    void add_average(std::string& code, std::vector<ValueId>& inputs,
                     std::vector<std::pair<ValueId, std::string>>& changes) {
        const ValueId average = state(average_name);
        const std::string old = cat("x", inputs.size()), share = cat("x", inputs.size() + 1);
        inputs.push_back(average);
        inputs.push_back(graph_.scalar("@average_share", DType::f32));
        code += cat("fresh = ", changes[0].second, "; ");
        changes[0].second = "fresh";
        changes.emplace_back(average, cat(old, " + ", share, " * (fresh - ", old, ")"));
    }

    /// Adds assignments of the program's outputs. Each output is the expression of its target's new
    /// value. Where gradients are not finite, targets keep their old values, which must be among
    /// `inputs`.
    void update(const char* name, std::string code, std::vector<ValueId> inputs,
                std::vector<std::pair<ValueId, std::string>> changes,
                const std::vector<double>& scalars) {
        if (options_.average > 0) add_average(code, inputs, changes);
        const std::size_t finite = inputs.size();
        if (finite_ != no_value) inputs.push_back(finite_);
        for (std::size_t k = 0; k < changes.size(); ++k) {
            const auto& [target, expression] = changes[k];
            const auto old = std::find(inputs.begin(), inputs.end(), target) - inputs.begin();
            code += finite_ == no_value
                        ? cat("y", k, " = ", expression)
                        : cat("y", k, " = select(x", finite, " > 0, ", expression, ", x", old, ")");
            if (k + 1 < changes.size()) code += "; ";
        }
        const auto made = graph_.pointwise(name, code, std::move(inputs), scalars);
        for (std::size_t k = 0; k < changes.size(); ++k) assign(changes[k].first, made[k]);
    }

    void sgd() {
        const bool moving = options_.momentum != 0;
        std::vector<ValueId> inputs{params_, own_gradients_, graph_.scalar("@lr", DType::f32)};
        const ValueId velocity = moving ? state("@velocity") : no_value;
        if (moving) inputs.push_back(velocity);
        std::string code = gradient(inputs, options_.weight_decay != 0 ? "p0" : "");
        std::vector<std::pair<ValueId, std::string>> changes{{params_, "x0 - x2 * g"}};
        if (moving) {
            code += "v = p1 * x3 + g; ";
            changes = {{params_, cat("x0 - x2 * ", options_.nesterov ? "(g + p1 * v)" : "v")},
                       {velocity, "v"}};
        }
        update("@solver/sgd", code, std::move(inputs), changes,
               {options_.weight_decay, options_.momentum});
    }

    void adam() {
        const bool decoupled = options_.kind == SolverOptions::Kind::adamw;
        const ValueId m = state("@moment1"), v = state("@moment2");
        if (corrections_.empty())
            corrections_ = {graph_.scalar("@correction1", DType::f32),
                            graph_.scalar("@correction2", DType::f32)};
        std::vector<ValueId> inputs{
            params_,         own_gradients_, graph_.scalar("@lr", DType::f32), m, v,
            corrections_[0], corrections_[1]};
        std::string code = gradient(inputs, options_.weight_decay != 0 && !decoupled ? "p0" : "");
        code += "m = p1 * x3 + (1 - p1) * g; v = p2 * x4 + (1 - p2) * g * g; ";
        code += decoupled && options_.weight_decay != 0 ? "w = x0 - x2 * p0 * x0; " : "w = x0; ";
        update("@solver/adam", code, std::move(inputs),
               {{params_, "w - x2 / x5 * m / (sqrt(v) / sqrt(x6) + p3)"}, {m, "m"}, {v, "v"}},
               {options_.weight_decay, options_.beta1, options_.beta2, options_.epsilon});
    }

    Graph& graph_;
    const SolverOptions& options_;
    const ValueId loss_scale_;
    const WholeNet& whole_;
    ValueId params_ = no_value, gradients_ = no_value, accumulated_ = no_value, factor_ = no_value;
    StateSlice slice_;                  ///< with several parts
    ValueId own_gradients_ = no_value;  ///< of the parameters that are updated
    ValueId sum_ = no_value;            ///< accumulated gradients, including this batch's
    ValueId good_ = no_value;           ///< [1]: 1 or 0; with a guard
    ValueId finite_ = no_value;         ///< [1]: 1 or 0; with a guard or a loss scale
    std::vector<ValueId> corrections_;  ///< the bias corrections of both moments
};

}  // namespace

StateSlice state_slice(std::int64_t block_elements, int part, int parts) {
    const std::int64_t grain = Graph::block_grain, grains = block_elements / grain;
    require(grains >= parts, "the network has too few parameters to cut the solver's state into ",
            parts, " parts: keep it whole (the configuration's \"states\")");
    return {grains * part / parts * grain, grains * (part + 1) / parts * grain};
}

ValueId add_loss_scale(Graph& graph, const SolverOptions& options, const WholeNet& whole) {
    const bool any =
        whole.has_fp16 || std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
            return !node.removed && node.precision == Precision::fp16;
        });
    if (!any || options.loss_scale == 0) return no_value;
    Value value;
    value.name = loss_scale_name;
    value.spec = {Shape{1}, DType::f32};
    value.role = Role::state;
    return graph.add_value(std::move(value));
}

void add_update(Graph& graph, const SolverOptions& options, ValueId loss_scale,
                const WholeNet& whole) {
    UpdateBuilder(graph, options, loss_scale, whole).run();
}

SolverPasses solver_passes(const SolverOptions& options, bool scales_losses,
                           const WholeNet& whole) {
    SolverPasses passes;
    if (scales_losses)
        passes.add_loss_scale = [options, whole](Graph& graph) {
            return add_loss_scale(graph, options, whole);
        };
    passes.add_update = [options, whole](Graph& graph, ValueId loss_scale) {
        add_update(graph, options, loss_scale, whole);
    };
    return passes;
}

}  // namespace dlprim
