// SPDX-License-Identifier: MIT
// Merging dimensions of tensors that have more than Shape::max_rank; see wide_rank.hpp.
#include "formats/onnx/wide_rank.hpp"

#include <algorithm>
#include <numeric>

namespace dlprim::onnx {

namespace {

/// Throws Error(unsupported) where a Shape does not hold these dimensions.
Shape narrow(const Ints& merged, const Ints& dims) {
    if (std::ssize(merged) > Shape::max_rank)
        fail(ErrorKind::unsupported, "a tensor of shape ", sizes_text(dims), " has more than ",
             Shape::max_rank, " dimensions, and merging those that stay together here leaves ",
             merged.size());
    return Shape(merged);
}

/// What the inputs broadcast to, and their dimensions where runs are merged in which each input
/// either has all sizes or is repeated.
struct Broadcast {
    Ints dims, merged_dims;
    std::vector<Ints> merged;  ///< by input

    explicit Broadcast(std::vector<Ints> inputs) : merged(inputs.size()) {
        std::size_t rank = 0;
        for (const Ints& input : inputs) rank = std::max(rank, input.size());
        for (Ints& input : inputs) input.insert(input.begin(), rank - input.size(), 1);
        std::vector<bool> before;
        for (std::size_t d = 0; d < rank; ++d) {
            std::int64_t size = 1;
            for (const Ints& input : inputs)
                if (input[d] != 1) size = input[d];
            dims.push_back(size);
            if (size == 1) continue;
            std::vector<bool> repeats;
            for (const Ints& input : inputs) {
                require(input[d] == 1 || input[d] == size, "inputs of shapes ",
                        sizes_text(inputs[0]), " and ", sizes_text(input), " do not broadcast");
                repeats.push_back(input[d] == 1);
            }
            const auto add = [&](Ints& to, std::int64_t more) {
                if (repeats == before)
                    to.back() *= more;
                else
                    to.push_back(more);
            };
            add(merged_dims, size);
            for (std::size_t i = 0; i < inputs.size(); ++i) add(merged[i], inputs[i][d]);
            before = std::move(repeats);
        }
    }
};

/// A node that works element by element, or by matrices, the last `kept` dimensions of each input.
MergedNode merge_broadcast(Builder& build, const Node& node, const std::vector<AnyValue>& inputs,
                           std::ptrdiff_t kept) {
    MergedNode made{node, inputs, {}, {}, false, {}};
    std::vector<Ints> outer;
    for (const AnyValue& input : inputs) {
        Ints dims = input.dims();
        require(std::ssize(dims) >= kept, "an input is ", input.str());
        dims.resize(dims.size() - static_cast<std::size_t>(kept));
        outer.push_back(std::move(dims));
    }
    Broadcast by(outer);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].elements()) continue;  // left out, or what the rule refuses
        const Ints dims = inputs[i].dims();
        by.merged[i].insert(by.merged[i].end(), dims.end() - kept, dims.end());
        made.inputs[i] = build.reshape(inputs[i].elements(), narrow(by.merged[i], dims));
    }
    made.dims = std::move(by.dims);
    if (kept == 2) {
        made.dims->push_back(*(inputs[0].dims().end() - 2));
        made.dims->push_back(inputs[1].dims().back());
    }
    return made;
}

/// Throws Error(format) where the attribute is of another kind.
template <typename Kind>
Kind attribute_or(const Node& node, std::string_view name, Kind otherwise) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return otherwise;
    const auto* const value = std::get_if<Kind>(&found->second.data);
    if (!value) fail(ErrorKind::format, "attribute '", name, "' is of another kind");
    return *value;
}
std::int64_t integer_of(const Node& node, std::string_view name, std::int64_t otherwise) {
    return attribute_or(node, name, otherwise);
}

/// How a node says along which axes it works.
struct AxisForm {
    std::string_view type;
    std::int64_t otherwise;  ///< the axis, where the attribute is not given
    bool all_inputs = false, drops = false;
    bool to_the_end = false;  ///< it works along all dimensions from the axis on: merged for one
};
constexpr AxisForm axis_forms[] = {
    {"ArgMax", 0, false, true},
    {"ArgMin", 0, false, true},
    {"Concat", 1, true},
    {"Gather", 0},
    {"Hardmax", -1},
    {"LayerNormalization", -1, false, false, true},
    {"LogSoftmax", -1},
    {"RMSNormalization", -1, false, false, true},
    {"Softmax", -1},
    {"Split", 0},
};

