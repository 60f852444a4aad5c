// SPDX-License-Identifier: MIT
// The interpreter of graph_check.hpp.
#include "ops/movement/graph_check.hpp"

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/passes/passes.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/turns.hpp"

#include <dlprim/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace dlprim {

namespace {

/// The plain contents of a value.
struct Contents {
    Shape shape;
    DType dtype = DType::f32;
    std::vector<std::byte> bytes;
};

Contents contents_of(const HostArray& array) {
    Contents result{array.shape, array.dtype, {}};
    result.bytes.resize(array.data.size() * size_of(array.dtype));
    convert(array.data.data(), DType::f64, result.bytes.data(), array.dtype, array.data.size());
    return result;
}

std::vector<double> doubles(const Contents& contents) {
    std::vector<double> result(static_cast<std::size_t>(contents.shape.numel()));
    convert(contents.bytes.data(), contents.dtype, result.data(), DType::f64, result.size());
    return result;
}

/// The position in the layout of element `i` of a plain array of this shape.
std::int64_t place(const Shape& shape, const Layout& layout, std::int64_t i) {
    if (layout.is_plain()) return i;
    const std::int64_t w = i % shape[3], h = i / shape[3] % shape[2];
    const std::int64_t c = i / shape[3] / shape[2] % shape[1],
                       n = i / shape[3] / shape[2] / shape[1];
    if (layout.kind == Layout::Kind::channels_last)
        return ((n * shape[2] + h) * shape[3] + w) * shape[1] + c;
    const std::int64_t b = layout.block, blocks = (shape[1] + b - 1) / b;
    return (((n * blocks + c / b) * shape[2] + h) * shape[3] + w) * b + c % b;
}

constexpr std::int64_t margin =
    3;  // elements before and after every array, which must stay unchanged

/// An array on the device in a layout, with margins.
struct DeviceArray {
    Shape shape;
    Layout layout;
    std::size_t width;
    std::uint64_t bytes;
    std::shared_ptr<Buffer> buffer;

    DeviceArray(ContextImpl& context, const Shape& s, DType dtype, const Layout& l)
        : shape(s), layout(l), width(size_of(dtype)), bytes(storage_bytes(s, dtype, l)) {
        buffer = context.allocate(bytes + 2 * margin * width);
        const std::vector<std::byte> junk(bytes + 2 * margin * width, std::byte{0x7f});
        context.queue().write({buffer.get(), 0}, junk.data(), junk.size(), true);
    }
    BufferRef ref() const { return {buffer.get(), margin * width}; }

    void upload(ContextImpl& context, const Contents& contents) {
        std::vector<std::byte> data(bytes, std::byte{0});
        for (std::int64_t i = 0; i < shape.numel(); ++i)
            std::memcpy(data.data() + place(shape, layout, i) * static_cast<std::int64_t>(width),
                        contents.bytes.data() + i * static_cast<std::int64_t>(width), width);
        if (bytes > 0) context.queue().write(ref(), data.data(), bytes, true);
    }
    Contents download(ContextImpl& context, DType dtype) const {
        std::vector<std::byte> data(bytes + 2 * margin * width);
        context.queue().read({buffer.get(), 0}, data.data(), data.size(), true);
        bool untouched = true;
        for (std::size_t i = 0; i < margin * width; ++i)
            untouched = untouched && data[i] == std::byte{0x7f} &&
                        data[data.size() - 1 - i] == std::byte{0x7f};
        REQUIRE(untouched);
        Contents result{shape, dtype, {}};
        result.bytes.resize(static_cast<std::size_t>(shape.numel()) * width);
        std::byte* first = data.data() + margin * width;
        for (std::int64_t i = 0; i < shape.numel(); ++i) {
            std::byte* at = first + place(shape, layout, i) * static_cast<std::int64_t>(width);
            std::memcpy(result.bytes.data() + i * static_cast<std::int64_t>(width), at, width);
            std::memset(at, 0, width);
        }
        // The remaining lanes are padding of the channels: zero after every write, for floats.
        const bool zero =
            std::all_of(first, first + bytes, [](std::byte v) { return v == std::byte{0}; });
        REQUIRE((zero || !is_float(dtype)));
        return result;
    }
};

void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
    REQUIRE(found.size() == wanted.size());
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!std::isfinite(wanted[i])) {
            REQUIRE((found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i]))));
            continue;
        }
        error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    REQUIRE(std::sqrt(error) <= 1e-5 * std::sqrt(norm) + 1e-30);
}

testing::Turns turns;

