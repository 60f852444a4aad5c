// SPDX-License-Identifier: MIT
// The gradient rule of Pointwise: programs of derivatives.
//
// The gradient of input i is the sum over outputs k of dy_k * (d y_k / d f_k) * (d f_k / d x_i).
// Here f_k is the expression that output k stores or reduces. The result is summed over the
// dimensions along which x_i is broadcast. Inputs whose sums run over the same axes share one node.
#include "base/text.hpp"
#include "ops/pointwise/options.hpp"

#include <algorithm>
#include <map>

namespace dlprim::pointwise {
namespace {

ExprPtr times(const ExprPtr& a, const ExprPtr& b) {
    return call("mul", {a, b});
}

/// The tensors that gradient programs read, numbered as in their expressions.
struct Sources {
    std::vector<ValueId> values;
    ExprPtr add(ValueId value) {
        values.push_back(value);
        return input(static_cast<int>(values.size()) - 1);
    }
};

class Rule {
  public:
    Rule(const Options& options, GradientContext& context)
        : options_(options), context_(context), graph_(context.graph), node_(context.node) {
        std::vector<Shape> shapes;
        for (ValueId id : node_.inputs) {
            sources_.values.push_back(id);
            shapes.push_back(graph_.shape(id));
        }
        whole_ = broadcast_shape(shapes, options.shape);
    }

    void run() {
        for (std::size_t k = 0; k < options_.program.outputs.size(); ++k)
            if (k < context_.output_gradients.size() && context_.output_gradients[k] != no_value)
                slopes_.emplace_back(k, slope(k));
        // Inputs, grouped by the axes over which their gradients are summed.
        std::map<Ints, std::vector<std::size_t>> groups;
        std::vector<ExprPtr> gradients(node_.inputs.size());
        for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
            if (i >= context_.wanted.size() || !context_.wanted[i]) continue;
            if (!is_float(graph_.spec(node_.inputs[i]).dtype)) continue;
            for (const auto& [k, dy] : slopes_) {
                const ExprPtr d =
                    differentiate(options_.program.outputs[k].value, static_cast<int>(i));
                if (!d) continue;
                const ExprPtr term = simplify(times(dy, d));
                gradients[i] = gradients[i] ? call("add", {gradients[i], term}) : term;
            }
            if (gradients[i]) groups[axes_of(i)].push_back(i);
        }
        // Elementwise gradients share a launch with one set of sums.
        if (groups.size() == 2 && groups.begin()->first.empty()) {
            auto sums = std::next(groups.begin());
            auto& joined = groups[Ints{}];
            joined.insert(joined.end(), sums->second.begin(), sums->second.end());
            groups.erase(sums);
        }
        for (const auto& [axes, inputs] : groups) emit(inputs, gradients);
    }

  private:
    const Options& options_;
    GradientContext& context_;
    Graph& graph_;
    const Node& node_;
    Shape whole_;
    Sources sources_;
    std::vector<std::pair<std::size_t, ExprPtr>> slopes_;

    Ints axes_of(std::size_t i) const {
        const Shape& own = graph_.shape(node_.inputs[i]);
        const int lead = whole_.rank() - own.rank();
        Ints axes;
        for (int d = 0; d < whole_.rank(); ++d)
            if (whole_[d] != 1 && (d < lead || own[d - lead] == 1)) axes.push_back(d);
        return axes;
    }

    /// dy_k * d y_k / d f_k as an expression over sources_.
    ExprPtr slope(std::size_t k) {
        const Output& output = options_.program.outputs[k];
        const Shape kept = output_shape(output, whole_, true);
        const std::string name = cat(node_.name, "/gradient");
        const ValueId dy_value = graph_.reshape(name, context_.output_gradients[k], kept);
        ExprPtr dy = sources_.add(dy_value);
        switch (combination(output)) {
            case Output::Kind::elementwise:
            case Output::Kind::sum:
                return dy;
            case Output::Kind::mean: {
                double count = 1;
                for (int axis : normal_axes(output, whole_.rank()))
                    count *= static_cast<double>(whole_[axis]);
                return times(dy, constant(1 / count, true));
            }
            case Output::Kind::max:
            case Output::Kind::min: {
                // The same expression has the same value in every kernel, so == finds the extremes.
                // It finds none if the extreme is the initial value of a custom reduction.
                const ValueId extreme = reduce(cat(name, "_extreme"), {output}, output).at(0);
                const ExprPtr hit = call("equal", {output.value, sources_.add(extreme)});
                const ValueId ties =
                    reduce(cat(name, "_ties"), {of(Output::Kind::sum, hit)}, output).at(0);
                return times(
                    dy, call("select",
                             {hit, call("div", {constant(1), sources_.add(ties)}), constant(0)}));
            }
            case Output::Kind::prod: {
                const ExprPtr f = output.value;
                const ExprPtr zero = call("equal", {f, constant(0)});
                const auto counted =
                    reduce(cat(name, "_zeros"),
                           {of(Output::Kind::sum, zero),
                            of(Output::Kind::prod, call("select", {zero, constant(1), f}))},
                           output);
                const ExprPtr zeros = sources_.add(counted.at(0));
                const ExprPtr others = sources_.add(counted.at(1));
                const ExprPtr rest = output.kind == Output::Kind::custom
                                         ? times(others, constant(output.init))
                                         : others;
                const ExprPtr lonely = call("and", {zero, call("equal", {zeros, constant(1)})});
                return times(
                    dy, call("select", {call("equal", {zeros, constant(0)}), call("div", {rest, f}),
                                        call("select", {lonely, rest, constant(0)})}));
            }
            case Output::Kind::custom:
                break;
        }
        fail(ErrorKind::unsupported, "output y", k,
             " reduces by a combination of its own, which has no gradient; those with one are sum, "
             "mean, prod, max, min, and reduce by a + b, a * b, max(a, b) or min(a, b)");
    }

