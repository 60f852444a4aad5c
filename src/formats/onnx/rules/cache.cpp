// SPDX-License-Identifier: MIT
// TensorScatter: writes rows into a cache, of each batch from its own place on.
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

void tensor_scatter(Call& call) {
    Builder& build = call.build;
    const Ref cache = call.in(0), update = call.in(1);
    const Shape &shape = cache->spec.shape, &rows = update->spec.shape;
    const int axis = call.axis(call.integer("axis", -2), shape.rank());
    const std::string mode = call.text("mode", "linear");
    call.check(mode == "linear" || mode == "circular", "mode '", mode, "' is unknown");
    call.check(axis >= 1 && rows.rank() == shape.rank() && rows[axis] <= shape[axis] &&
                   rows == shape.with(axis, rows[axis]),
               "an update of shape ", rows.str(), " does not fit a cache of shape ", shape.str());
    const std::int64_t batches = shape[0], others = shape.product(1, axis), places = shape[axis],
                       count = rows[axis], inner = shape.product(axis + 1, shape.rank());
    // For every place, which row of the update it takes; none beyond the last one.
    const Ref begin = call.has(2)
                          ? build.reshape(build.cast(call.in(2), DType::i64), {batches, 1, 1})
                          : build.constant("", host_integers({1, 1, 1}, {0}));
    const std::string first =
        mode == "circular" ? "r = index(2) - x0; q = r < 0 ? r + size(2) : r" : "q = index(2) - x0";
    const std::vector<double> number{static_cast<double>(count)};
    const Ref row =
        build.pointwise_of({batches, others, places}, first + "; y0 = q >= 0 && q < p0 ? q : p0",
                           {begin}, DType::i64, number);
    const Ref at = build.pointwise("y0 = (index(0) * size(1) + index(1)) * p0 + min(x0, p0 - 1)",
                                   {row}, number, DType::i64);
    const Ref taken =
        gather_computed(call, build.reshape(update, {batches * others * count, inner}), at, 0);
    const Ref old = build.reshape(cache, {batches, others, places, inner});
    const Ref y = build.pointwise("y0 = x2 < p0 ? x1 : x0",
                                  {old, taken, build.reshape(row, {batches, others, places, 1})},
                                  number, call.dtype(0));
    call.set(0, build.reshape(y, shape));
}

}  // namespace

std::vector<Rule> cache_rules() {
    return {{"TensorScatter", 24, tensor_scatter}};
}

}  // namespace dlprim::onnx