/// Runs one node with every engine in every layout (on OpenCL devices in some, but at least one).
/// All results must agree.
std::vector<Contents> run(const Context& context, const Graph& graph, const Node& node,
                          const std::vector<Contents>& values) {
    ContextImpl& impl = Access::impl(context);
    Problem problem;
    problem.op = std::string(node.op->type());
    problem.attrs = node.attrs;
    for (const ValueId id : node.inputs)
        problem.inputs.push_back({graph.shape(id), graph.spec(id).dtype, {}, false});
    for (const ValueId id : node.outputs)
        problem.outputs.push_back({graph.shape(id), graph.spec(id).dtype, {}, false});
    std::vector<Contents> result;
    for (const Engine* engine : EngineRegistry::instance().of(node.op->type(), impl.is_host())) {
        if (!engine->is_applicable(impl.traits(), problem)) continue;
        for (const LayoutChoice& choice : engine->layouts(impl.traits(), problem)) {
            std::string kind(engine->name());
            for (const Layout& layout : choice.inputs) kind += ' ' + layout.str();
            if (!turns.take(kind, context) && !result.empty()) continue;
            Problem stored = problem;
            std::vector<DeviceArray> arrays;
            for (std::size_t i = 0; i < stored.inputs.size(); ++i) {
                Operand& operand = stored.inputs[i];
                operand.layout = choice.inputs.at(i);
                arrays.emplace_back(impl, operand.shape, operand.dtype, operand.layout);
                arrays.back().upload(impl, values[static_cast<std::size_t>(node.inputs[i])]);
            }
            for (std::size_t i = 0; i < stored.outputs.size(); ++i) {
                Operand& operand = stored.outputs[i];
                operand.layout = choice.outputs.at(i);
                arrays.emplace_back(impl, operand.shape, operand.dtype, operand.layout);
            }
            std::string layout = choice.inputs.empty() ? "" : choice.inputs[0].str();
            INFO(engine->name() << " " << layout << " on " << context.info().name << ": "
                                << problem.key());
            REQUIRE(engine->estimate(impl.traits(), stored, {}) > 0);
            REQUIRE(engine->workspace_bytes(impl.traits(), stored, {}) == 0);
            std::vector<BufferRef> operands;
            for (const DeviceArray& array : arrays) operands.push_back(array.ref());
            engine->build(impl, stored, {})->enqueue(impl.queue(), operands);
            std::vector<Contents> made;
            for (std::size_t i = 0; i < stored.outputs.size(); ++i)
                made.push_back(
                    arrays[stored.inputs.size() + i].download(impl, stored.outputs[i].dtype));
            for (std::size_t i = 0; !result.empty() && i < made.size(); ++i)
                check_close(doubles(made[i]), doubles(result[i]));
            if (result.empty()) result = made;
        }
    }
    INFO("no engine for " << problem.key());
    REQUIRE(!result.empty());
    return result;
}

void interpret(const Context& context, const Graph& graph, std::vector<Contents>& values) {
    for (const Node& node : graph.nodes) {
        if (node.removed) continue;
        if (node.op->is_view()) {
            Contents view = values[static_cast<std::size_t>(node.inputs[0])];
            view.shape = graph.shape(node.outputs[0]);
            values[static_cast<std::size_t>(node.outputs[0])] = view;
            continue;
        }
        const std::vector<Contents> made = run(context, graph, node, values);
        for (std::size_t i = 0; i < made.size(); ++i)
            values[static_cast<std::size_t>(node.outputs[i])] = made[i];
    }
}

}  // namespace

HostArray random_array(const Shape& shape, std::string_view fill, std::mt19937& random,
                       DType dtype) {
    HostArray array{shape, std::vector<double>(static_cast<std::size_t>(shape.numel())), dtype};
    if (fill == "distinct") {
        std::iota(array.data.begin(), array.data.end(), -static_cast<double>(shape.numel() / 2));
        std::shuffle(array.data.begin(), array.data.end(), random);
    } else if (fill == "equal" || !is_float(dtype)) {
        for (double& v : array.data)
            v = static_cast<double>(std::uniform_int_distribution<int>(0, 2)(random));
    } else {
        for (double& v : array.data)
            v = static_cast<double>(std::normal_distribution<float>()(random));
    }
    return array;
}

void check_operator(std::string_view type, const Attrs& options,
                    const std::vector<HostArray>& inputs) {
    const Operator& op = OperatorRegistry::instance().get(type);
    Graph graph;
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Value value;
        value.name = cat("x", i);
        value.spec = {inputs[i].shape, inputs[i].dtype};
        value.role = Role::input;
        ids.push_back(graph.add_value(value));
        graph.inputs.push_back(ids.back());
    }
    std::vector<ValueId> outputs = graph.add(type, "tested", ids, options);
    for (const ValueId output : outputs) graph.outputs.emplace_back(output, cat("y", output));
    const Attrs attrs = graph.nodes[0].attrs;
    // Some problems are another operator's, such as those in double.
    expand_composites(graph);
    graph.sort();
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = graph.outputs[i].first;

    OracleCall forward{attrs, false, inputs, std::vector<HostArray>(outputs.size()), {}, 0, 0};
    op.oracle(forward);
    REQUIRE(forward.outputs[0].shape == graph.shape(outputs[0]));

    std::vector<HostArray> gradients(inputs.size());
    HostArray dy;
    const bool backward = is_float(inputs[0].dtype);
    if (backward) {
        std::mt19937 random(17);
        dy = random_array(graph.shape(outputs[0]), "normal", random);
        std::vector<HostArray> dys{dy};
        for (std::size_t i = 1; i < outputs.size(); ++i) dys.push_back(forward.outputs[i]);
        OracleBackwardCall call{attrs, false, inputs, forward.outputs, dys, gradients, 0, 0};
        op.oracle_backward(call);
        gradients = call.input_gradients;
        DifferentiateOptions wanted;
        wanted.input_gradients = true;
        wanted.seeds_are_inputs = true;
        differentiate(graph, wanted);
        dy.dtype = graph.spec(graph.inputs.back()).dtype;
    }
    for (const Context& context : testing::test_devices()) {
        INFO(type << " " << attrs.str() << " on " << context.info().name);
        std::vector<Contents> values(graph.values.size());
        for (std::size_t i = 0; i < inputs.size(); ++i)
            values[static_cast<std::size_t>(ids[i])] = contents_of(inputs[i]);
        if (backward) values[static_cast<std::size_t>(graph.inputs.back())] = contents_of(dy);
        interpret(context, graph, values);
        for (std::size_t i = 0; i < outputs.size(); ++i)
            check_close(doubles(values[static_cast<std::size_t>(outputs[i])]),
                        forward.outputs[i].data);
        for (std::size_t i = 0; backward && i < inputs.size(); ++i)
            check_close(doubles(values[static_cast<std::size_t>(graph.gradients.at(ids[i]))]),
                        gradients[i].data);
    }
}

}  // namespace dlprim
