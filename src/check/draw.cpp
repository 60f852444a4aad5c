// SPDX-License-Identifier: MIT
// draw_inputs(): indices, numbers and edges.
#include "check/draw.hpp"

#include "check/fill.hpp"
#include "check/small_problem.hpp"
#include "engine/small_integers.hpp"
#include "graph/defines_edges.hpp"
#include "graph/indexed_operator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>

namespace dlprim {

namespace {

using Bytes = std::vector<std::byte>;

/// What the indices of an operand name: positions in dimensions of these sizes. Where there are
/// several, tuples of so many lie side by side.
struct IndexRange {
    Ints sizes;
    bool from_end = false;    ///< whether indices below 0 count from the end
    bool cumulative = false;  ///< whether they are rows of cumulative lengths that end with `sizes`
};

/// The ranges of the operands that hold indices, by input.
std::map<std::size_t, IndexRange> index_ranges(const Problem& problem) {
    std::map<std::size_t, IndexRange> ranges;
    const Operator* const op = OperatorRegistry::instance().find(problem.op);
    if (op == nullptr) return ranges;
    std::vector<TensorSpec> specs;
    for (std::size_t i = 0; i < own_inputs(problem); ++i)
        specs.push_back({problem.inputs[i].shape, problem.inputs[i].dtype});
    const auto [labels, classes] = op->label_input(problem.attrs, specs);
    if (labels >= 0) ranges[static_cast<std::size_t>(labels)] = {{classes}, false};
    if (const auto* const indexed = dynamic_cast<const IndexedOperator*>(op)) {
        IndexInput indices = indexed->index_input(problem.attrs, specs);
        if (indices.input >= 0)
            ranges[static_cast<std::size_t>(indices.input)] = {
                std::move(indices.sizes), indices.from_end, indices.cumulative};
    }
    return ranges;
}

/// How many edges a dimension has: see index_at().
constexpr std::size_t index_edges = 5;

/// Index n of a sequence of valid ones: the edges, the last position first, then random ones, of
/// which each fourth repeats the one before it.
std::int64_t index_at(std::int64_t size, bool from_end, std::size_t n) {
    if (size <= 0) return 0;
    const std::int64_t edges[index_edges] = {size - 1, from_end ? -1 : size - 1, 0,
                                             from_end ? -size : 0, size / 2};
    if (n < index_edges) return edges[n];
    std::uint64_t bits = (n - (n % 4 == 3 ? 1 : 0)) * 0x9e3779b97f4a7c15;
    bits ^= bits >> 29;
    const auto many = static_cast<std::uint64_t>(size) * (from_end ? 2 : 1);
    return static_cast<std::int64_t>(bits % many) - (from_end ? size : 0);
}

Bytes draw_indices(const Operand& operand, const IndexRange& range, int turn) {
    const auto count = static_cast<std::size_t>(operand.shape.numel());
    const std::size_t components = range.sizes.size();
    const std::size_t first = static_cast<std::size_t>(turn) * (count / components);
    std::vector<std::int64_t> indices(count);
    const std::size_t row = count / components;
    for (std::size_t i = 0; range.cumulative && i < count; ++i)
        indices[i] = range.sizes[i / row] * static_cast<std::int64_t>(i % row) /
                     static_cast<std::int64_t>(std::max<std::size_t>(row, 2) - 1);
    for (std::size_t i = 0; !range.cumulative && i < count; ++i)
        indices[i] = index_at(range.sizes[i % components], range.from_end, first + i / components);
    Bytes data(count * size_of(operand.dtype));
    convert(indices.data(), DType::i64, data.data(), operand.dtype, count);
    return data;
}

/// Small integers, above zero for programs, which may divide by them.
Bytes draw_small_integers(const Problem& problem, const Operand& operand, std::size_t start) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(operand.shape.numel()));
    const bool may_divide = problem.op == "Pointwise";
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i + start);
        numbers[i] = operand.dtype == DType::boolean ? n % 3 != 0 : may_divide ? n % 5 + 1 : n % 7;
    }
    Bytes data(numbers.size() * size_of(operand.dtype));
    convert(numbers.data(), DType::i64, data.data(), operand.dtype, numbers.size());
    return data;
}

/// Numbers whose period is short, and prime, so that they are fast to make.
const std::vector<float>& random_numbers(bool above_half) {
    static const auto make = [](bool above) {
        std::mt19937 random(1);
        std::vector<float> values(65521);
        for (float& value : values) {
            value = static_cast<float>(draw_normal(random));
            if (above) value = 0.5f + std::abs(value);
        }
        return values;
    };
    static const std::vector<float> any = make(false), above = make(true);
    return above_half ? above : any;
}

/// Differences of bytes, of the same period.
const std::vector<float>& random_integers() {
    static const std::vector<float> integers = [] {
        std::vector<float> values = random_numbers(false);
        for (float& value : values)
            value = std::clamp(std::nearbyint(value * 100), -255.0f, 255.0f);
        return values;
    }();
    return integers;
}

Bytes draw_floats(const Operand& operand, const std::vector<float>& numbers, std::size_t start) {
    const auto count = static_cast<std::size_t>(operand.shape.numel());
    const std::size_t each = size_of(operand.dtype), period = numbers.size();
    Bytes data(count * each);
    // The first period is converted, from `start` to the end of the numbers and then from their
    // first one, and copied from there.
    const std::size_t before = std::min(count, period - start);
    convert(numbers.data() + start, DType::f32, data.data(), operand.dtype, before);
    convert(numbers.data(), DType::f32, data.data() + before * each, operand.dtype,
            std::min(count, period) - before);
    for (std::size_t at = period; at < count; at += period)
        std::memcpy(data.data() + at * each, data.data(), std::min(count - at, period) * each);
    return data;
}

