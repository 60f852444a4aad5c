// SPDX-License-Identifier: MIT
// Elements, rows and slices at indices, and elements of sequences in reverse.
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

void gather_elements(Call& call) {
    const Ref data = call.in(0), indices = call.in(1);
    const int axis = call.axis(call.integer("axis", 0), data->spec.shape.rank());
    call.set(0, call.build.add1("Gather", {data, indices}, {{"mode", "elements"}, {"dim", axis}}));
}

/// indices [batch..., places..., k] name slices of data [batch..., k dimensions, slice...].
void gather_nd(Call& call) {
    call.set(0,
             call.build.add1("Gather", {call.in(0), call.in(1)},
                             {{"mode", "tuples"}, {"batch_dims", call.integer("batch_dims", 0)}}));
}

/// The first elements of each sequence along the time axis in reverse, as many as its length.
void reverse_sequence(Call& call) {
    const Ref data = call.in(0), lengths = call.in(1);
    const Shape& shape = data->spec.shape;
    const std::int64_t batch = call.integer("batch_axis", 1), time = call.integer("time_axis", 0);
    call.check(shape.rank() >= 2 && batch >= 0 && batch <= 1 && time == 1 - batch, "batch_axis is ",
               batch, " and time_axis ", time, " for an input of shape ", shape.str());
    const std::int64_t sequences = shape[static_cast<int>(batch)];
    call.check(lengths->spec.shape == Shape{sequences} && !is_float(lengths->spec.dtype),
               "there are lengths of shape ", lengths->spec.shape.str(), " for ", sequences,
               " sequences");
    Builder& build = call.build;
    const Ref length = build.cast(
        build.reshape(lengths, batch == 0 ? Shape{sequences, 1, 1} : Shape{sequences, 1}),
        DType::i64);
    // Where each row of the first two dimensions comes from: a tuple of two positions.
    const std::string code = cat("t = index(", time, "); y0 = index(2) == ", batch, " ? index(",
                                 batch, ") : t < x0 ? x0 - 1 - t : t");
    const Ref places = build.pointwise_of({shape[0], shape[1], 2}, code, {length}, DType::i64);
    call.set(0, build.add1("Gather", {data, places}, {{"mode", "tuples"}}));
}

}  // namespace

Ref gather_computed(Call& call, Ref data, Ref indices, int axis) {
    call.check(data->spec.shape[axis] > 0 || indices->spec.shape.empty(), "indices into dimension ",
               axis, " of shape ", data->spec.shape.str(), ", which has no elements");
    call.check(!is_float(indices->spec.dtype), "indices are ", name_of(indices->spec.dtype));
    const bool is_other = indices->spec.dtype != DType::i32 && indices->spec.dtype != DType::i64;
    return call.build.add1("Gather",
                           {data, is_other ? call.build.cast(indices, DType::i64) : indices},
                           {{"dim", axis}});
}

std::vector<Rule> gather_rules() {
    return {
        {"GatherElements", 11, gather_elements, Rule::Strings::moved},
        {"GatherND", 11, gather_nd, Rule::Strings::moved},
        {"ReverseSequence", 10, reverse_sequence},
    };
}

}  // namespace dlprim::onnx
