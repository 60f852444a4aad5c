// SPDX-License-Identifier: MIT
// differentiate: adds the nodes of the backward pass (reverse-mode automatic differentiation).
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/gradient_pieces.hpp"
#include "graph/passes/passes.hpp"

#include <memory>

namespace dlprim {

namespace {

class Differentiator {
  public:
    Differentiator(Graph& graph, const DifferentiateOptions& options)
        : graph_(graph), options_(options), net_precision_(graph.precision) {}

    void run() {
        mark_dependent();
        graph_.part = Part::backward;
        const auto last = static_cast<NodeId>(graph_.nodes.size()) - 1;
        seed();
        for (NodeId node = last; node >= 0; --node) visit(node);
        for (std::size_t i = 0; i < dependent_.size(); ++i) {
            const auto id = static_cast<ValueId>(i);
            const bool wanted = dependent_[i] && graph_.value(id).role != Role::intermediate;
            if (wanted) graph_.gradients[id] = gradient_or_zero(id);
        }
        graph_.part = Part::forward;
        graph_.sort();
    }

  private:
    /// Marks the values that depend on something whose gradient is wanted.
    void mark_dependent() {
        dependent_.assign(graph_.values.size(), 0);
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const Value& value = graph_.values[i];
            if (value.role == Role::parameter) dependent_[i] = value.trainable;
            if (value.role == Role::input && options_.input_gradients)
                dependent_[i] = is_float(value.spec.dtype);
        }
        for (const ValueId id : options_.unwanted) dependent_[static_cast<std::size_t>(id)] = 0;
        for (const Node& node : graph_.nodes) {
            bool any = false;
            for (ValueId input : node.inputs)
                any = any || dependent_[static_cast<std::size_t>(input)];
            for (ValueId output : node.outputs)
                dependent_[static_cast<std::size_t>(output)] =
                    any && is_float(graph_.spec(output).dtype);
        }
        pieces_.resize(graph_.values.size());
    }

    void seed() {
        for (const auto& [id, name] : graph_.outputs) {
            if (!is_float(graph_.spec(id).dtype)) continue;
            const auto loss = graph_.losses.find(id);
            if (options_.seeds_are_inputs || options_.seeded.count(name) > 0)
                add(id, fed("@grad/" + name, id));
            if (!options_.seeds_are_inputs && loss != graph_.losses.end()) {
                const Shape& shape = graph_.shape(id);
                const std::vector<float> weights(static_cast<std::size_t>(shape.numel()),
                                                 static_cast<float>(loss->second));
                ValueId dy = graph_.constant(cat("@weight/", name), shape, weights);
                if (options_.loss_scale != no_value)
                    dy = graph_.pointwise1(cat("@scaled/", name), "y0 = x0 * x1",
                                           {dy, options_.loss_scale});
                const DType dtype = graph_.spec(id).dtype;
                if (dtype != DType::f32)
                    dy = graph_.add1("Cast", cat("@typed/", name), {dy},
                                     Attrs{{"dtype", std::string(name_of(dtype))}});
                add(id, dy);
            }
        }
        const std::vector<ValueId> inputs = graph_.inputs;
        for (const ValueId id : inputs)
            if (options_.continued.count(graph_.value(id).name) > 0)
                add(id, fed("@later/" + graph_.value(id).name, id));
    }

    /// A gradient of `value` that is fed as an input of the graph.
    ValueId fed(const std::string& name, ValueId value) {
        Value gradient;
        gradient.name = name;
        gradient.spec = graph_.spec(value);
        gradient.role = Role::input;
        const ValueId id = graph_.add_value(std::move(gradient));
        graph_.inputs.push_back(id);
        return id;
    }

    void add(ValueId value, ValueId gradient, const GradientPart& part = {}) {
        if (dependent_[static_cast<std::size_t>(value)])
            pieces_[static_cast<std::size_t>(value)].add(gradient, part);
    }

    /// Returns the sum of all gradients that flowed back into a value, or no_value.
    ValueId gradient(ValueId id) {
        GradientPieces& pieces = pieces_[static_cast<std::size_t>(id)];
        return pieces.empty() ? no_value : pieces.sum(graph_, id);
    }

    ValueId gradient_or_zero(ValueId id) {
        const ValueId found = gradient(id);
        if (found != no_value) return found;
        const DType dtype = is_float(graph_.spec(id).dtype) ? graph_.spec(id).dtype : DType::f32;
        return graph_.add1("Pointwise", graph_.value(id).name + "/no_gradient", {},
                           Attrs{{"code", std::string("y0 = 0")},
                                 {"shape", Ints(graph_.shape(id).to_vector())},
                                 {"dtypes", Strings{std::string(name_of(dtype))}}});
    }

    void visit(NodeId index) {
        const Node node = graph_.nodes[static_cast<std::size_t>(index)];
        std::vector<ValueId> output_gradients;
        bool reached = false;
        for (ValueId output : node.outputs) {
            output_gradients.push_back(gradient(output));
            reached = reached || output_gradients.back() != no_value;
        }
        const std::size_t count = node.inputs.size();
        const auto wanted = std::make_unique<bool[]>(count);
        bool any = false;
        for (std::size_t i = 0; i < count; ++i) {
            wanted[i] = dependent_[static_cast<std::size_t>(node.inputs[i])] != 0;
            any = any || wanted[i];
        }
        if (!reached || !any) return;

        GradientContext context{graph_,
                                node,
                                output_gradients,
                                {wanted.get(), count},
                                std::vector<ValueId>(count, no_value),
                                std::vector<GradientPart>(count)};
        graph_.precision = node.precision;
        node.op->gradient(context);
        graph_.precision = net_precision_;
        for (std::size_t i = 0; i < count; ++i) {
            const ValueId dx = context.input_gradients[i];
            if (!wanted[i] || dx == no_value) continue;
            check_shape(node, i, dx, context.parts[i]);
            pieces_.resize(std::max(pieces_.size(), graph_.values.size()));
            add(node.inputs[i], dx, context.parts[i]);
        }
    }

    /// An operator's mistake in its gradient rule is found here, not in a kernel.
    void check_shape(const Node& node, std::size_t i, ValueId dx, const GradientPart& part) const {
        const Shape& x = graph_.shape(node.inputs[i]);
        const Shape& given = graph_.shape(dx);
        const bool whole = part.dim == GradientPart::whole;
        const bool fits = whole
                              ? given == x
                              : given.rank() == x.rank() && part.dim < x.rank() &&
                                    given == x.with(part.dim, given[part.dim]) && part.begin >= 0 &&
                                    part.begin + given[part.dim] <= x[part.dim];
        require(fits, "[", node.type(), " '", node.name, "'] made a gradient of shape ", given,
                " for ", whole ? "" : "a part of ", "input ", i, " of shape ", x);
    }

    Graph& graph_;
    const DifferentiateOptions& options_;
    const Precision net_precision_;
    std::vector<char> dependent_;         ///< by ValueId of the forward graph
    std::vector<GradientPieces> pieces_;  ///< what flowed back into each value
};

}  // namespace

void differentiate(Graph& graph, const DifferentiateOptions& options) {
    Differentiator(graph, options).run();
}

}  // namespace dlprim
