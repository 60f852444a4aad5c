// SPDX-License-Identifier: MIT
// Other shapes and orders of the same elements, other types, and repetition.
#include "formats/onnx/call.hpp"
#include "formats/onnx/types.hpp"
#include "formats/onnx/wide_rank.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dlprim::onnx {

namespace {

void identity(Call& call) {
    call.set(0, call.value(0));
}

void reshape_to(Call& call, Ints dims) {
    const Ints input = call.dims(0);
    const bool zero_is_zero = call.integer("allowzero", 0) != 0;
    int deduced = -1;
    std::int64_t rest = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == 0 && !zero_is_zero) {
            call.check(i < input.size(), "size ", i, " is 0, the input has ", input.size(),
                       " dimensions");
            dims[i] = input[i];
        }
        if (dims[i] == -1) {
            call.check(deduced < 0, "-1 stands twice");
            deduced = static_cast<int>(i);
        } else {
            call.check(dims[i] >= 0, "a size of ", dims[i]);
            const std::int64_t size = std::max<std::int64_t>(dims[i], 1);
            call.check(rest <= (std::int64_t{1} << 60) / size, "sizes overflow");
            rest *= size;
        }
    }
    const Ref elements = call.elements(0);
    if (deduced >= 0) dims[static_cast<std::size_t>(deduced)] = elements->spec.shape.numel() / rest;
    call.set(0, view(call.build, elements, dims, deduced));
}

void reshape(Call& call) {
    reshape_to(call, call.known_integers(1, "the sizes"));
}

void flatten(Call& call) {
    const Ints input = call.dims(0);
    const std::int64_t rank = std::ssize(input), given = call.integer("axis", 1);
    call.check(given >= -rank && given <= rank, "axis ", given, " is none of ", rank,
               " dimensions");
    const std::int64_t axis = given < 0 ? given + rank : given;
    const Ref elements = call.elements(0);
    const std::int64_t outer =
        std::accumulate(input.begin(), input.begin() + axis, std::int64_t{1}, std::multiplies<>());
    const std::int64_t inner =
        std::accumulate(input.begin() + axis, input.end(), std::int64_t{1}, std::multiplies<>());
    call.set(0, call.build.reshape(elements, {outer, inner}, axis == 0 ? 0 : 1));
}

Ints axes_of(Call& call, bool by_input) {
    if (!by_input) return call.integers("axes");
    return call.has(1) ? call.known_integers(1, "axes") : Ints{};
}

void squeeze(Call& call, bool by_input) {
    const Ints input = call.dims(0);
    const auto rank = static_cast<int>(input.size());
    Ints axes = call.axes(axes_of(call, by_input), rank);
    if (axes.empty())
        for (int i = 0; i < rank; ++i)
            if (input[static_cast<std::size_t>(i)] == 1) axes.push_back(i);
    Ints sizes;
    for (int i = 0; i < rank; ++i) {
        const std::int64_t size = input[static_cast<std::size_t>(i)];
        if (!std::binary_search(axes.begin(), axes.end(), i))
            sizes.push_back(size);
        else
            call.check(size == 1, "dimension ", i, " of shape ", sizes_text(input), " is not 1");
    }
    call.set(0, view(call.build, call.elements(0), sizes));
}

void unsqueeze(Call& call, bool by_input) {
    const Ints input = call.dims(0), given = axes_of(call, by_input);
    const auto rank = static_cast<int>(input.size() + given.size());
    const Ints axes = call.axes(given, rank);
    Ints sizes;
    std::size_t next = 0;
    for (int i = 0; i < rank; ++i)
        sizes.push_back(std::binary_search(axes.begin(), axes.end(), i) ? 1 : input[next++]);
    call.set(0, view(call.build, call.elements(0), sizes));
}

void transpose(Call& call) {
    const Ints input = call.dims(0);
    Ints order(input.size());
    std::iota(order.rbegin(), order.rend(), 0);
    order = call.integers("perm", order);
    Ints sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
        call.check(sorted.size() == input.size() && sorted[i] == static_cast<std::int64_t>(i),
                   "perm is no order of ", input.size(), " dimensions");
    if (call.value(0).is_wide())
        call.set(0, transposed(call.build, call.elements(0), input, order));
    else
        call.set(0, call.build.transpose(call.in(0), order));
}

Ref broadcast_to(Call& call, Ref value, const Shape& shape) {
    if (value->spec.shape == shape) return value;
    if (is_narrow(value->spec.dtype)) {  // programs move their bytes
        const auto as = [&](Ref x, DType dtype) {
            return call.build.add1("Cast", {x},
                                   {{"dtype", std::string(name_of(dtype))}, {"reinterpret", true}});
        };
        return as(broadcast_to(call, as(value, DType::u8), shape), value->spec.dtype);
    }
    return call.build.pointwise_of(shape, "y0 = x0", {value}, value->spec.dtype);
}

