// SPDX-License-Identifier: MIT
// The oracle of operators that are an expression.
#include "graph/oracle_loops.hpp"
#include "ops/expressions/binding.hpp"
#include "ops/expressions/interpreter.hpp"
#include "ops/expressions/operator.hpp"

#include <cmath>
#include <memory>
#include <optional>

namespace dlprim::expressions {

namespace {

/// An operator's expression, and the function that its option `activation` applies to the result.
class Evaluation {
  public:
    Evaluation(const Row& row, const Attrs& attrs, std::span<const HostArray> inputs)
        : inputs_(inputs),
          binding_(row, row.resolved(attrs), inputs[0].shape.numel()),
          wide_(inputs[0].dtype == DType::f64),
          whole_(inputs[0].shape),
          at_(static_cast<std::size_t>(binding_.operands()) + 2) {
        if (row.inputs.size() == 2) whole_ = broadcast(whole_, inputs[1].shape);
        parts_.assign(inputs.size(), whole_);
        for (std::size_t i = 0; i < inputs.size(); ++i) parts_[i] = inputs[i].shape;
        if (row.parameter && parts_[1] != Shape{1}) {
            Ints dims(static_cast<std::size_t>(whole_.rank()), 1);
            dims[1] = parts_[1][0];
            parts_[1] = Shape(dims);
        }
        value_ = interpreter(binding_.value());
        if (row.activated) activate_with(attrs.text("activation"));
    }

    const Shape& whole() const { return whole_; }
    /// Goes to an element. `dy` is its gradient.
    void seek(const std::vector<std::int64_t>& index, double dy = 0) {
        for (std::size_t i = 0; i < parts_.size(); ++i) at_[i] = inputs_[i].data[offset(i, index)];
        double& y = at_[static_cast<std::size_t>(binding_.y())];
        y = (*value_)({at_, binding_.scalars(), wide_});
        result_ = y;
        if (activation_) {
            double operands[] = {y, dy, 0};
            const Operands given{operands, activation_->scalars(), wide_};
            result_ = operands[2] = (*activated_)(given);
            dy = slope_ ? (*slope_)(given) : 0;
        }
        at_[static_cast<std::size_t>(binding_.dy())] = dy;
    }
    double result() const { return result_; }
    /// The element's share of an operand's gradient.
    double term(const Interpreter& gradient) const {
        return gradient({at_, binding_.scalars(), wide_});
    }
    std::optional<Interpreter> gradient(std::size_t operand) const {
        return interpreter(binding_.gradient(static_cast<int>(operand)));
    }
    /// Where the operand's element is that belongs to a position.
    std::size_t offset(std::size_t operand, const std::vector<std::int64_t>& index) const {
        return broadcast_offset(parts_[operand], index);
    }

  private:
    static std::optional<Interpreter> interpreter(const pointwise::ExprPtr& expr) {
        return expr ? std::optional<Interpreter>(*expr) : std::nullopt;
    }
    void activate_with(const std::string& name) {
        if (name == "identity") return;
        for (const Row& row : rows()) {
            if (row.type != "Activation") continue;
            const Attrs given = row.schema().complete(Attrs{{"activation", name}}, row.type);
            activation_ = std::make_unique<Binding>(row, row.resolved(given), 1);
        }
        activated_ = interpreter(activation_->value());
        slope_ = interpreter(activation_->gradient(0));
    }

    std::span<const HostArray> inputs_;
    Binding binding_;
    bool wide_;
    Shape whole_;
    std::vector<double> at_;
    std::vector<Shape> parts_;
    std::optional<Interpreter> value_, activated_, slope_;
    std::unique_ptr<Binding> activation_;
    double result_ = 0;
};

}  // namespace

void ExpressionOperator::oracle(OracleCall& call) const {
    Evaluation evaluation(row_, call.attrs, call.inputs);
    const bool sums = row_.reduced && call.attrs.text("reduce") != "none";
    HostArray& y =
        make_array(call.outputs, 0, sums ? Shape{1} : evaluation.whole(), call.inputs[0].dtype);
    for_each_position(evaluation.whole(), [&](const auto& index, std::size_t i) {
        evaluation.seek(index);
        y.data[sums ? 0 : i] += evaluation.result();
    });
}

void ExpressionOperator::oracle_backward(OracleBackwardCall& call) const {
    Evaluation evaluation(row_, call.attrs, call.inputs);
    const HostArray& dy = call.output_gradients[0];
    call.input_gradients.assign(call.inputs.size(), {});
    if (row_.parameter) call.terms.assign(call.inputs.size(), {});
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
        const HostArray& x = call.inputs[k];
        HostArray& dx = make_array(call.input_gradients, k, x.shape, x.dtype);
        const bool is_parameter = k >= row_.inputs.size();
        if (is_parameter) make_array(call.terms, k, x.shape, x.dtype);
        const std::optional<Interpreter> gradient = evaluation.gradient(k);
        if (!gradient) continue;
        for_each_position(evaluation.whole(), [&](const auto& index, std::size_t i) {
            evaluation.seek(index, dy.data[dy.data.size() == 1 ? 0 : i]);
            const double term = evaluation.term(*gradient);
            dx.data[evaluation.offset(k, index)] += term;
            if (is_parameter) call.terms[k].data[evaluation.offset(k, index)] += std::abs(term);
        });
    }
}

}  // namespace dlprim::expressions