    static Output of(Output::Kind kind, const ExprPtr& value) {
        Output out;
        out.kind = kind;
        out.value = value;
        return out;
    }

    /// A node that computes the reductions over the axes of `like`, in float.
    std::vector<ValueId> reduce(const std::string& name, const std::vector<Output>& what,
                                const Output& like) {
        Program program;
        for (Output out : what) {
            out.axes.clear();
            for (int axis : normal_axes(like, whole_.rank())) out.axes.push_back(axis);
            out.all_axes = out.axes.empty() && like.all_axes;
            program.outputs.push_back(out);
        }
        DType type = DType::f32;
        for (ValueId id : node_.inputs)
            if (graph_.spec(id).dtype == DType::f64) type = DType::f64;
        return add(name, program, Strings{std::string(name_of(type))});
    }

    /// Adds a node whose program reads sources_. Its inputs are only the tensors that it uses.
    std::vector<ValueId> add(const std::string& name, const Program& wide, Strings dtypes) {
        std::vector<ExprPtr> renamed(sources_.values.size());
        std::vector<ValueId> inputs;
        std::vector<Shape> shapes;
        for (std::size_t i = 0; i < sources_.values.size(); ++i) {
            bool used = false;
            for (const Output& out : wide.outputs)
                used = used || uses_input(out.value, static_cast<int>(i));
            if (!used) continue;
            renamed[i] = input(static_cast<int>(inputs.size()));
            inputs.push_back(sources_.values[i]);
            shapes.push_back(graph_.shape(sources_.values[i]));
        }
        Program program = wide;
        program.inputs = static_cast<int>(inputs.size());
        for (Output& out : program.outputs) out.value = substitute(out.value, renamed, {});
        // Scalars of a run are arguments in the order of the call, so there the numbers stay in the
        // code.
        Doubles scalars = options_.scalars;
        if (options_.arguments.empty())
            for (Output& out : program.outputs) out.value = lift_scalars(out.value, scalars);
        Attrs attrs{{"code", print(program)},
                    {"scalars", std::move(scalars)},
                    {"dtypes", std::move(dtypes)}};
        if (!options_.arguments.empty()) attrs.set(arguments_attr, options_.arguments);
        if (broadcast_shape(shapes, {}) != whole_) attrs.set("shape", whole_.to_vector());
        return graph_.add("Pointwise", name, inputs, attrs);
    }

    void emit(const std::vector<std::size_t>& inputs, const std::vector<ExprPtr>& gradients) {
        Program program;
        Strings dtypes;
        for (std::size_t i : inputs) {
            Output out;
            out.axes = axes_of(i);
            out.kind = out.axes.empty() ? Output::Kind::elementwise : Output::Kind::sum;
            out.value = simplify(gradients[i]);
            program.outputs.push_back(out);
            dtypes.emplace_back(name_of(graph_.spec(node_.inputs[i]).dtype));
        }
        const std::string name = cat(node_.name, "/backward");
        const auto made = add(name, program, dtypes);
        for (std::size_t n = 0; n < inputs.size(); ++n)
            context_.input_gradients[inputs[n]] =
                graph_.reshape(name, made[n], graph_.shape(node_.inputs[inputs[n]]));
    }
};

}  // namespace

void pointwise_gradient(const Options& options, GradientContext& context) {
    context.input_gradients.resize(context.node.inputs.size(), no_value);
    Rule(options, context).run();
}

}  // namespace dlprim::pointwise