void expand(Call& call) {
    const Ints wanted = call.known_integers(1, "the sizes");
    if (!call.value(0).is_wide() && std::ssize(wanted) <= Shape::max_rank)
        return call.set(0, broadcast_to(call, call.in(0), broadcast(call.shape(0), Shape(wanted))));
    const Expansion by = merged_expansion(call.build, call.elements(0), call.dims(0), wanted);
    call.set(0, view(call.build, broadcast_to(call, by.input, by.shape), by.dims));
}

void tile(Call& call) {
    const Shape& input = call.shape(0);
    const Ints repeats = call.known_integers(1, "repeats");
    call.check(static_cast<int>(repeats.size()) == input.rank(), "repeats has ", repeats.size(),
               " entries, the input has shape ", input.str());
    // Each repeated dimension is copied along a dimension of its own in front of it.
    Ref value = call.in(0);
    for (int i = 0; i < input.rank(); ++i) {
        const std::int64_t times = repeats[static_cast<std::size_t>(i)];
        call.check(times >= 0, "repeats of ", times);
        if (times == 0) {
            value = call.build.slice(value, i, 0, 0);
            continue;
        }
        if (times == 1) continue;
        const Shape now = value->spec.shape;
        const std::int64_t outer = now.product(0, i), inner = now.product(i, now.rank());
        value = call.build.reshape(value, {outer, 1, inner});
        value = broadcast_to(call, value, {outer, times, inner});
        value = call.build.reshape(value, now.with(i, now[i] * times));
    }
    call.set(0, value);
}

void concat(Call& call) {
    const int axis = call.axis(call.integer("axis", 1), call.shape(0).rank());
    std::vector<Ref> parts;
    for (int i = 0; i < call.inputs(); ++i)
        if (call.shape(i).rank() != call.shape(0).rank() || call.shape(i)[axis] > 0)
            parts.push_back(call.in(i));
    if (parts.empty()) parts.push_back(call.in(0));
    call.set(0, call.build.concat(parts, axis));
}

/// Blocks of an image as channels, or back: a transposition between two views.
void depth_to_space(Call& call) {
    const Shape& x = call.shape(0);
    const std::int64_t block = call.integer("blocksize", 0);
    const std::string mode = call.text("mode", "DCR");
    // The first bounds keep the block's square from overflowing.
    call.check(x.rank() == 4 && block >= 1 && block <= x[1] && x[1] / block % block == 0 &&
                   x[1] % block == 0,
               "blocks of ", block, " do not fit an input of shape ", x.str());
    call.check(mode == "DCR" || mode == "CRD", "mode '", mode, "' is neither DCR nor CRD");
    const std::int64_t channels = x[1] / (block * block);
    Builder& build = call.build;
    const bool depth_first = mode == "DCR";
    Ref value = depth_first ? build.reshape(call.in(0), {x[0], block, block, channels, x[2], x[3]})
                            : build.reshape(call.in(0), {x[0], channels, block, block, x[2], x[3]});
    value = build.transpose(value, depth_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
    call.set(0, build.reshape(value, {x[0], channels, x[2] * block, x[3] * block}));
}

void space_to_depth(Call& call) {
    const Shape& x = call.shape(0);
    const std::int64_t block = call.integer("blocksize", 0);
    const std::string mode = call.text("mode", "DCR");
    call.check(mode == "DCR" || mode == "CRD", "mode '", mode, "' is neither DCR nor CRD");
    call.check(
        x.rank() == 4 && block >= 1 && block <= x[2] && x[2] % block == 0 && x[3] % block == 0,
        "blocks of ", block, " do not fit an input of shape ", x.str());
    Builder& build = call.build;
    Ref value = build.reshape(call.in(0), {x[0], x[1], x[2] / block, block, x[3] / block, block});
    value = build.transpose(value, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
    call.set(0, build.reshape(value, {x[0], x[1] * block * block, x[2] / block, x[3] / block}));
}

}  // namespace

std::vector<Rule> shape_rules() {
    return {
        {"Identity", 1, identity, Rule::Strings::moved},
        {"Reshape", 1, [](Call& call) { reshape_to(call, call.integers("shape")); },
         Rule::Strings::moved},
        {"Reshape", 5, reshape, Rule::Strings::moved},
        {"Flatten", 1, flatten, Rule::Strings::moved},
        {"Squeeze", 1, [](Call& call) { squeeze(call, false); }, Rule::Strings::moved},
        {"Squeeze", 13, [](Call& call) { squeeze(call, true); }, Rule::Strings::moved},
        {"Unsqueeze", 1, [](Call& call) { unsqueeze(call, false); }, Rule::Strings::moved},
        {"Unsqueeze", 13, [](Call& call) { unsqueeze(call, true); }, Rule::Strings::moved},
        {"com.microsoft.ExpandDims", 1, [](Call& call) { unsqueeze(call, true); },
         Rule::Strings::moved},
        {"Transpose", 1, transpose, Rule::Strings::moved},
        {"Expand", 8, expand, Rule::Strings::moved},
        {"Tile", 6, tile, Rule::Strings::moved},
        {"Concat", 1, concat, Rule::Strings::moved, Rule::all_inputs},
        {"DepthToSpace", 1, depth_to_space},
        {"SpaceToDepth", 1, space_to_depth},
    };
}

}  // namespace dlprim::onnx
