// SPDX-License-Identifier: MIT
// Elements and rows at indices that the device computes. They are rows of a table that an Embedding
// reads, at positions that a program computes from the indices.
#include "formats/onnx/rules/gather.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// A code that counts indices below 0 from the end of a dimension.
std::string from_front(std::string_view index, std::int64_t size) {
    return cat("(", index, " < 0 ? ", index, " + ", size, " : ", index, ")");
}

/// Rows of a table [rows, features], on the host.
std::vector<HostValue> host_rows(const std::vector<HostValue>& inputs) {
    const HostTensor& table = *inputs[0];
    const Ints positions = to_integers(*inputs[1]);
    const std::size_t size = static_cast<std::size_t>(table.shape[1]) * size_of(table.dtype);
    auto rows = std::make_shared<HostTensor>();
    Ints shape = inputs[1]->shape.to_vector();
    shape.push_back(table.shape[1]);
    rows->shape = Shape(shape);
    rows->dtype = table.dtype;
    for (const std::int64_t at : positions) {
        if (at < 0 || at >= table.shape[0])
            fail(ErrorKind::invalid_argument, "index ", at, " is outside of ", table.shape[0],
                 " rows");
        const auto begin =
            table.data.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(at) * size);
        rows->data.insert(rows->data.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    return {rows};
}

/// Rows of a table by positions that are not negative: of a type that floats hold exactly on the
/// device, of others on the host.
Ref rows_at(Call& call, Ref table, Ref positions) {
    const DType dtype = table->spec.dtype;
    const bool narrow = is_float(dtype) ? dtype != DType::f64 : size_of(dtype) <= 2;
    if (!narrow) {
        const std::vector<Ref> rows = call.build.call_host({table, positions}, host_rows);
        call.supports(!rows.empty(), "elements of ", name_of(dtype),
                      " by indices that are computed are not supported in a static network");
        return rows[0];
    }
    const bool direct = is_float(dtype);
    const Ref rows = call.build.add1(
        "Embedding", {positions},
        {{"num_embeddings", table->spec.shape[0]}, {"embedding_dim", table->spec.shape[1]}},
        {direct ? table : call.build.cast(table, DType::f32)});
    return direct ? rows : call.build.cast(rows, dtype);
}

/// `shape` with dimension `axis` replaced by those of `indices`.
Ints gathered_sizes(const Shape& shape, int axis, const Shape& indices) {
    Ints sizes = shape.to_vector();
    sizes.erase(sizes.begin() + axis);
    const Ints inner = indices.to_vector();
    sizes.insert(sizes.begin() + axis, inner.begin(), inner.end());
    return sizes;
}

/// The flat position of each index's element among those of a tensor of `shape`.
void gather_elements(Call& call) {
    const Ref data = call.in(0), indices = call.in(1);
    const Shape &shape = data->spec.shape, &at = indices->spec.shape;
    const int axis = call.axis(call.integer("axis", 0), shape.rank());
    call.check(at.rank() == shape.rank(), "indices of shape ", at.str(), " for an input of shape ",
               shape.str());
    call.check(!is_float(indices->spec.dtype), "indices are ", name_of(indices->spec.dtype));
    const Ints strides = shape.strides();
    std::string code =
        cat("y0 = ", from_front("x0", shape[axis]), " * ", strides[static_cast<std::size_t>(axis)]);
    for (int i = 0; i < shape.rank(); ++i) {
        if (i == axis) continue;
        call.check(at[i] <= shape[i], "indices of shape ", at.str(), " for an input of shape ",
                   shape.str());
        code += cat(" + index(", i, ") * ", strides[static_cast<std::size_t>(i)]);
    }
    Builder& build = call.build;
    const Ref positions = build.pointwise(code, {indices}, {}, "int64");
    const Ref table = build.reshape(data, {shape.numel(), 1});
    call.set(0, build.reshape(rows_at(call, table, positions), at));
}

/// indices [batch..., places..., k] name slices of data [batch..., k dimensions, slice...].
void gather_nd(Call& call) {
    const Ref data = call.in(0), indices = call.in(1);
    const Shape &shape = data->spec.shape, &at = indices->spec.shape;
    const std::int64_t given = call.integer("batch_dims", 0);
    call.check(at.rank() >= 1 && given >= 0 && given < at.rank() && given < shape.rank(),
               "batch_dims ", given, " for indices of shape ", at.str());
    const int batch = static_cast<int>(given);
    const std::int64_t count = at[-1];
    call.check(count >= 1 && count <= shape.rank() - batch, "indices of shape ", at.str(),
               " for an input of shape ", shape.str());
    const int inner = batch + static_cast<int>(count);  // where a slice's dimensions begin
    Ints sizes, strides;
    for (int i = batch; i < inner; ++i) {
        sizes.push_back(shape[i]);
        strides.push_back(shape.product(i + 1, inner));
    }
    Builder& build = call.build;
    const Ref positions = build.pointwise(
        cat("y0 = sum[-1]((x0 < 0 ? x0 + x1 : x0) * x2)"),
        {build.cast(indices, DType::i64), build.integers("", sizes), build.integers("", strides)},
        {}, "int64");
    std::string code = "y0 = x0";
    for (int i = 0; i < batch; ++i) {
        call.check(at[i] == shape[i], "indices of shape ", at.str(), " for an input of shape ",
                   shape.str());
        code += cat(" + index(", i, ") * ", shape.product(i + 1, inner));
    }
    const Ref rows = batch == 0 ? positions : build.pointwise(code, {positions}, {}, "int64");
    const Ref table =
        build.reshape(data, {shape.product(0, inner), shape.product(inner, shape.rank())});
    Ints result = at.to_vector();
    result.pop_back();
    for (int i = inner; i < shape.rank(); ++i) result.push_back(shape[i]);
    call.set(0, build.reshape(rows_at(call, table, rows), Shape(result)));
}

const Rule rules[] = {
    {"GatherElements", 11, gather_elements, Rule::Strings::moved},
    {"GatherND", 11, gather_nd, Rule::Strings::moved},
};

}  // namespace

