// SPDX-License-Identifier: MIT
// Parts of tensors: slices, splits, gathered rows, and padding around them.
#include "formats/onnx/rules/shared.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dlprim::onnx {

namespace {

/// What is gathered from places that stand apart is as many slices; for more, a Gather reads the
/// places.
constexpr std::size_t most_slices = 4;

/// The places `at` of dimension `axis`, taken on the host.
Ref take_known(Call& call, Ref value, int axis, const Ints& at) {
    const HostTensor& from = *value->known;
    auto made = call.build.allocate(from.shape.with(axis, static_cast<std::int64_t>(at.size())),
                                    from.dtype);
    if (made->data.empty()) return call.build.constant("", std::move(made));
    const std::int64_t outer = from.shape.product(0, axis);
    const std::size_t inner =
        static_cast<std::size_t>(from.shape.product(axis + 1, from.shape.rank())) *
        size_of(from.dtype);
    std::byte* to = made->data.data();
    for (std::int64_t o = 0; o < outer; ++o) {
        for (const std::int64_t place : at) {
            const auto begin = static_cast<std::size_t>(o * from.shape[axis] + place);
            std::copy_n(from.data.data() + begin * inner, inner, to);
            to += inner;
        }
    }
    return call.build.constant("", std::move(made));
}

/// The places `at` of dimension `axis`: slices of neighbours, behind each other, or a Gather.
Ref take(Call& call, Ref value, int axis, const Ints& at) {
    if (value->known) return take_known(call, value, axis, at);
    if (at.empty()) return call.build.slice(value, axis, 0, 0);
    std::size_t slices = 1;
    for (std::size_t i = 1; i < at.size(); ++i) slices += at[i] != at[i - 1] + 1;
    if (slices > most_slices)
        return gather_computed(call, value,
                               call.build.constant("", host_integers({std::ssize(at)}, at)), axis);
    std::vector<Ref> parts;
    for (std::size_t i = 0; i < at.size();) {
        std::size_t next = i + 1;
        while (next < at.size() && at[next] == at[next - 1] + 1) ++next;
        parts.push_back(call.build.slice(value, axis, at[i], at[next - 1] + 1));
        i = next;
    }
    if (parts.size() == 1) return parts[0];
    return call.build.concat(parts, axis);
}

/// One dimension's slice by numpy's rules.
Ref slice_axis(Call& call, Ref value, int axis, std::int64_t start, std::int64_t end,
               std::int64_t step) {
    const std::int64_t size = value->spec.shape[axis];
    call.check(step != 0, "a step is 0");
    if (size == 0) return value;
    const auto settle = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
        return std::clamp(at < 0 ? std::max(at + size, low) : at, low, high);
    };
    start = step > 0 ? settle(start, 0, size) : settle(start, 0, size - 1);
    end = step > 0 ? settle(end, 0, size) : settle(end, -1, size - 1);
    if (step == 1 && !value->known) return call.build.slice(value, axis, start, end);
    step = std::clamp(step, -size, size);  // a larger one takes one element, too
    const std::int64_t distance = step > 0 ? end - start : start - end;
    const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / std::abs(step) + 1;
    call.build.claim({count}, DType::i64);
    Ints at;
    for (std::int64_t i = 0; i < count; ++i) at.push_back(start + i * step);
    return take(call, value, axis, at);
}

void slice_by(Call& call, const Ints& starts, const Ints& ends, Ints axes, Ints steps) {
    const int rank = call.shape(0).rank();
    if (axes.empty())
        for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int>(i));
    if (steps.empty()) steps.assign(starts.size(), 1);
    call.check(starts.size() == ends.size() && starts.size() == axes.size() &&
                   starts.size() == steps.size(),
               "starts, ends, axes and steps have ", starts.size(), ", ", ends.size(), ", ",
               axes.size(), " and ", steps.size(), " entries");
    Ref value = call.in(0);
    for (std::size_t i = 0; i < starts.size(); ++i)
        value = slice_axis(call, value, call.axis(axes[i], rank), starts[i], ends[i], steps[i]);
    call.set(0, value);
}

void slice_by_attributes(Call& call) {
    slice_by(call, call.integers("starts"), call.integers("ends"), call.integers("axes"), {});
}