/// Whether the rule gets what the form is about.
bool fits(const AxisForm& form, const Node& node, const std::vector<AnyValue>& inputs) {
    const auto is_tensor = [](const AnyValue& input) { return input.elements() != nullptr; };
    if (form.all_inputs) return std::all_of(inputs.begin(), inputs.end(), is_tensor);
    if (!is_tensor(inputs[0])) return false;
    const std::int64_t axis = integer_of(node, "axis", form.otherwise),
                       last = std::ssize(inputs[0].dims()) - 1;
    if (form.to_the_end && axis != -1 && axis != last) return false;
    return form.type != "Gather" || (inputs.size() > 1 && is_tensor(inputs[1]));
}

/// By dimension, whether it is one of these axes.
std::vector<bool> marked(const Ints& axes, std::size_t rank) {
    std::vector<bool> marks(rank, false);
    const auto size = static_cast<std::int64_t>(rank);
    for (const std::int64_t axis : axes) {
        if (axis < -size || axis >= size)
            fail(ErrorKind::format, "axis ", axis, " is none of ", rank, " dimensions");
        marks[static_cast<std::size_t>(axis < 0 ? axis + size : axis)] = true;
    }
    return marks;
}

/// Runs of axes and of what is none.
std::vector<MergedNode::Group> groups_of(const Ints& dims, const std::vector<bool>& is_axis) {
    std::vector<MergedNode::Group> groups;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (d == 0 || is_axis[d] != is_axis[d - 1]) groups.push_back({{}, is_axis[d]});
        groups.back().dims.push_back(dims[d]);
    }
    return groups;
}

Ints merged_sizes(const std::vector<MergedNode::Group>& groups) {
    Ints sizes;
    for (const MergedNode::Group& group : groups) sizes.push_back(element_count(group.dims));
    return sizes;
}

Ints axes_among(const std::vector<MergedNode::Group>& groups) {
    Ints axes;
    for (std::size_t i = 0; i < groups.size(); ++i)
        if (groups[i].is_axis) axes.push_back(static_cast<std::int64_t>(i));
    return axes;
}

MergedNode merge_around_axis(Builder& build, const Node& node, const AxisForm& form,
                             const std::vector<AnyValue>& inputs) {
    const Ints axis{integer_of(node, "axis", form.otherwise)};
    MergedNode made{node, inputs, {}, {}, false, {}};
    for (std::size_t i = 0; i < (form.all_inputs ? inputs.size() : 1); ++i) {
        const Ints dims = inputs[i].dims();
        const auto groups = groups_of(dims, marked(axis, dims.size()));
        made.inputs[i] = build.reshape(inputs[i].elements(), narrow(merged_sizes(groups), dims));
        if (i == 0) made.groups = groups;
    }
    made.node.attributes["axis"].data = axes_among(made.groups)[0];
    made.drops_axes = form.drops && integer_of(node, "keepdims", 1) == 0;
    if (form.type == "Gather") made.in_axis = inputs.at(1).dims();
    return made;
}