Ref gather_computed(Call& call, Ref data, Ref indices, int axis) {
    const Shape& shape = data->spec.shape;
    Builder& build = call.build;
    call.check(shape[axis] > 0, "computed indices into dimension ", axis, " of shape ", shape.str(),
               ", which has no elements");
    // The axis becomes the first dimension of a table, and what is in front of it comes behind.
    Ints front{axis};
    for (int i = 0; i < shape.rank(); ++i)
        if (i != axis) front.push_back(i);
    const Ref turned = build.transpose(data, front);
    const Ref table = build.reshape(turned, {shape[axis], shape.numel() / shape[axis]});
    const Ref positions = build.pointwise(cat("y0 = ", from_front("x0", shape[axis])), {indices},
                                          {}, name_of(indices->spec.dtype));
    const Shape& at = indices->spec.shape;
    Ints sizes = gathered_sizes(shape, axis, at);
    const Ref rows = rows_at(call, table, positions);
    if (axis == 0) return build.reshape(rows, Shape(sizes));
    // [indices..., front..., behind...] to [front..., indices..., behind...].
    Ints now = at.to_vector(), back;
    for (int i = 0; i < shape.rank(); ++i)
        if (i != axis) now.push_back(shape[i]);
    for (int i = 0; i < axis; ++i) back.push_back(at.rank() + i);
    for (int i = 0; i < at.rank(); ++i) back.push_back(i);
    for (int i = at.rank() + axis; i < static_cast<int>(now.size()); ++i) back.push_back(i);
    return build.transpose(build.reshape(rows, Shape(now)), back);
}

std::span<const Rule> gather_rules() {
    return rules;
}

}  // namespace dlprim::onnx