/// The type of the blocks that an operand holds, or nullptr.
const GgufType* blocks_of(const Problem& problem, const Operand& operand) {
    const Attr* const blocks = problem.attrs.find("blocks");
    const auto* const text = blocks == nullptr ? nullptr : std::get_if<std::string>(blocks);
    if (text == nullptr || text->empty() || operand.dtype != DType::u8) return nullptr;
    return &block_type(*text);
}

Bytes draw_blocks(const GgufType& type, const Operand& operand, std::size_t start) {
    std::mt19937 random(static_cast<unsigned>(start));
    return random_blocks(type, static_cast<std::size_t>(operand.shape.numel()), random);
}

/// The edges of a type. Squares of the large and small numbers overflow and become zero, so that no
/// result depends on whether a device keeps subnormal numbers.
std::vector<double> float_edges(DType dtype) {
    const double large = dtype == DType::f16 ? 3e4 : dtype == DType::f64 ? 1e200 : 1e30;
    const double small = dtype == DType::f16 ? 1e-4 : 1 / large;
    return {0,      -0.0,     1,         -1,           large, -large, small,
            -small, INFINITY, -INFINITY, std::nan(""), 2.5,   -0.5};
}

std::vector<std::int64_t> integer_edges(DType dtype) {
    if (dtype == DType::boolean || is_narrow(dtype)) return {0, 1};
    const int bits = static_cast<int>(size_of(dtype)) * 8;
    const bool is_signed =
        dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
    const auto most = std::numeric_limits<std::int64_t>::max();  // also of u64, as far as it goes
    const std::int64_t highest =
        bits == 64 ? most : (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
    if (!is_signed) return {0, 1, highest, highest - 1, 2, 63, 64};
    return {0, 1, -1, highest, -highest - 1, 2, 63, 64, -highest};
}

/// Edges in an order in which those of two operands meet in all pairs.
Bytes draw_edges(const Operand& operand, std::size_t number) {
    const auto count = static_cast<std::size_t>(operand.shape.numel());
    Bytes data(count * size_of(operand.dtype));
    const auto spread = [&](const auto& edges, DType from) {
        auto values = edges;
        values.resize(count);
        const std::size_t many = edges.size();
        for (std::size_t i = 0; i < count; ++i)
            values[i] = edges[((number % 2 == 0 ? i : i / 13) + number / 2 * 3) % many];
        convert(values.data(), from, data.data(), operand.dtype, count);
    };
    if (is_float(operand.dtype))
        spread(float_edges(operand.dtype), DType::f64);
    else
        spread(integer_edges(operand.dtype), DType::i64);
    return data;
}

/// Whether an operand's integers may be indices of which nothing is known: those of operators that
/// gradients are made of, such as the places of a pooling's maxima.
bool is_unknown(const Problem& problem, const Operand& operand) {
    const Operator* const op = OperatorRegistry::instance().find(problem.op);
    return is_integer(operand.dtype) && op != nullptr &&
           (op->internal() || op->type().ends_with("Backward"));
}

}  // namespace

int index_turns(const Problem& problem) {
    std::size_t turns = 1;
    for (const auto& [input, range] : index_ranges(problem)) {
        const auto count = static_cast<std::size_t>(problem.inputs[input].shape.numel());
        const std::size_t entries = count / range.sizes.size();
        if (entries > 0) turns = std::max(turns, (index_edges + entries - 1) / entries);
    }
    return static_cast<int>(turns);
}

bool has_edges(const Problem& problem) {
    const auto* const op =
        dynamic_cast<const DefinesEdges*>(OperatorRegistry::instance().find(problem.op));
    return op != nullptr && problem.epilogue.empty() && op->defines_edges(problem.attrs);
}

bool has_unknown_indices(const Problem& problem) {
    const auto ranges = index_ranges(problem);
    for (std::size_t i = 0; i < problem.inputs.size(); ++i)
        if (ranges.count(i) == 0 && is_unknown(problem, problem.inputs[i])) return true;
    return false;
}

std::vector<Bytes> draw_inputs(const Problem& problem, const Draw& draw) {
    const auto ranges = index_ranges(problem);
    const bool above_half = draw.numbers == Draw::Numbers::above_half;
    const bool integers = problem.attrs.has(small_integers_attr);
    std::vector<Bytes> inputs;
    std::size_t start = 0;  // operands of one size get other numbers
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
        const Operand& operand = problem.inputs[i];
        const auto count = static_cast<std::size_t>(operand.shape.numel());
        const auto range = ranges.find(i);
        if (count == 0)
            inputs.emplace_back();
        else if (range != ranges.end())
            inputs.push_back(draw_indices(operand, range->second, draw.turn));
        else if (const GgufType* const type = blocks_of(problem, operand))
            inputs.push_back(draw_blocks(*type, operand, start));
        else if (is_unknown(problem, operand))
            inputs.emplace_back(count * size_of(operand.dtype));
        else if (draw.numbers == Draw::Numbers::edges)
            inputs.push_back(draw_edges(operand, i));
        else if (is_float(operand.dtype))
            inputs.push_back(draw_floats(
                operand, integers ? random_integers() : random_numbers(above_half), start));
        else
            inputs.push_back(draw_small_integers(problem, operand, start));
        start = (start + 9973) % random_numbers(false).size();
    }
    return inputs;
}

}  // namespace dlprim