void slice_by_inputs(Call& call) {
    slice_by(call, call.known_integers(1, "starts"), call.known_integers(2, "ends"),
             call.has(3) ? call.known_integers(3, "axes") : Ints{},
             call.has(4) ? call.known_integers(4, "steps") : Ints{});
}

void split_into(Call& call, Ints sizes) {
    const int axis = call.axis(call.integer("axis", 0), call.shape(0).rank());
    const std::int64_t all = call.shape(0)[axis];
    if (sizes.empty()) {
        const std::int64_t parts = call.integer("num_outputs", call.outputs());
        call.check(parts >= 1 && (parts <= all || all == 0), parts, " parts of ", all, " elements");
        call.check(parts == call.outputs(), "there are ", parts, " parts for ", call.outputs(),
                   " outputs");
        sizes.assign(static_cast<std::size_t>(parts), (all + parts - 1) / parts);
        sizes.back() = all - (parts - 1) * sizes[0];
    }
    call.check(static_cast<int>(sizes.size()) == call.outputs(), "there are ", sizes.size(),
               " parts for ", call.outputs(), " outputs");
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        call.check(sizes[i] >= 0 && sizes[i] <= all - begin, "the parts are larger than ", all);
        const std::int64_t end = begin + sizes[i];
        if (call.wants(static_cast<int>(i)))
            call.set(static_cast<int>(i), slice_axis(call, call.in(0), axis, begin, end, 1));
        begin = end;
    }
    call.check(begin == all, "the parts make ", begin, " of ", all, " elements");
}

void split_by_attribute(Call& call) {
    if (call.version() == 1 && call.has(1))
        return split_into(call, call.known_integers(1, "the parts' sizes"));
    split_into(call, call.integers("split"));
}

void split_by_input(Call& call) {
    split_into(call, call.has(1) ? call.known_integers(1, "the parts' sizes") : Ints{});
}

/// The places whose condition holds, of an axis or of all elements in a row.
void compress(Call& call) {
    Ref value = call.in(0);
    int axis = 0;
    if (call.given("axis"))
        axis = call.axis(call.integer("axis", 0), value->spec.shape.rank());
    else
        value = call.build.reshape(value, {value->spec.shape.numel()});
    const Ints condition = call.known_integers(1, "the conditions");
    call.check(static_cast<std::int64_t>(condition.size()) <= value->spec.shape[axis], "there are ",
               condition.size(), " conditions for dimension ", axis, " of shape ",
               value->spec.shape.str());
    Ints at;
    for (std::size_t i = 0; i < condition.size(); ++i)
        if (condition[i] != 0) at.push_back(static_cast<std::int64_t>(i));
    call.set(0, take(call, value, axis, at));
}

/// `shape` with dimension `axis` replaced by those of `indices`.
Shape gathered_shape(const Shape& shape, int axis, const Shape& indices) {
    Ints sizes;
    for (int i = 0; i < axis; ++i) sizes.push_back(shape[i]);
    for (const std::int64_t size : indices.dims()) sizes.push_back(size);
    for (int i = axis + 1; i < shape.rank(); ++i) sizes.push_back(shape[i]);
    return Shape(sizes);
}

void gather(Call& call) {
    const Ref data = call.in(0), indices = call.in(1);
    const Shape& shape = data->spec.shape;
    const int axis = call.axis(call.integer("axis", 0), shape.rank());
    if (!indices->known) return call.set(0, gather_computed(call, data, indices, axis));
    Ints at = call.known_integers(1, "indices");
    for (std::int64_t& place : at) {
        call.check(place >= -shape[axis] && place < shape[axis], "index ", place,
                   " is outside of dimension ", axis, " of shape ", shape.str());
        if (place < 0) place += shape[axis];
    }
    call.set(0, call.build.reshape(take(call, data, axis, at),
                                   gathered_shape(shape, axis, indices->spec.shape)));
}

