// SPDX-License-Identifier: MIT
// The gradient rule of Pointwise: the nodes that it adds, computed by the oracle, are compared with
// oracle_backward, and that with finite differences.
#include "graph/operator.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <cmath>
#include <random>

using namespace dlprim;

namespace {

struct In {
    Shape shape;
    DType dtype = DType::f32;
};

/// Computes all nodes of a graph of Pointwise and Reshape nodes.
void compute(const Graph& graph, std::vector<HostArray>& values) {
    values.resize(graph.values.size());
    for (const Node& node : graph.nodes) {
        if (node.op->is_view()) {
            values[static_cast<std::size_t>(node.outputs[0])] =
                values[static_cast<std::size_t>(node.inputs[0])];
            values[static_cast<std::size_t>(node.outputs[0])].shape = graph.shape(node.outputs[0]);
            continue;
        }
        OracleCall call{node.attrs};
        for (ValueId id : node.inputs) call.inputs.push_back(values[static_cast<std::size_t>(id)]);
        node.op->oracle(call);
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
            REQUIRE(call.outputs[k].shape == graph.shape(node.outputs[k]));
            values[static_cast<std::size_t>(node.outputs[k])] = call.outputs[k];
        }
    }
}

void check(const std::string& code, const std::vector<In>& inputs, bool integers = false,
           const Attrs& more = {}) {
    INFO(code);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    const auto filled = [&](const Shape& shape, DType dtype) {
        HostArray array{shape, {}, dtype};
        for (std::int64_t i = 0; i < shape.numel(); ++i) {
            const double v = normal(random);
            array.data.push_back(integers ? std::floor(v) : v);
        }
        return array;
    };
    Graph graph;
    std::vector<HostArray> values;
    std::vector<ValueId> ids;
    for (const In& in : inputs) {
        Value value;
        value.name = "in" + std::to_string(ids.size());
        value.spec = {in.shape, in.dtype};
        value.role = Role::input;
        ids.push_back(graph.add_value(value));
        values.push_back(filled(in.shape, in.dtype));
    }
    Attrs attrs = more;
    attrs.set("code", code);
    const auto outputs = graph.add("Pointwise", "node", ids, attrs);
    const Node node = graph.nodes.back();
    OracleBackwardCall want{node.attrs};
    want.inputs = values;
    OracleCall forward{node.attrs};
    forward.inputs = values;
    node.op->oracle(forward);
    want.outputs = forward.outputs;
    values.resize(graph.values.size());
    std::vector<ValueId> dys;
    for (ValueId id : outputs) {
        Value value;
        value.name = "dy" + std::to_string(dys.size());
        value.spec = graph.spec(id);
        value.role = Role::input;
        dys.push_back(graph.add_value(value));
        values.push_back(filled(value.spec.shape, value.spec.dtype));
        want.output_gradients.push_back(values.back());
    }
    node.op->oracle_backward(want);
    bool wanted[64];
    std::fill_n(wanted, 64, true);
    GradientContext context{graph, node, dys, std::span<const bool>(wanted, ids.size()), {}, {}};
    node.op->gradient(context);
    compute(graph, values);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        INFO("input " << i);
        const auto& expected = want.input_gradients[i].data;
        if (context.input_gradients[i] == no_value) {
            for (double v : expected) CHECK(v == 0);
            continue;
        }
        const HostArray& got = values[static_cast<std::size_t>(context.input_gradients[i])];
        CHECK(graph.spec(context.input_gradients[i]) == graph.spec(ids[i]));
        REQUIRE(got.data.size() == expected.size());
        for (std::size_t e = 0; e < expected.size(); ++e)
            CHECK(got.data[e] == Approx(expected[e]).epsilon(1e-9).margin(1e-9));
        if (integers) continue;
        // A finite difference of the sum over outputs of dy * y, for a few elements.
        for (std::size_t e = 0; e < expected.size(); e += 1 + expected.size() / 5) {
            double loss[2];
            for (int side = 0; side < 2; ++side) {
                OracleCall moved{node.attrs};
                moved.inputs.assign(want.inputs.begin(), want.inputs.end());
                moved.inputs[i].data[e] += side ? 1e-6 : -1e-6;
                node.op->oracle(moved);
                loss[side] = 0;
                for (std::size_t k = 0; k < outputs.size(); ++k)
                    for (std::size_t n = 0; n < moved.outputs[k].data.size(); ++n)
                        loss[side] += moved.outputs[k].data[n] * want.output_gradients[k].data[n];
            }
            CHECK(expected[e] == Approx((loss[1] - loss[0]) / 2e-6).epsilon(1e-4).margin(1e-5));
        }
    }
}

}  // namespace

