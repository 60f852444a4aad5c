// SPDX-License-Identifier: MIT
// Eager calls on strided views give what they give on copies without gaps.
#include "net/support.hpp"

#include <algorithm>
#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A way to lay a tensor of any shape out in memory.
enum class ViewKind { odd_offset, reversed, channels_last, steps, expanded, last_expanded };
const std::vector<std::pair<ViewKind, const char*>> view_kinds{
    {ViewKind::odd_offset, "odd offset"},
    {ViewKind::reversed, "reversed"},
    {ViewKind::channels_last, "channels last"},
    {ViewKind::steps, "steps"},
    {ViewKind::expanded, "expanded"},
    {ViewKind::last_expanded, "last dimension expanded"}};

/// Strides for an order of the dimensions, outermost first.
std::vector<std::int64_t> strides_in_order(const Shape& shape, const std::vector<int>& order,
                                           std::int64_t step) {
    std::vector<std::int64_t> strides(order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[static_cast<std::size_t>(order[i])] = step;
        step *= std::max<std::int64_t>(1, shape[order[i]]);
    }
    return strides;
}

/// A view of the shape that lies in memory as `kind` says. Its elements are still undefined.
Tensor laid_out(const Context& device, ViewKind kind, const Shape& shape, DType dtype) {
    const int rank = shape.rank();
    std::vector<int> order;
    for (int d = 0; d < rank; ++d) order.push_back(kind == ViewKind::reversed ? rank - 1 - d : d);
    if (kind == ViewKind::channels_last && rank > 2) {
        order.erase(order.begin() + 1);
        order.push_back(1);
    }
    if (kind == ViewKind::expanded || kind == ViewKind::last_expanded) {
        if (rank == 0) return Tensor(device, shape, dtype);
        const int d = kind == ViewKind::expanded ? 0 : rank - 1;
        return Tensor(device, shape.with(d, 1), dtype).expand(shape);
    }
    const std::int64_t step = kind == ViewKind::steps ? 3 : 1,
                       offset = kind == ViewKind::odd_offset ? 5 : 0;
    const Tensor memory(device, {shape.numel() * step + offset + 1}, dtype);
    return memory.view(shape, strides_in_order(shape, order, step), offset);
}

struct ViewOperand {
    Shape shape;
    DType dtype = DType::f32;
    int classes = 0;  ///< integers below that, or 0 for any numbers
};

ViewOperand of(const Shape& shape, DType dtype = DType::f32, int classes = 0) {
    return {shape, dtype, classes};
}

struct ViewCall {
    std::string type, options;
    std::vector<ViewOperand> inputs, params = {};
    bool training = false, backward = true;
};

constexpr DType f16 = DType::f16, i32 = DType::i32, i64 = DType::i64;
const std::vector<ViewCall> view_calls{
    {"Activation", R"({"activation": "gelu"})", {of({3, 4, 5, 6})}},
    {"Activation", R"({"activation": "relu"})", {of({3, 8, 5, 6}, f16)}},
    {"Activation", R"({"activation": "relu"})", {of({1})}},
    {"Activation", R"({"activation": "relu"})", {of({0, 3})}},
    {"Elementwise", "{}", {of({3, 4, 5, 6}), of({3, 4, 5, 6})}},
    {"Pointwise", R"({"code": "y0 = x0 * x1 + x2"})", {of({3, 4, 5}), of({4, 1}), of({5})}},
    {"Pointwise", R"({"code": "y0 = x0 * x1 - 3"})", {of({3, 40}, i64, 100), of({3, 40}, i32, 50)}},
    {"Pointwise", R"json({"code": "y0 = x0 + index(1); y1 = sum[0,2](x0)"})json", {of({7, 5, 6})}},
    {"Pointwise", R"json({"code": "y0 = exp(x0)"})json", {of({2050})}},
    {"Reduction", R"({"method": "sumsq", "dims": [1]})", {of({3, 400, 5})}},
    {"Softmax", R"({"axis": 1})", {of({3, 40, 5})}},
    {"LayerNorm", R"({"dims": 1})", {of({6, 40})}, {of({40}), of({40})}},
    {"BatchNorm", "{}", {of({4, 8, 5, 5})}, {of({8}), of({8}), of({8}), of({8})}, true},
    {"Convolution2D",
     R"({"channels_out": 8, "kernel": 3, "pad": 1})",
     {of({2, 8, 6, 7})},
     {of({8, 8, 3, 3}), of({8})}},
    {"Pooling2D", R"({"mode": "max", "kernel": 2, "stride": 2})", {of({2, 8, 6, 6})}},
    {"MatMul", "{}", {of({17, 9}), of({9, 20})}},
    {"MatMul", R"({"transpose_b": true})", {of({2, 6, 9}), of({2, 7, 9})}},
    {"InnerProduct", R"({"outputs": 12})", {of({6, 20})}, {of({12, 20}), of({12})}},
    {"Concat", R"({"dim": 1})", {of({3, 4, 5}), of({3, 2, 5})}},
    {"Slice", R"({"dim": 1, "begin": 1, "end": 5})", {of({3, 6, 5})}},
    {"Transpose", R"({"dims": [2, 0, 1]})", {of({3, 6, 5}, f16)}},
    {"Reshape", R"({"dims": [9, 10]})", {of({3, 6, 5})}},
    {"Gather", "{}", {of({7, 5}), of({4, 3}, i64, 7)}},
    {"Embedding",
     R"({"num_embeddings": 9, "embedding_dim": 4})",
     {of({3, 5}, i32, 9)},
     {of({9, 4})}},
    {"Cast", R"({"dtype": "int32"})", {of({3, 7, 5})}, {}, false, false},
    {"Sort", R"({"dim": 1})", {of({3, 9})}},
};

