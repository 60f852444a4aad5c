// SPDX-License-Identifier: MIT
// smaller_problem(): fewer samples, then smaller dimensions, as far as the operator's shape rule
// and the engine allow it.
#include "check/small_problem.hpp"

#include "base/text.hpp"
#include "engine/laid_out.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace dlprim {

namespace {

constexpr std::int64_t sample_counts[] = {2, 16, 128}, element_counts[] = {4096, 65536};
/// What is cut and to what: see smaller_problem().
constexpr std::int64_t long_dimension = 512, short_dimension = 128, alignment = 64;
/// Below so many elements other dimensions stay.
constexpr std::int64_t few_elements = 1 << 20;

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

/// The problem with `to` samples, or nothing if the shape rule does not allow it.
std::optional<Problem> with_samples(const Operator& op, const Problem& problem, std::int64_t to) {
    const std::int64_t from = problem.inputs[0].shape[0];
    if (from <= to) return std::nullopt;
    // Weights may happen to have as many rows as there are samples. Then only the first input, or
    // it and those of the same rank, take part.
    Problem small = cut(problem, from, to, [](std::size_t) { return true; });
    if (!is_consistent(op, small))
        small = cut(problem, from, to, [](std::size_t i) { return i == 0; });
    if (!is_consistent(op, small)) return std::nullopt;
    return small;
}

std::span<const std::int64_t> counts_of(const Shape& samples) {
    if (samples.rank() == 1) return element_counts;
    return sample_counts;
}

/// Sizes of long dimensions, the longest first.
std::vector<std::int64_t> long_dimensions(const Problem& problem) {
    std::set<std::int64_t, std::greater<>> sizes;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            for (const std::int64_t size : operand.shape.to_vector())
                if (size > long_dimension) sizes.insert(size);
    return {sizes.begin(), sizes.end()};
}

/// The problem with another size in place of `from`, wherever that is the size of a dimension or an
/// integer of the options.
Problem with_dimension(const Problem& problem, std::int64_t from, std::int64_t to) {
    Problem changed = plain_problem(problem);
    for (auto* operands : {&changed.inputs, &changed.outputs})
        for (Operand& operand : *operands) {
            std::vector<std::int64_t> dims = operand.shape.to_vector();
            std::replace(dims.begin(), dims.end(), from, to);
            operand.shape = Shape(dims);
        }
    for (const auto& [name, value] : problem.attrs.items()) {
        if (const auto* number = std::get_if<std::int64_t>(&value); number && *number == from)
            changed.attrs.set(name, to);
        if (const auto* numbers = std::get_if<Ints>(&value)) {
            Ints all = *numbers;
            std::replace(all.begin(), all.end(), from, to);
            changed.attrs.set(name, all);
        }
    }
    return changed;
}

/// Takes the digits that `text` begins with.
std::int64_t take_number(std::string_view& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? number : 0;
}

/// Whether the tags of two packed layouts differ in sizes alone. Of the given problem these are
/// long dimensions; smaller numbers, as of lanes, are the same.
bool are_tags_alike(std::string_view given, std::string_view small) {
    while (!given.empty() && !small.empty()) {
        if (ascii::is_digit(given.front()) && ascii::is_digit(small.front())) {
            const std::int64_t from = take_number(given), to = take_number(small);
            if (from != to && from <= long_dimension) return false;
            continue;
        }
        if (given.front() != small.front()) return false;
        given.remove_prefix(1);
        small.remove_prefix(1);
    }
    return given.empty() && small.empty();
}

/// Whether a layout of an operand and that of the small problem's are of one kind.
bool alike(const Layout& given, const Layout& small) {
    return given.kind == small.kind && given.block == small.block &&
           are_tags_alike(given.tag, small.tag) && given.aligned == small.aligned;
}

/// Strides without gaps in which the dimensions of `shape` lie within each other as in `layout`.
Layout strides_like(const Layout& layout, const Shape& shape) {
    std::vector<int> order(static_cast<std::size_t>(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return layout.strides[static_cast<std::size_t>(a)] >
               layout.strides[static_cast<std::size_t>(b)];
    });
    std::vector<std::int64_t> strides(order.size());
    std::int64_t inside = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
        strides[static_cast<std::size_t>(*d)] = inside;
        inside *= shape[*d];
    }
    return Layout::strided(std::move(strides), layout.aligned);
}

/// The small problem with strided operands where those of the given one are strided and the engine
/// may take them.
Problem strided_like(const Problem& problem, Problem small) {
    const auto change = [](const std::vector<Operand>& given, std::vector<Operand>& operands) {
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (given[i].layout.is_strided())
                operands[i].layout = strides_like(given[i].layout, operands[i].shape);
    };
    change(problem.inputs, small.inputs);
    change(problem.outputs, small.outputs);
    return small;
}

/// Gives the small problem the layouts that correspond to the given ones.
bool lay_out(const Traits& device, const Engine& engine, const Problem& problem, Problem& small) {
    const Problem strided = strided_like(problem, small);
    for (LayoutChoice& choice : engine.layouts(device, strided)) {
        bool same = true;
        const auto match = [&](const std::vector<Operand>& given,
                               const std::vector<Operand>& operands, std::vector<Layout>& layouts) {
            for (std::size_t i = 0; i < given.size(); ++i) {
                if (engine.addresses_strides() && layouts[i].is_plain())
                    layouts[i] = operands[i].layout;
                same = same && alike(given[i].layout, layouts[i]);
            }
        };
        match(problem.inputs, strided.inputs, choice.inputs);
        match(problem.outputs, strided.outputs, choice.outputs);
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

std::int64_t elements_of(const Problem& problem) {
    std::int64_t count = 0;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) count += operand.shape.numel();
    return count;
}

std::optional<Problem> smaller_problem(const Traits& device, const Engine& engine,
                                       const Problem& problem, const Tuning& tuning,
                                       bool cuts_dimensions, const Suits& suits) {
    const Operator* const op = OperatorRegistry::instance().find(problem.op);
    if (op == nullptr || problem.inputs.empty() || problem.op == "Reorder") return std::nullopt;
    if (problem.inputs[0].shape.rank() == 0) return std::nullopt;
    const auto runs = [&](Problem& small) {
        return engine.is_applicable(device, small) && lay_out(device, engine, problem, small) &&
               offers(engine, device, small, tuning) && suits(small);
    };
    std::optional<Problem> least;
    for (const std::int64_t to : counts_of(problem.inputs[0].shape)) {
        std::optional<Problem> small = with_samples(*op, problem, to);
        if (!small || !runs(*small)) continue;
        least = std::move(small);
        break;
    }
    if (!cuts_dimensions) return least;
    for (const std::int64_t size : long_dimensions(problem)) {
        const Problem& whole = least ? *least : problem;
        if (elements_of(whole) < few_elements) break;
        Problem small = with_dimension(whole, size, short_dimension + size % alignment);
        if (is_consistent(*op, small) && runs(small)) least = std::move(small);
    }
    return least;
}

}  // namespace dlprim
