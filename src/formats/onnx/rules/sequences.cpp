// SPDX-License-Identifier: MIT
// Sequences and optionals: lists of values that exist only while the model is imported.
#include "formats/onnx/call.hpp"
#include "formats/onnx/types.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// What a tensor is split into at most.
constexpr std::int64_t longest_sequence = 1 << 16;

/// A position in a sequence of `size` elements, or of `size` + 1 places between them.
std::size_t position(Call& call, int input, std::int64_t size) {
    const std::int64_t given = call.known_integer(input, "positions");
    const std::int64_t at = given < 0 ? given + size : given;
    call.check(at >= 0 && at < size, "position ", given, " is outside of a sequence of ", size);
    return static_cast<std::size_t>(at);
}

void construct(Call& call) {
    AnyValue::Sequence elements;
    for (int i = 0; i < call.inputs(); ++i) elements.emplace_back(call.in(i));
    call.set(0, AnyValue(std::move(elements)));
}

void empty(Call& call) {
    call.ignore("dtype");
    call.set(0, AnyValue(AnyValue::Sequence{}));
}

void at(Call& call) {
    const AnyValue::Sequence& elements = call.sequence(0);
    call.set(0, elements[position(call, 1, std::ssize(elements))]);
}

void insert(Call& call) {
    AnyValue::Sequence elements = call.sequence(0);
    std::size_t place = elements.size();
    if (call.has(2)) {
        // A negative position counts elements, not the places between them.
        const std::int64_t given = call.known_integer(2, "positions"), size = std::ssize(elements);
        const std::int64_t counted = given < 0 ? given + size : given;
        call.check(counted >= 0 && counted <= size, "position ", given,
                   " is outside of a sequence of ", size);
        place = static_cast<std::size_t>(counted);
    }
    elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(place), call.in(1));
    call.set(0, AnyValue(std::move(elements)));
}

void erase(Call& call) {
    AnyValue::Sequence elements = call.sequence(0);
    call.check(!elements.empty(), "the sequence has no elements");
    std::size_t place = elements.size() - 1;
    if (call.has(1)) place = position(call, 1, std::ssize(elements));
    elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(place));
    call.set(0, AnyValue(std::move(elements)));
}

void length(Call& call) {
    call.set(0, call.build.constant("", host_integers({}, {std::ssize(call.sequence(0))})));
}

void split_to_sequence(Call& call) {
    const Ref value = call.in(0);
    const Shape& shape = value->spec.shape;
    const int axis = call.axis(call.integer("axis", 0), shape.rank());
    const bool keeps = call.integer("keepdims", 1) != 0 || call.has(1);
    Ints sizes;
    const auto check_parts = [&](std::int64_t parts) {
        call.supports(parts <= longest_sequence, "a sequence of ", parts,
                      " tensors is not supported; ", longest_sequence, " are");
    };
    if (!call.has(1)) {
        check_parts(shape[axis]);
        sizes.assign(static_cast<std::size_t>(shape[axis]), 1);
    } else if (call.shape(1).rank() == 0) {
        const std::int64_t size = call.known_integer(1, "the parts' size");
        call.check(size >= 1, "parts of ", size, " elements");
        check_parts(shape[axis] / size);
        for (std::int64_t rest = shape[axis]; rest > 0; rest -= size)
            sizes.push_back(std::min(rest, size));
    } else {
        sizes = call.known_integers(1, "the parts' sizes");
    }
    AnyValue::Sequence parts;
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
        call.check(size >= 0 && size <= shape[axis] - begin, "the parts are larger than ",
                   shape[axis]);
        Ref part = call.build.slice(value, axis, begin, begin + size);
        if (!keeps) {
            Ints kept = shape.to_vector();
            kept.erase(kept.begin() + axis);
            part = call.build.reshape(part, Shape(kept));
        }
        parts.emplace_back(part);
        begin += size;
    }
    call.check(begin == shape[axis], "the parts make ", begin, " of ", shape[axis], " elements");
    call.set(0, AnyValue(std::move(parts)));
}

void concat_from_sequence(Call& call) {
    const AnyValue::Sequence& elements = call.sequence(0);
    call.check(!elements.empty(), "the sequence has no elements");
    const bool stacks = call.integer("new_axis", 0) != 0;
    std::vector<Ref> parts;
    int axis = 0;
    for (const AnyValue& element : elements) {
        Ref part = element.tensor();
        call.check(part != nullptr, "an element is ", element.str(), "; it must be a tensor");
        const int rank = part->spec.shape.rank();
        axis = call.axis(call.integer("axis", 0), rank + (stacks ? 1 : 0));
        if (stacks) {
            Ints sizes = part->spec.shape.to_vector();
            sizes.insert(sizes.begin() + axis, 1);
            part = call.build.reshape(part, Shape(sizes));
        }
        if (part->spec.shape[axis] > 0 || elements.size() == 1) parts.push_back(part);
    }
    if (parts.empty()) parts.push_back(elements[0].tensor());
    call.set(0, call.build.concat(parts, axis));
}

void optional(Call& call) {
    call.ignore("type");
    call.set(0, call.value(0));
}

void has_element(Call& call) {
    call.set(
        0, call.build.constant("", host_integers({}, {!call.value(0).is_none()}, DType::boolean)));
}

void get_element(Call& call) {
    call.check(!call.value(0).is_none(), "the optional has no element");
    call.set(0, call.value(0));
}

}  // namespace

std::vector<Rule> sequence_rules() {
    return {
        {"SequenceConstruct", 11, construct, Rule::Strings::own},
        {"SequenceEmpty", 11, empty, Rule::Strings::own},
        {"SequenceAt", 11, at, Rule::Strings::own},
        {"SequenceInsert", 11, insert, Rule::Strings::own},
        {"SequenceErase", 11, erase, Rule::Strings::own},
        {"SequenceLength", 11, length, Rule::Strings::own},
        {"SplitToSequence", 11, split_to_sequence, Rule::Strings::moved},
        {"ConcatFromSequence", 11, concat_from_sequence, Rule::Strings::moved},
        {"Optional", 15, optional, Rule::Strings::own},
        {"OptionalHasElement", 15, has_element, Rule::Strings::own},
        {"OptionalGetElement", 15, get_element, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