/// Strided views and copies of them without gaps.
struct Pair {
    std::vector<Tensor> views, copies;
};

Tensor plain_copy(const Tensor& view) {
    std::vector<std::byte> raw(view.bytes());
    view.copy_to_host(raw.data(), raw.size());
    Tensor copy(view.context(), view.shape(), view.dtype());
    copy.copy_from_host(raw.data(), raw.size());
    return copy;
}

Pair operands(const Context& device, ViewKind kind, const std::vector<ViewOperand>& wanted,
              unsigned seed) {
    Pair pair;
    for (const ViewOperand& operand : wanted) {
        Tensor view = laid_out(device, kind, operand.shape, operand.dtype);
        std::vector<float> values =
            random_floats(static_cast<std::size_t>(operand.shape.numel()), ++seed, 0.1, 2);
        if (operand.classes > 0)
            for (float& value : values)
                value = std::floor(value / 2.1f * static_cast<float>(operand.classes));
        view.copy_from(values);
        pair.views.push_back(view);
        pair.copies.push_back(plain_copy(view));
    }
    return pair;
}

void check_same(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        INFO("tensor " << i);
        REQUIRE(found[i].defined() == wanted[i].defined());
        if (!found[i].defined()) continue;
        CHECK(found[i].shape() == wanted[i].shape());
        CHECK(found[i].dtype() == wanted[i].dtype());
        if (found[i].shape().empty()) continue;
        const double relative = found[i].dtype() == DType::f16 ? 2e-3 : 1e-5;
        check_close(found[i].to_floats(), wanted[i].to_doubles(), relative);
    }
}

/// Empty tensors of the results' shapes in views of that kind.
std::vector<Tensor> places_like(const std::vector<Tensor>& results, ViewKind kind) {
    std::vector<Tensor> places;
    for (const Tensor& result : results)
        places.push_back(laid_out(result.context(), kind, result.shape(), result.dtype()));
    return places;
}

void check_call(const Context& device, const ViewCall& call, ViewKind kind) {
    const Pair inputs = operands(device, kind, call.inputs, 1);
    const bool expands = kind == ViewKind::expanded || kind == ViewKind::last_expanded;
    // Running statistics are written, so no element may be repeated.
    const Pair params = operands(device, expands ? ViewKind::steps : kind, call.params, 100);
    ops::CallOptions how{.training = call.training};
    const std::vector<Tensor> wanted =
        ops::call(call.type, call.options, inputs.copies, params.copies, how);
    check_same(ops::call(call.type, call.options, inputs.views, params.views, how), wanted);
    check_same(params.views, params.copies);  // running statistics
    if (!expands) {
        ops::CallOptions into = how;
        into.out = places_like(wanted, kind);
        const auto written = ops::call(call.type, call.options, inputs.copies, params.copies, into);
        ops::call(call.type, call.options, inputs.views, params.views, how);  // the same updates
        check_same(into.out, wanted);
        check_same(written, wanted);
    }
    if (!call.backward) return;
    std::vector<ViewOperand> gradients;
    for (const Tensor& result : wanted)
        if (result.dtype() == DType::f32 || result.dtype() == f16)
            gradients.push_back({result.shape(), result.dtype()});
    if (gradients.empty()) return;
    const Pair given = operands(device, kind, gradients, 200);
    const auto right =
        ops::backward(call.type, call.options, inputs.copies, params.copies, given.copies, how);
    check_same(ops::backward(call.type, call.options, inputs.views, params.views, given.views, how),
               right);
}

}  // namespace

TEST_CASE("calls take strided views", "[eager_views]") {
    ON_EVERY_DEVICE(device) {
        for (const ViewCall& call : view_calls)
            for (const auto& [kind, name] : view_kinds) {
                INFO(call.type << " " << call.options << " on views: " << name);
                check_call(device, call, kind);
            }
    }
}