MergedNode merge_reduction(Builder& build, const Node& node, const std::vector<AnyValue>& inputs) {
    const Ints dims = inputs[0].dims();
    Ints axes = attribute_or(node, "axes", Ints{});
    const bool by_attribute = !axes.empty();
    const bool by_input = inputs.size() > 1 && inputs[1].elements();
    if (by_input) {
        const Ref value = inputs[1].elements();
        if (!build.know(value))
            fail(ErrorKind::unsupported, "axes of a tensor of ", dims.size(),
                 " dimensions must be known before the network runs");
        axes = to_integers(*value->known);
    }
    const bool keeps_all = axes.empty() && integer_of(node, "noop_with_empty_axes", 0) != 0;
    if (axes.empty() && !keeps_all) {
        axes.resize(dims.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    MergedNode made{node, inputs, {}, groups_of(dims, marked(axes, dims.size())), false, {}};
    made.inputs[0] = build.reshape(inputs[0].elements(), narrow(merged_sizes(made.groups), dims));
    made.drops_axes = integer_of(node, "keepdims", 1) == 0;
    const Ints merged = axes_among(made.groups);
    if (by_attribute) made.node.attributes["axes"].data = merged;
    if (by_input) made.inputs[1] = build.integers("", merged);
    return made;
}

}  // namespace

std::int64_t element_count(const Ints& dims) {
    if (std::ssize(dims) > AnyValue::max_rank)
        fail(ErrorKind::unsupported, "a tensor of shape ", sizes_text(dims), " has ", dims.size(),
             " dimensions; at most ", AnyValue::max_rank, " are supported");
    const std::span<const std::int64_t> all = dims;
    const std::size_t half = all.size() / 2;
    return Shape{Shape(all.first(half)).numel(), Shape(all.subspan(half)).numel()}.numel();
}

AnyValue view(Builder& build, Ref elements, const Ints& dims, int deduced) {
    require(element_count(dims) == elements->spec.shape.numel(), "the input of shape ",
            elements->spec.shape.str(), " cannot take shape ", sizes_text(dims));
    if (std::ssize(dims) > Shape::max_rank) return {elements, dims};
    return build.reshape(elements, Shape(dims), deduced);
}

AnyValue transposed(Builder& build, Ref elements, const Ints& dims, const Ints& order) {
    // Dimensions of one element move nothing. The others are grouped where they stay neighbours.
    Ints result, moved;
    for (const std::int64_t from : order) {
        result.push_back(dims[static_cast<std::size_t>(from)]);
        if (result.back() != 1) moved.push_back(from);
    }
    const auto follows = [&](std::size_t place) {
        for (std::int64_t d = moved[place - 1] + 1; d < moved[place]; ++d)
            if (dims[static_cast<std::size_t>(d)] != 1) return false;
        return moved[place] > moved[place - 1];
    };
    std::vector<std::pair<std::int64_t, std::int64_t>> groups;  // first dimension, size
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const std::int64_t size = dims[static_cast<std::size_t>(moved[i])];
        if (i > 0 && follows(i))
            groups.back().second *= size;
        else
            groups.emplace_back(moved[i], size);
    }
    auto stored = groups;
    std::sort(stored.begin(), stored.end());
    Ints sizes, places;
    for (const auto& group : stored) sizes.push_back(group.second);
    for (const auto& group : groups)
        places.push_back(std::lower_bound(stored.begin(), stored.end(), group) - stored.begin());
    const Ref merged = build.reshape(elements, narrow(sizes, dims));
    return view(build, build.transpose(merged, places), result);
}

Expansion merged_expansion(Builder& build, Ref elements, const Ints& dims, const Ints& wanted) {
    const Broadcast by({dims, wanted});
    return {build.reshape(elements, narrow(by.merged[0], dims)), narrow(by.merged_dims, by.dims),
            by.dims};
}

AnyValue MergedNode::restored(Builder& build, Ref result) const {
    if (dims) return view(build, result, *dims);
    Ints made;
    int place = 0;  // in the result, whose axes are of other sizes than the input's
    const auto append = [&](const Ints& more) {
        made.insert(made.end(), more.begin(), more.end());
    };
    for (const Group& group : groups) {
        if (group.is_axis && in_axis) {
            append(*in_axis);
            place += static_cast<int>(in_axis->size());
        } else if (!group.is_axis) {
            append(group.dims);
            ++place;
        } else if (!drops_axes) {
            Ints sizes(group.dims.size(), 1);  // several axes were reduced
            if (sizes.size() == 1) sizes[0] = result->spec.shape[place];
            append(sizes);
            ++place;
        }
    }
    return view(build, result, made);
}

std::optional<MergedNode> merge_dimensions(Builder& build, const Node& node, const Rule& rule,
                                           std::int64_t version,
                                           const std::vector<AnyValue>& inputs) {
    const bool is_wide = std::any_of(inputs.begin(), inputs.end(),
                                     [](const AnyValue& input) { return input.is_wide(); });
    if (!is_wide || !node.domain.empty() || version < 7) return std::nullopt;
    if (rule.family == "activation" || rule.family == "arithmetic" || node.type == "Cast" ||
        node.type == "Dropout")
        return merge_broadcast(build, node, inputs, 0);
    if (node.type == "MatMul" && inputs.size() == 2) return merge_broadcast(build, node, inputs, 2);
    if (rule.family == "reduction" && inputs[0].elements())
        return merge_reduction(build, node, inputs);
    for (const AxisForm& form : axis_forms)
        if (node.type == form.type && (version >= 13 || form.otherwise != -1) &&
            fits(form, node, inputs))
            return merge_around_axis(build, node, form, inputs);
    return std::nullopt;
}

}  // namespace dlprim::onnx