TEST_CASE("gradients of pointwise programs") {
    check("y0 = x0 * x1 + x2", {{{3, 4, 5}}, {{4, 1}}, {{5}}});
    check("y0 = (x0 - x1) * rsqrt(x2 * x2 + 1) * x3",
          {{{2, 3, 4, 5}}, {{3, 1, 1}}, {{1, 3, 1, 1}}, {{3, 1, 1}}});
    check("t = exp(-x0 * x0); y0 = t * x1; y1 = t + x1", {{{6, 7}}, {{7}}});
    check("y0 = sum[0,2](x0 * x1); y1 = mean[1](x0)", {{{3, 4, 5}}, {{4, 1}}});
    check("y0 = sum[0,2](x0 * x1); y1 = x0 * 2", {{{3, 4, 5}}, {{4, 1}}}, false,
          {{"keep_dim", false}});
    check("y0 = max[1](x0 * x1); y1 = min[](x0)", {{{5, 6}}, {{6}}});
    check("y0 = max[1](x0)", {{{5, 40}}}, true);
    check("y0 = prod[1](x0)", {{{5, 4}}});
    check("y0 = prod[1](x0)", {{{40, 4}}}, true);
    check("y0 = reduce[1; 2.5; a + b](x0 * x1)", {{{5, 6}}, {{6}}});
    check("y0 = reduce[1; -2; b * a](x0); y1 = reduce[0; 0.5; a * b](x0)", {{{3, 4}}});
    check("y0 = reduce[0; 3; a * b](x0)", {{{40, 4}}}, true);
    // An initial value that lies between the elements: rows where it is the result have no
    // gradient.
    check("y0 = reduce[1; 1.2; max(a, b)](x0 * x0); y1 = reduce[1; -1.2; min(b, a)](x0)",
          {{{9, 4}}});
    check("y0 = reduce[1; 0; max(a, b)](x0)", {{{5, 40}}}, true);
    check("y0 = x0 * p0", {{{}}}, false, {{"scalars", Doubles{3}}});
    check("y0 = x0 + 1", {{{3, 1}}}, false, {{"shape", Ints{2, 3, 4}}});
    check("y0 = select(index(1) == x1, x0, 0)", {{{3, 4}}, {{3, 1}, DType::i32}});
    check("y0 = x0 > 0 ? x0 : 0.1 * x0; y1 = floor(x0)", {{{33}}});
    check("y0 = sum[](x0 + x1)", {{{4}}, {{4}}}, false, {{"keep_dim", false}});
    check("y0 = mean[](x0); y1 = x1", {{{4, 1}}, {{3}}});
}

TEST_CASE("a combination of one's own has no gradient") {
    Graph graph;
    Value value;
    value.name = "x";
    value.spec = {Shape{4}, DType::f32};
    value.role = Role::input;
    const ValueId x = graph.add_value(value);
    const ValueId y = graph.pointwise1("node", "y0 = reduce[0; 1; a * b + a](x0)", {x});
    const Node node = graph.nodes.back();
    const bool wanted[] = {true};
    GradientContext context{graph, node, std::span(&y, 1), wanted, {}, {}};
    CHECK_THROWS_AS(node.op->gradient(context), Error);
}
