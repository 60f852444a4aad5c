// SPDX-License-Identifier: MIT
// Merges pointwise programs.
#include "engine/pointwise/merge.hpp"

#include "base/text.hpp"
#include "engine/pointwise/tape.hpp"

namespace dlprim::pointwise {
namespace {

constexpr int max_merged_inputs = 24;  // small devices have 1 KiB of kernel parameters
constexpr std::size_t max_merged_instructions = 400;

std::vector<ExprPtr> renumbered(int count, const std::vector<int>& numbers) {
    std::vector<ExprPtr> inputs;
    inputs.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        inputs.push_back(numbers[static_cast<std::size_t>(i)] < 0
                             ? nullptr
                             : input(numbers[static_cast<std::size_t>(i)]));
    return inputs;
}

std::vector<ExprPtr> shifted_scalars(int count, int by) {
    std::vector<ExprPtr> scalars;
    scalars.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) scalars.push_back(scalar(i + by));
    return scalars;
}

bool looks_at_position(const Tape& tape) {
    for (const Instruction& in : tape.code)
        if (in.op == Op::index || in.op == Op::size || is_random(in.op)) return true;
    return false;
}

Tape tape_of(const Program& program) {
    std::vector<ExprPtr> roots;
    for (const Output& output : program.outputs) roots.push_back(output.value);
    return compile(roots);
}

}  // namespace

bool can_merge(const Program& producer, int output, const Shape& producer_shape,
               const Program& consumer, int consumer_input, const Shape& consumer_shape,
               std::span<const Shape> producer_inputs) {
    if (output < 0 || output >= static_cast<int>(producer.outputs.size())) return false;
    const Output& made = producer.outputs[static_cast<std::size_t>(output)];
    if (made.kind != Output::Kind::elementwise) return false;
    if (consumer_input < 0 || consumer_input >= consumer.inputs) return false;
    if (producer.inputs + consumer.inputs - 1 > max_merged_inputs) return false;
    const Tape inner = compile(std::span(&made.value, 1));
    const Tape outer = tape_of(consumer);
    if (inner.code.size() + outer.code.size() > max_merged_instructions) return false;
    if (producer_shape != consumer_shape) {
        // The producer would be computed again for every element to which it is broadcast.
        if (looks_at_position(inner)) return false;
        if (producer_shape.numel() != consumer_shape.numel()) return false;
    }
    // The merged program's broadcast shape is that of the remaining inputs.
    for (const Shape& shape : producer_inputs)
        if (shape.rank() > consumer_shape.rank()) return false;
    return true;
}

Program merge(const Program& producer, int output, const Program& consumer, int consumer_input,
              std::vector<int>& consumer_map, std::vector<int>& producer_map) {
    consumer_map.clear();
    producer_map.clear();
    int next = 0;
    for (int i = 0; i < consumer.inputs; ++i)
        consumer_map.push_back(i == consumer_input ? -1 : next++);
    for (int i = 0; i < producer.inputs; ++i) producer_map.push_back(next++);
    const ExprPtr inner = substitute(producer.outputs[static_cast<std::size_t>(output)].value,
                                     renumbered(producer.inputs, producer_map),
                                     shifted_scalars(producer.scalars, consumer.scalars));
    std::vector<ExprPtr> inputs = renumbered(consumer.inputs, consumer_map);
    inputs[static_cast<std::size_t>(consumer_input)] = inner;
    Program merged;
    merged.inputs = next;
    merged.scalars = consumer.scalars + producer.scalars;
    for (Output out : consumer.outputs) {
        out.value = simplify(substitute(out.value, inputs, {}));
        merged.outputs.push_back(std::move(out));
    }
    return merged;
}

Program renumber(const Program& program, const std::vector<int>& numbers, int inputs) {
    Program result = program;
    result.inputs = inputs;
    for (Output& out : result.outputs)
        out.value = substitute(out.value, renumbered(program.inputs, numbers), {});
    return result;
}

Program bind_scalars(const Program& program, const std::vector<double>& scalars) {
    std::vector<ExprPtr> values;
    values.reserve(scalars.size());
    for (double value : scalars) values.push_back(constant(value, true));
    Program result = program;
    result.scalars = 0;
    for (Output& out : result.outputs) out.value = simplify(substitute(out.value, {}, values));
    return result;
}

Program lift_scalars(const Program& program, std::vector<double>& scalars) {
    Program result = program;
    for (Output& out : result.outputs) out.value = lift_scalars(out.value, scalars);
    result.scalars = static_cast<int>(scalars.size());
    return result;
}

}  // namespace dlprim::pointwise
