// SPDX-License-Identifier: MIT
// Recurrent: parameters, shapes and expansion. One product handles all steps of x, and then each
// step is a product and a cell.
#include "ops/recurrent/recurrent.hpp"

#include "base/text.hpp"

#include <cmath>

namespace dlprim::recurrent {

namespace {

/// Of all layers and directions together, since each step becomes nodes of its own.
constexpr std::int64_t most_steps = 100000;

}  // namespace

std::size_t tensors_among(const Options& options, std::size_t inputs) {
    const std::size_t params = static_cast<std::size_t>(options.runs()) * options.params_a_run();
    require(inputs > params, "takes an input and ", params, " parameters, got ", inputs,
            " tensors");
    return inputs - params;
}

std::vector<ParamSpec> Recurrent::params(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options o = Options::read(attrs);
    const Shape& x = inputs[0].shape;
    require(x.rank() == 3,
            "input must be [T, N, features], or [N, T, features] with batch_first, got ", x);
    const DType dtype = inputs[0].dtype;
    const std::int64_t rows = gates() * o.hidden_size;
    const double bound = 1 / std::sqrt(static_cast<double>(o.hidden_size));
    const auto matrix = [&](std::int64_t columns) {
        ParamSpec spec{{Shape{rows, columns}, dtype}, Init::uniform(bound)};
        spec.init.fan_in = columns;
        spec.init.fan_out = rows;
        return spec;
    };
    std::vector<ParamSpec> all;
    for (std::int64_t layer = 0; layer < o.num_layers; ++layer)
        for (std::int64_t direction = 0; direction < o.directions(); ++direction) {
            all.push_back(matrix(layer == 0 ? x[2] : o.directions() * o.hidden_size));
            all.push_back(matrix(o.hidden_size));
            if (!o.bias) continue;
            for (int i = 0; i < 2; ++i) all.push_back({{Shape{rows}, dtype}, Init::uniform(bound)});
        }
    return all;
}

std::vector<TensorSpec> Recurrent::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options o = Options::read(attrs);
    const std::vector<ParamSpec> wanted = params(attrs, inputs);
    const std::size_t tensors = tensors_among(o, inputs.size());
    const Shape& x = inputs[0].shape;
    require(is_float(inputs[0].dtype), "input must be of a float type, got ",
            name_of(inputs[0].dtype));
    require(x[0] >= 1 && x[1] >= 1, "input ", x, " is empty");
    const std::int64_t steps = x[o.batch_first ? 1 : 0];
    require(steps <= most_steps / o.runs(), "input ", x, " has ", steps, " steps for ", o.runs(),
            o.runs() == 1 ? " run" : " runs", " over them, at most ", most_steps,
            " steps of all runs together are supported");
    const Shape state{o.runs(), x[o.batch_first ? 0 : 1], o.hidden_size};
    require(tensors == 1 || tensors == 1 + static_cast<std::size_t>(states()),
            "takes an input alone or with ", states() == 2 ? "h0 and c0" : "h0", ", got ", tensors,
            " tensors");
    for (std::size_t i = 1; i < tensors; ++i)
        require(inputs[i].shape == state, i == 1 ? "h0" : "c0", " is ", inputs[i].shape,
                ", it must be ", state);
    for (std::size_t i = 0; i < wanted.size(); ++i)
        require(inputs[tensors + i].shape == wanted[i].spec.shape, "parameter ", i, " is ",
                inputs[tensors + i].shape.str(), ", it must be ", wanted[i].spec.shape);
    std::vector<TensorSpec> made{{x.with(2, o.directions() * o.hidden_size), inputs[0].dtype}};
    for (int i = 0; i < states(); ++i) made.push_back({state, inputs[0].dtype});
    return made;
}

double Recurrent::flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                        std::span<const TensorSpec>) const {
    const Options o = Options::read(attrs);
    const Shape& x = inputs[0].shape;
    double sum = 0;
    for (std::int64_t layer = 0; layer < o.num_layers; ++layer)
        sum += static_cast<double>((layer == 0 ? x[2] : o.directions() * o.hidden_size) +
                                   o.hidden_size);
    return 2.0 * static_cast<double>(x[0] * x[1] * o.directions() * gates() * o.hidden_size) * sum;
}

namespace {

/// What a run starts from where the network gives no state.
ValueId zero_state(Graph& graph, const std::string& name, const Shape& shape) {
    return graph.constant(name, shape,
                          std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.0f));
}

/// What run `run` starts from, of the states of `all` runs; -1: there is but one run.
ValueId given_state(Graph& graph, const std::string& name, ValueId all, std::int64_t run,
                    const Shape& shape) {
    const ValueId own =
        run < 0 ? all
                : graph.add1("Slice", name, {all},
                             Attrs{{"dim", std::int64_t{0}}, {"begin", run}, {"end", run + 1}});
    return graph.reshape(name + "/shape", own, shape);
}

