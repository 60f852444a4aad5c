// SPDX-License-Identifier: MIT
// Indexing: the common form of its modes; see indexing.hpp.
#include "engine/indexing/indexing.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>

#include <string>

namespace dlprim {

Indexing::Indexing(const Attrs& attrs, const Shape& data, const Shape& indices, DType index_type)
    : mode(chosen<Mode, &ops::Gather::mode>(attrs)), from_end(attrs.boolean("from_end")) {
    require(index_type == DType::i32 || index_type == DType::i64, "indices are ",
            name_of(index_type), ", they must be int32 or int64");
    const std::int64_t rank = data.rank(), given = attrs.integer("dim");
    if (mode == Mode::rows || mode == Mode::elements) {
        require(given >= -rank && given < rank, "dim ", given, " is not a dimension of data ",
                data);
        dim = static_cast<int>(given < 0 ? given + rank : given);
        sizes = {data[dim]};
    }
    if (mode == Mode::rows)
        name_rows(data, indices);
    else if (mode == Mode::elements)
        name_elements(data, indices);
    else if (mode == Mode::tuples)
        name_tuples(data, indices, attrs.integer("batch_dims"));
    else
        name_dims(data, indices, attrs.ints("dims"));
    if (digits.empty()) add_digit(1, 0);
    for (std::size_t k = 0; k < sizes.size(); ++k)
        require(sizes[k] > 0 || parts == 0 || slice == 0, "data ", data,
                " has no elements that indices ", indices, " could name");
}

/// Coordinates that step through memory together count as one.
void Indexing::add_digit(std::int64_t size, std::int64_t stride) {
    if (size == 1 && !digits.empty()) return;
    if (!digits.empty() && (digits.back() == 1 || strides.back() == stride * size)) {
        digits.back() *= size;
        strides.back() = stride;
        return;
    }
    digits.push_back(size);
    strides.push_back(stride);
}

void Indexing::name_rows(const Shape& data, const Shape& indices) {
    const std::int64_t outer = data.product(0, dim), count = indices.numel();
    Ints shape(data.dims().begin(), data.dims().begin() + dim);
    shape.insert(shape.end(), indices.dims().begin(), indices.dims().end());
    shape.insert(shape.end(), data.dims().begin() + dim + 1, data.dims().end());
    values = Shape(shape);
    slice = data.product(dim + 1, data.rank());
    parts = outer * count;
    slots = outer * data[dim];
    period = count;
    multiples = {1};
    add_digit(outer, data[dim]);
    add_digit(count, 0);
}

void Indexing::name_elements(const Shape& data, const Shape& indices) {
    require(indices.rank() == data.rank(), "indices ", indices, " of ", indices.rank(),
            " dimensions do not name elements of data ", data);
    const Ints steps = data.strides();
    for (int i = 0; i < data.rank(); ++i) {
        require(i == dim || indices[i] <= data[i], "indices ", indices, " are larger than data ",
                data, " in dimension ", i);
        add_digit(indices[i], i == dim ? 0 : steps[static_cast<std::size_t>(i)]);
    }
    values = indices;
    parts = period = indices.numel();
    slots = data.numel();
    multiples = {steps[static_cast<std::size_t>(dim)]};
}

void Indexing::name_tuples(const Shape& data, const Shape& indices, std::int64_t given) {
    require(indices.rank() >= 1 && given >= 0 && given < indices.rank() && given <= data.rank(),
            "batch_dims is ", given, " for indices ", indices, " and data ", data);
    const int batch = static_cast<int>(given);
    const std::int64_t count = indices[-1];
    require(count >= 1 && count <= data.rank() - batch, "the tuples of indices ", indices, " have ",
            count, " entries for the ", data.rank() - batch, " dimensions of data ", data,
            " behind batch_dims ", batch);
    for (int i = 0; i < batch; ++i)
        require(indices[i] == data[i], "indices ", indices, " and data ", data,
                " differ in dimension ", i, ", which batch_dims says is common");
    const int end = batch + static_cast<int>(count);
    for (int i = batch; i < end; ++i) {
        sizes.push_back(data[i]);
        multiples.push_back(data.product(i + 1, end));
    }
    Ints shape(indices.dims().begin(), indices.dims().end() - 1);
    shape.insert(shape.end(), data.dims().begin() + end, data.dims().end());
    values = Shape(shape);
    slice = data.product(end, data.rank());
    slots = data.product(0, end);
    parts = period = indices.product(0, indices.rank() - 1);
    add_digit(indices.product(0, batch), data.product(batch, end));
    add_digit(indices.product(batch, indices.rank() - 1), 0);
}

/// The dimensions up to the last that is indexed make up slots, those behind it the slice.
void Indexing::name_dims(const Shape& data, const Shape& indices, const Ints& dims) {
    const int rank = data.rank();
    require(indices.rank() >= 1 && !dims.empty() && indices[-1] == std::ssize(dims), "dims has ",
            dims.size(), " entries, the last dimension of indices ", indices,
            " must have as many, and at least one");
    std::vector<bool> is_indexed(static_cast<std::size_t>(rank), false);
    const int end = static_cast<int>(dims.back()) + 1;
    for (std::size_t k = 0; k < dims.size(); ++k) {
        require(dims[k] >= 0 && dims[k] < rank && (k == 0 || dims[k] > dims[k - 1]), "dims entry ",
                k, " is ", dims[k], ": they are dimensions of data ", data,
                " in rising order, counted from 0");
        const int d = static_cast<int>(dims[k]);
        is_indexed[static_cast<std::size_t>(d)] = true;
        sizes.push_back(data[d]);
        multiples.push_back(data.product(d + 1, end));
    }
    const int first = static_cast<int>(dims.front());
    const bool side_by_side = end - first == static_cast<int>(dims.size());
    Ints shape;
    const auto add_named = [&] {
        shape.insert(shape.end(), indices.dims().begin(), indices.dims().end() - 1);
        add_digit(period, 0);
    };
    period = indices.product(0, indices.rank() - 1);
    if (!side_by_side) add_named();
    for (int d = 0; d < rank; ++d) {
        if (side_by_side && d == first) add_named();
        if (is_indexed[static_cast<std::size_t>(d)]) continue;
        shape.push_back(data[d]);
        if (d >= end) continue;
        add_digit(data[d], data.product(d + 1, end));
        if (!side_by_side) group *= data[d];
        parts *= data[d];
    }
    parts *= period;
    values = Shape(shape);
    slice = data.product(end, rank);
    slots = data.product(0, end);
}

Attrs indexing_attrs(const Attrs& attrs) {
    return {{"mode", attrs.text("mode")},
            {"dim", attrs.integer("dim")},
            {"batch_dims", attrs.integer("batch_dims")},
            {"dims", attrs.ints("dims")},
            {"from_end", attrs.boolean("from_end")}};
}

}  // namespace dlprim