TEST_CASE("calls on strided views neither wait nor allocate", "[eager_views]") {
    ON_EVERY_DEVICE(device) {
        for (const ViewCall& call : view_calls) {
            INFO(call.type << " " << call.options);
            const Pair inputs = operands(device, ViewKind::reversed, call.inputs, 1);
            const Pair params = operands(device, ViewKind::reversed, call.params, 100);
            ops::CallOptions how{.training = call.training};
            const auto results =
                ops::call(call.type, call.options, inputs.views, params.views, how);
            how.out = places_like(results, ViewKind::reversed);
            const auto run = [&] {
                ops::call(call.type, call.options, inputs.views, params.views, how);
            };
            run(), run(), run();
            const Counters before = device.counters();
            run();
            const Counters after = device.counters();
            CHECK(after.waits == before.waits);
            CHECK(after.allocations == before.allocations);
            CHECK(after.compiles == before.compiles);
        }
    }
}

TEST_CASE("strides are read and written in the launch itself", "[eager_views]") {
    ON_EVERY_DEVICE(device) {
        const auto launches = [&](const ViewCall& call, ViewKind kind, bool strided_out) {
            const Pair inputs = operands(device, kind, call.inputs, 1);
            const Pair params = operands(device, kind, call.params, 100);
            ops::CallOptions how;
            const auto results =
                ops::call(call.type, call.options, inputs.views, params.views, how);
            if (strided_out) how.out = places_like(results, kind);
            ops::call(call.type, call.options, inputs.views, params.views, how);
            const std::uint64_t before = device.counters().launches;
            ops::call(call.type, call.options, inputs.views, params.views, how);
            return device.counters().launches - before;
        };
        const ViewCall add{"Elementwise", "{}", {of({3, 4, 5, 6}), of({3, 4, 5, 6})}};
        const ViewCall half{"Activation", R"({"activation": "tanh"})", {of({30, 41}, f16)}};
        const ViewCall slice{"Slice", R"({"dim": 1, "begin": 1, "end": 5})", {of({3, 6, 5})}};
        const ViewCall concat{"Concat", R"({"dim": 1})", {of({3, 4, 5}), of({3, 2, 5})}};
        for (const auto& [kind, name] : view_kinds) {
            INFO(name);
            const bool expands = kind == ViewKind::expanded || kind == ViewKind::last_expanded;
            for (const bool strided_out : {false, true}) {
                if (strided_out && expands) continue;
                CHECK(launches(add, kind, strided_out) == 1);
                CHECK(launches(half, kind, strided_out) == 1);
                CHECK(launches(slice, kind, strided_out) == 1);
                CHECK(launches(concat, kind, strided_out) <= 2);
            }
        }
    }
}

TEST_CASE("transposed matrices are read by the product itself", "[eager_views]") {
    ON_EVERY_DEVICE(device) {
        const auto random = [&](const Shape& shape, unsigned seed) {
            return Tensor(device, shape,
                          random_floats(static_cast<std::size_t>(shape.numel()), seed));
        };
        const Tensor x = random({30, 17}, 1), weight = random({40, 17}, 2),
                     dy = random({30, 40}, 3);
        const auto count = [&](const auto& run) {
            run();
            const std::uint64_t before = device.counters().launches;
            const std::vector<Tensor> results = run();
            return std::pair(device.counters().launches - before, results);
        };
        const ops::MatMul turned{.transpose_b = true};
        const auto [direct, wanted] = count([&] { return ops::call(turned, {x, weight}); });
        const auto [viewed, found] = count([&] {
            return ops::call(ops::MatMul{}, {x, weight.transpose(0, 1)});
        });
        CHECK(viewed == direct);
        check_same(found, wanted);

        const Tensor packed = weight.transpose(0, 1).to_contiguous();
        const auto [inner, y] = count(
            [&] { return std::vector<Tensor>{ops::inner_product(x, packed.transpose(0, 1))}; });
        check_same(y, wanted);
        CHECK(inner <= direct + 1);

        const auto [backward, wanted_gradients] = count([&] {
            return ops::backward(turned, {x, weight}, {}, {dy});
        });
        const auto [viewed_backward, gradients] = count([&] {
            return ops::backward(ops::MatMul{}, {x, weight.transpose(0, 1)}, {},
                                 {dy.transpose(0, 1).to_contiguous().transpose(0, 1)});
        });
        CHECK(viewed_backward <= backward + 1);
        check_same({gradients[0], gradients[1].transpose(0, 1).to_contiguous()}, wanted_gradients);
    }
}

TEST_CASE("a result must not be a view that repeats an element", "[eager_views]") {
    const Context host("cpu");
    const Tensor x(host, {2, 3}, {1, 2, 3, 4, 5, 6});
    ops::CallOptions how{.out = {Tensor(host, {1, 3}).expand({2, 3})}};
    check_error(invalid, {"Abs", "out tensor 0", "same memory"},
                [&] { ops::call("Abs", "{}", {x}, {}, how); });
}