/// `shared` for one step, and in `shared` the same for the steps behind it: so gradients of what
/// all steps share are added one after the other.
ValueId take_fork(Graph& graph, const std::string& name, ValueId& shared) {
    const std::vector<ValueId> two = graph.add("Fork", name, {shared});
    shared = two[1];
    return two[0];
}

}  // namespace

bool Recurrent::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options o = Options::read(node.attrs);
    const std::size_t tensors = tensors_among(o, node.inputs.size());
    const std::int64_t hidden = o.hidden_size, width = gates() * hidden;
    ValueId x = node.inputs[0];
    if (o.batch_first)
        x = graph.add1("Transpose", node.name + "/time_first", {x}, Attrs{{"dims", Ints{1, 0, 2}}});
    const std::int64_t steps = graph.shape(x)[0], batch = graph.shape(x)[1];
    const Shape state_shape{batch, hidden};
    ValueId zeros = no_value;
    std::vector<std::vector<ValueId>> last(
        static_cast<std::size_t>(states()));  // [1, N, hidden] per layer and direction

    for (std::int64_t layer = 0; layer < o.num_layers; ++layer) {
        std::vector<ValueId> directions;
        for (std::int64_t direction = 0; direction < o.directions(); ++direction) {
            const std::int64_t run = layer * o.directions() + direction;
            const std::string name = cat(node.name, "/l", layer, direction ? "_reverse" : "");
            const auto param = [&](std::size_t i) {
                return node.inputs[tensors + static_cast<std::size_t>(run) * o.params_a_run() + i];
            };
            std::vector<ValueId> product{x, param(0)};
            ValueId bias_hh = no_value;
            if (o.bias) {
                if (joins_biases())
                    product.push_back(
                        graph.pointwise1(name + "/bias", "y0 = x0 + x1", {param(2), param(3)}));
                else
                    product.push_back(param(2)), bias_hh = param(3);
            }
            const ValueId projected = graph.add1("MatMul", name + "/input", product,
                                                 Attrs{{"transpose_b", true}, {"bias", o.bias}});
            const std::vector<ValueId> pieces =
                graph.add("Split", name + "/steps", {projected},
                          Attrs{{"dim", std::int64_t{0}}, {"parts", steps}});

            Step step;
            for (int s = 0; s < states(); ++s) {
                if (tensors == 1 && zeros == no_value)
                    zeros = zero_state(graph, node.name + "/zeros", state_shape);
                step.states.push_back(
                    tensors == 1 ? zeros
                                 : given_state(graph, cat(name, "/initial", s),
                                               node.inputs[1 + static_cast<std::size_t>(s)],
                                               o.runs() == 1 ? -1 : run, state_shape));
            }
            std::vector<ValueId> made(static_cast<std::size_t>(steps));
            ValueId weight = param(1);
            for (std::int64_t i = 0; i < steps; ++i) {
                const std::int64_t t = direction ? steps - 1 - i : i;
                step.name = cat(name, "/t", t);
                step.projected =
                    graph.reshape(step.name + "/projected", pieces[static_cast<std::size_t>(t)],
                                  Shape{batch, width});
                step.weight_hh = weight;
                step.bias_hh = bias_hh;
                if (i + 1 < steps) {
                    step.weight_hh = take_fork(graph, step.name + "/weight", weight);
                    if (bias_hh != no_value)
                        step.bias_hh = take_fork(graph, step.name + "/bias", bias_hh);
                }
                this->step(graph, step);
                made[static_cast<std::size_t>(t)] =
                    graph.reshape(step.name + "/output", step.states[0], Shape{1, batch, hidden});
            }
            for (int s = 0; s < states(); ++s)
                last[static_cast<std::size_t>(s)].push_back(
                    graph.reshape(cat(name, "/final", s), step.states[static_cast<std::size_t>(s)],
                                  Shape{1, batch, hidden}));
            directions.push_back(steps == 1 ? made[0]
                                            : graph.add1("Concat", name + "/output", made,
                                                         Attrs{{"dim", std::int64_t{0}}}));
        }
        x = directions.size() == 1 ? directions[0]
                                   : graph.add1("Concat", cat(node.name, "/l", layer, "/both"),
                                                directions, Attrs{{"dim", std::int64_t{2}}});
        if (graph.training && o.dropout > 0 && layer + 1 < o.num_layers)
            x = graph.add1("Dropout", cat(node.name, "/l", layer, "/dropout"), {x},
                           o.dropout_behind(layer));
    }
    if (o.batch_first)
        x = graph.add1("Transpose", node.name + "/batch_first", {x},
                       Attrs{{"dims", Ints{1, 0, 2}}});
    outputs = {x};
    for (std::size_t s = 0; s < last.size(); ++s)
        outputs.push_back(last[s].size() == 1
                              ? last[s][0]
                              : graph.add1("Concat", cat(node.name, "/final", s), last[s],
                                           Attrs{{"dim", std::int64_t{0}}}));
    return true;
}

}  // namespace dlprim::recurrent
