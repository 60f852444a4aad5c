// SPDX-License-Identifier: MIT
// smaller_problem(): fewer samples, if the operator's shape rule gives fewer results then.
#include "check/small_problem.hpp"

#include "engine/laid_out.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace dlprim {

namespace {

constexpr std::int64_t fewer_samples = 2, fewer_elements = 4096;

bool begins_with(const Shape& shape, std::int64_t size) {
    return shape.rank() > 0 && shape[0] == size;
}

Shape with_first(const Shape& shape, std::int64_t size) {
    std::vector<std::int64_t> dims = shape.to_vector();
    dims[0] = size;
    return Shape(dims);
}

/// Attributes that repeat a shape ("input_shape", "shape") whose first dimension is `from`.
Attrs with_shapes(const Attrs& attrs, std::int64_t from, std::int64_t to) {
    Attrs changed = attrs;
    for (const auto& [name, value] : attrs.items()) {
        const auto* ints = std::get_if<Ints>(&value);
        if ((name != "input_shape" && name != "shape") || ints == nullptr || ints->empty() ||
            ints->front() != from)
            continue;
        Ints dims = *ints;
        dims[0] = to;
        changed.set(name, dims);
    }
    return changed;
}

/// Whether the operator makes outputs of the problem's shapes from its inputs.
bool is_consistent(const Operator& op, const Problem& problem) {
    std::vector<TensorSpec> inputs;
    for (std::size_t i = 0; i < own_inputs(problem); ++i)
        inputs.push_back({problem.inputs[i].shape, problem.inputs[i].dtype});
    try {
        const std::vector<TensorSpec> outputs = op.infer(problem.attrs, inputs);
        if (outputs.size() != problem.outputs.size()) return false;
        for (std::size_t i = 0; i < outputs.size(); ++i)
            if (outputs[i].shape != problem.outputs[i].shape) return false;
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// The problem with its samples cut down, in the inputs for which `takes_part` holds.
template <typename TakesPart>
Problem cut(const Problem& problem, std::int64_t from, std::int64_t to, TakesPart takes_part) {
    Problem small = plain_problem(problem);
    small.attrs = with_shapes(problem.attrs, from, to);
    const std::size_t own = own_inputs(problem);
    for (std::size_t i = 0; i < small.inputs.size(); ++i) {
        Shape& shape = small.inputs[i].shape;
        if (begins_with(shape, from) && (i >= own || takes_part(i))) shape = with_first(shape, to);
    }
    for (Operand& output : small.outputs)
        if (begins_with(output.shape, from)) output.shape = with_first(output.shape, to);
    return small;
}

/// Whether two layouts of the same operand in problems of other sizes are of one kind.
bool alike(const Layout& a, const Layout& b) {
    return a.kind == b.kind && a.block == b.block && a.tag == b.tag && !a.is_strided();
}

/// Gives the small problem the layouts that correspond to the given ones.
bool lay_out(const Traits& device, const Engine& engine, const Problem& problem, Problem& small) {
    for (const LayoutChoice& choice : engine.layouts(device, small)) {
        bool same = true;
        for (std::size_t i = 0; i < problem.inputs.size(); ++i)
            same = same && alike(problem.inputs[i].layout, choice.inputs[i]);
        for (std::size_t i = 0; i < problem.outputs.size(); ++i)
            same = same && alike(problem.outputs[i].layout, choice.outputs[i]);
        if (!same) continue;
        small = with_layouts(small, choice);
        return true;
    }
    return false;
}

}  // namespace

std::size_t own_inputs(const Problem& problem) {
    std::size_t count = problem.inputs.size();
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add)
            count = std::min(count, static_cast<std::size_t>(stage.operand));
    return count;
}

std::optional<Problem> smaller_problem(const Traits& device, const Engine& engine,
                                       const Problem& problem, const Tuning& tuning) {
    const Operator* const op = OperatorRegistry::instance().find(problem.op);
    if (op == nullptr || problem.inputs.empty() || problem.op == "Reorder") return std::nullopt;
    const Shape& samples = problem.inputs[0].shape;
    if (samples.rank() == 0) return std::nullopt;
    const std::int64_t from = samples[0];
    const std::int64_t to = samples.rank() == 1 ? fewer_elements : fewer_samples;
    if (from <= to) return std::nullopt;
    // Weights may happen to have as many rows as there are samples. Then only the first input, or
    // it and those of the same rank, take part.
    Problem small = cut(problem, from, to, [](std::size_t) { return true; });
    if (!is_consistent(*op, small))
        small = cut(problem, from, to, [](std::size_t i) { return i == 0; });
    if (!is_consistent(*op, small)) return std::nullopt;
    if (!engine.is_applicable(device, small) || !lay_out(device, engine, problem, small) ||
        !offers(engine, device, small, tuning))
        return std::nullopt;
    return small;
}

}  // namespace dlprim