/// `pads`: in front of each axis, then behind each.
void pad_by(Call& call, const Ints& pads, const Ints& axes, double value) {
    const std::string mode = call.text("mode", "constant");
    call.check(pads.size() == 2 * axes.size(), "pads has ", pads.size(), " entries for ",
               axes.size(), " dimensions");
    const auto rank = static_cast<std::size_t>(call.shape(0).rank());
    Ints all(2 * rank, 0);  // from the last dimension on
    bool any = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t at = 2 * (rank - 1 - static_cast<std::size_t>(axes[i]));
        all[at] = pads[i];
        all[at + 1] = pads[i + axes.size()];
        any = any || all[at] != 0 || all[at + 1] != 0;
    }
    while (all.size() >= 2 && all.back() == 0 && all[all.size() - 2] == 0)
        all.resize(all.size() - 2);
    if (!any) return call.set(0, call.in(0));
    const std::string ours = mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : mode;
    Attrs options{{"pads", all}, {"mode", ours}};
    if (mode == "constant") options.set("value", value);
    call.set(0, call.build.add1("Pad", {call.in(0)}, options));
}

Ints all_axes(const Call& call) {
    Ints axes;
    for (int i = 0; i < call.shape(0).rank(); ++i) axes.push_back(i);
    return axes;
}

void pad_by_attributes(Call& call, const char* pads) {
    const double value = call.number("value", 0);
    pad_by(call, call.integers(pads), all_axes(call), value);
}

void pad_by_inputs(Call& call) {
    const std::vector<double> values =
        call.has(2) ? call.known_numbers(2, "the padding's values") : std::vector<double>{};
    call.check(values.size() <= 1, "the padding's value is no single number");
    const double value = values.empty() ? 0 : values[0];
    if (!values.empty() && !is_float(call.dtype(2)))
        call.supports(std::abs(value) < 9007199254740992.0, "padding with ", value,
                      ", which a double does not hold exactly, is not supported");
    Ints axes = all_axes(call);
    if (call.has(3)) {
        axes = call.known_integers(3, "axes");
        for (std::int64_t& axis : axes) axis = call.axis(axis, call.shape(0).rank());
    }
    pad_by(call, call.known_integers(1, "pads"), axes, value);
}

/// Each axis is cut or padded on both sides alike, by the smaller half in front.
void center(Call& call) {
    const int rank = call.shape(0).rank();
    const Ints sizes = call.known_integers(1, "the sizes");
    Ints axes = call.given("axes") ? call.integers("axes") : all_axes(call);
    call.check(axes.size() == sizes.size(), "there are ", sizes.size(), " sizes for ", axes.size(),
               " axes");
    Ref value = call.in(0);
    Ints pads(2 * static_cast<std::size_t>(rank), 0);  // from the last dimension on
    bool grows = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const int axis = call.axis(axes[i], rank);
        const std::int64_t has = value->spec.shape[axis], more = sizes[i] - has;
        call.check(sizes[i] >= 0, "a size of ", sizes[i]);
        if (more < 0) {
            const std::int64_t begin = -more / 2;
            value = call.build.slice(value, axis, begin, begin + sizes[i]);
        } else if (more > 0) {
            const std::size_t at = 2 * static_cast<std::size_t>(rank - 1 - axis);
            pads[at] = more / 2;
            pads[at + 1] = more - more / 2;
            grows = true;
        }
    }
    if (grows)
        value =
            call.build.add1("Pad", {value}, {{"pads", pads}, {"mode", "constant"}, {"value", 0.0}});
    call.set(0, value);
}

}  // namespace

std::vector<Rule> slicing_rules() {
    return {
        {"CenterCropPad", 18, center},
        {"Slice", 1, slice_by_attributes, Rule::Strings::moved},
        {"Slice", 10, slice_by_inputs, Rule::Strings::moved},
        {"Split", 1, split_by_attribute, Rule::Strings::moved},
        {"Split", 13, split_by_input, Rule::Strings::moved},
        {"Compress", 9, compress, Rule::Strings::moved},
        {"Gather", 1, gather, Rule::Strings::moved},
        {"Pad", 1, [](Call& call) { pad_by_attributes(call, "paddings"); }},
        {"Pad", 2, [](Call& call) { pad_by_attributes(call, "pads"); }},
        {"Pad", 11, pad_by_inputs},
    };
}

}  // namespace dlprim::onnx
