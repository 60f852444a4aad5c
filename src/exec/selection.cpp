// SPDX-License-Identifier: MIT
// Calls that choose elements, made of Scan, Nonzero's rows, Gather, Scatter and Pointwise.
#include <dlprim/selection.hpp>

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/indexing/indexing.hpp"
#include "exec/eager.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <string>

namespace dlprim::ops {

namespace {

void require_mask(const Tensor& mask) {
    require(mask.dtype() == DType::boolean, "the mask is ", name_of(mask.dtype()),
            ", it must be bool");
}

/// That a tensor of shape `from` can be broadcast to `to`.
void require_broadcast(std::string_view what, const Shape& from, const Shape& to) {
    bool fits = from.rank() <= to.rank();
    for (int d = 1; fits && d <= from.rank(); ++d) fits = from[-d] == 1 || from[-d] == to[-d];
    require(fits, what, " of shape ", from.str(), " cannot be broadcast to shape ", to.str());
}

Tensor flat(const Tensor& x) {
    return x.reshape(Shape{x.shape().numel()});
}

Tensor computed(const std::string& code, const std::vector<Tensor>& inputs, DType dtype,
                const Shape& shape = {}) {
    Pointwise options{.code = code, .dtypes = {dtype}};
    options.shape = IntList(shape.to_vector());
    return call(options, inputs).at(0);
}

Tensor expanded(const Tensor& x, const Shape& shape) {
    return x.shape() == shape ? x : computed("y0 = x0", {x}, x.dtype(), shape);
}

/// How many of `truths` (bool [n]) are true, up to each: int64 [n].
Tensor running_count(const Tensor& truths) {
    return call(Scan{.dtype = DType::i64}, {truths}).at(0);
}

/// The last of the counts. Waits.
std::int64_t total(const Tensor& counts) {
    const std::int64_t n = counts.shape()[0];
    std::int64_t count = 0;
    if (n > 0) counts.slice(0, n - 1, n).copy_to_host(&count, sizeof(count));
    return count;
}

/// Coordinates of elements: the first `count` of the rows [at least count, rank]. The others are 0.
/// Their number is a power of two, so that calls for other counts rarely need a new plan.
struct Rows {
    Tensor all;
    std::int64_t count;
};

/// Where the elements that are not 0 lie in a tensor of these sizes.
Rows rows_of_nonzero(const Tensor& x, const Shape& sizes) {
    const std::int64_t n = x.shape().numel();
    Rows none{{x.context(), Shape{0, sizes.rank()}, DType::i64}, 0};
    if (n == 0) return none;
    Tensor truths = flat(x);
    if (x.dtype() != DType::boolean) truths = computed("y0 = x0 != 0", {truths}, DType::boolean);
    const Tensor counts = running_count(truths);
    const std::int64_t count = total(counts);
    if (count == 0) return none;
    const std::shared_ptr<const EagerOptions> options =
        eager_options({{"size", std::min(n, power_above(count))},
                       {"fill", std::int64_t{0}},
                       {"shape", sizes.to_vector()}});
    const std::vector<Tensor> inputs{counts};
    return {eager_call("NonzeroRows", *options, inputs, {}, {}).at(0), count};
}

/// What indices come down to: tuples [..., number of dims] of positions in the dimensions `dims`.
struct Tuples {
    Tensor positions;
    Ints dims;
};

/// Takes one entry of the indices, which begins at dimension `dim` of x, and returns the dimension
/// behind it.
std::int64_t take_entry(const Tensor& x, const Tensor& entry, std::int64_t dim,
                        std::vector<Tensor>& parts, Ints& dims) {
    if (!entry.defined()) return dim + 1;
    const bool is_mask = entry.dtype() == DType::boolean;
    const std::int64_t covered = is_mask ? entry.shape().rank() : 1;
    require(covered > 0 && dim + covered <= x.shape().rank(), "an index of shape ",
            entry.shape().str(), " does not fit dimension ", dim, " of a tensor of shape ",
            x.shape().str());
    if (!is_mask) {
        parts.push_back(entry);
        dims.push_back(dim);
        return dim + 1;
    }
    for (int d = 0; d < entry.shape().rank(); ++d)
        require(entry.shape()[d] == x.shape()[static_cast<int>(dim) + d], "a mask of shape ",
                entry.shape().str(), " does not fit dimension ", dim + d, " of a tensor of shape ",
                x.shape().str());
    const Tensor rows = nonzero(entry);
    const std::int64_t count = rows.shape()[0];
    for (std::int64_t k = 0; k < covered; ++k) {
        const bool is_whole = count == 0 || covered == 1;
        const Tensor column =
            is_whole ? rows : call(Slice{.dim = 1, .begin = k, .end = k + 1}, {rows}).at(0);
        parts.push_back(column.reshape(Shape{count}));
        dims.push_back(dim + k);
    }
    return dim + covered;
}

Tuples tuples_of(const Tensor& x, const std::vector<Tensor>& indices) {
    std::vector<Tensor> parts;
    Tuples made;
    std::int64_t dim = 0;
    for (const Tensor& entry : indices) dim = take_entry(x, entry, dim, parts, made.dims);
    require(!parts.empty(), "there is no index");
    Shape shape = parts[0].shape();
    for (const Tensor& part : parts) shape = broadcast(shape, part.shape());
    Ints sizes = shape.to_vector();
    require(sizes.size() < static_cast<std::size_t>(Shape::max_rank), "indices of shape ",
            shape.str(), " have too many dimensions; there may be ", Shape::max_rank - 1);
    sizes.push_back(1);
    if (parts.size() == 1) {
        made.positions = parts[0].reshape(Shape(sizes));
        return made;
    }
    std::string code = "y0 = ";
    for (std::size_t k = 0; k < parts.size(); ++k) {
        if (k + 1 < parts.size()) code += cat("index(", shape.rank(), ") == ", k, " ? ");
        code += cat('x', k);
        if (k + 1 < parts.size()) code += " : ";
        Ints one = parts[k].shape().to_vector();
        one.push_back(1);
        parts[k] = parts[k].reshape(Shape(one));
    }
    sizes.back() = std::ssize(parts);
    made.positions = computed(code, parts, DType::i64, Shape(sizes));
    return made;
}

}  // namespace

Tensor nonzero(const Tensor& x) {
    const Rows rows = rows_of_nonzero(x, x.shape());
    return rows.all.slice(0, 0, rows.count);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
    require_mask(mask);
    const Shape shape = broadcast(x.shape(), mask.shape());
    const Tensor all = flat(expanded(x, shape));
    const Rows rows = rows_of_nonzero(expanded(mask, shape), all.shape());
    if (rows.count == 0) return {x.context(), Shape{0}, x.dtype()};
    return call(Gather{}, {all, flat(rows.all)}).at(0).slice(0, 0, rows.count);
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
    require_mask(mask);
    require(x.dtype() == source.dtype(), "the tensor is ", name_of(x.dtype()), ", the source ",
            name_of(source.dtype()));
    require_broadcast("a mask", mask.shape(), x.shape());
    const Tensor truths = flat(expanded(mask, x.shape())), all = flat(x);
    const auto copy = [&] { return computed("y0 = x0", {x}, x.dtype()); };
    if (x.shape().empty()) return copy();
    const Tensor counts = running_count(truths);
    if (source.shape().empty()) {
        require(total(counts) == 0, "the source has no elements, and the mask takes some");
        return copy();
    }
    const Tensor positions = computed("y0 = x0 ? x1 - 1 : 0", {truths, counts}, DType::i64);
    const Tensor taken = call(Gather{}, {flat(source), positions}).at(0);
    return computed("y0 = x0 ? x1 : x2", {truths, taken, all}, x.dtype()).reshape(x.shape());
}

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
    const Tuples tuples = tuples_of(x, indices);
    return call(Gather{.mode = "dims", .dims = IntList(tuples.dims)}, {x, tuples.positions}).at(0);
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 bool accumulate, const Tensor& out) {
    const Tuples tuples = tuples_of(x, indices);
    const Attrs attrs{{"mode", std::string("dims")},
                      {"dim", std::int64_t{0}},
                      {"batch_dims", std::int64_t{0}},
                      {"dims", tuples.dims},
                      {"from_end", true}};
    const Indexing indexing(attrs, x.shape(), tuples.positions.shape(), tuples.positions.dtype());
    require_broadcast("values", values.shape(), indexing.values);
    return call(Scatter{.mode = "dims",
                        .dims = IntList(tuples.dims),
                        .reduction = accumulate ? "add" : "none"},
                {x, tuples.positions, expanded(values, indexing.values)}, {}, {.out = {out}})
        .at(0);
}

Tensor take(const Tensor& x, const Tensor& indices) {
    return call(Gather{}, {flat(x), indices}).at(0);
}

Tensor put(const Tensor& x, const Tensor& indices, const Tensor& values, bool accumulate,
           const Tensor& out) {
    require(indices.shape().numel() == values.shape().numel(), "there are ",
            indices.shape().numel(), " indices for ", values.shape().numel(), " values");
    CallOptions how;
    if (out.defined()) {
        require(out.shape() == x.shape(), "the result has shape ", x.shape().str(),
                ", the tensor for it ", out.shape().str());
        how.out = {flat(out)};
    }
    return call(Scatter{.reduction = accumulate ? "add" : "none"},
                {flat(x), flat(indices), flat(values)}, {}, how)
        .at(0)
        .reshape(x.shape());
}

}  // namespace dlprim::ops
