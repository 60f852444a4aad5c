// SPDX-License-Identifier: MIT
// Eager calls whose `out` is an operand, or overlaps one, give what a new tensor would hold.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

struct InPlaceCall {
    const char *type, *options;
    std::vector<Shape> inputs, params;
    std::size_t overwritten;  ///< the operand whose memory the result takes
};

/// Calls whose result has the shape of an operand, but reads other elements of it than it writes.
const std::vector<InPlaceCall> calls{
    {"Transpose", R"({"dims": [1, 0]})", {{60, 60}}, {}, 0},
    {"Sort", R"({"dim": 0})", {{60, 60}}, {}, 0},
    {"MatMul", "{}", {{60, 60}, {60, 60}}, {}, 0},
    {"MatMul", "{}", {{60, 60}, {60, 60}}, {}, 1},
    {"InnerProduct", R"({"outputs": 60, "bias": false})", {{60, 60}}, {{60, 60}}, 0},
    {"InnerProduct", R"({"outputs": 60, "bias": false})", {{60, 60}}, {{60, 60}}, 1},
    {"Convolution2D",
     R"({"channels_out": 16, "kernel": 3, "pad": 1, "bias": false})",
     {{2, 16, 9, 9}},
     {{16, 16, 3, 3}},
     0},
    {"Pooling2D", R"({"mode": "max", "kernel": 3, "stride": 1, "pad": 1})", {{2, 16, 9, 9}}, {}, 0},
    {"Softmax", "{}", {{60, 60}}, {}, 0},
    {"Reshape", R"({"dims": [60, 60]})", {{60, 60}}, {}, 0},
};

std::vector<Tensor> made(const Context& device, const std::vector<Shape>& shapes, unsigned seed) {
    std::vector<Tensor> tensors;
    tensors.reserve(shapes.size());
    for (const Shape& shape : shapes)
        tensors.emplace_back(device, shape,
                             random_floats(static_cast<std::size_t>(shape.numel()), ++seed));
    return tensors;
}

}  // namespace

TEST_CASE("an operand may be the result's memory", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        for (const InPlaceCall& call : calls) {
            INFO(call.type << " over operand " << call.overwritten);
            const std::vector<Tensor> inputs = made(device, call.inputs, 1),
                                      params = made(device, call.params, 11);
            const auto run = [&](const ops::CallOptions& how) {
                return ops::call(call.type, call.options, inputs, params, how).at(0).to_floats();
            };
            const std::vector<float> right = run({});
            std::vector<Tensor> operands = inputs;
            operands.insert(operands.end(), params.begin(), params.end());
            ops::CallOptions how{.out = {operands[call.overwritten]}};
            CHECK(run(how) == right);
            CHECK(operands[call.overwritten].to_floats() == right);
        }
    }
}

TEST_CASE("an operand may share a part of the result's memory", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const auto memory = [&] { return Tensor(device, Shape{5000}, random_floats(5000, 1)); };
        const auto run = [](const Tensor& x, const ops::CallOptions& how) {
            return ops::call("Pointwise", R"json({"code": "y0 = 2 * x0"})json", {x}, {}, how)
                .at(0)
                .to_floats();
        };
        const Tensor whole = memory();
        const Tensor x = whole.slice(0, 0, 4000);
        const std::vector<float> right = run(x, {});
        for (const int shift : {1, 7, 999}) {
            const Tensor other = memory();
            ops::CallOptions how{.out = {other.slice(0, shift, 4000 + shift)}};
            CHECK(run(other.slice(0, 0, 4000), how) == right);
            CHECK(other.slice(0, 0, shift).to_floats() == whole.slice(0, 0, shift).to_floats());
        }
    }
}

TEST_CASE("rows may be gathered and joined into the memory that they come from", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{60, 50}}, 1).at(0);
        Tensor backwards(device, Shape{60}, DType::i64);
        std::vector<std::int64_t> numbers;
        for (std::int64_t i = 59; i >= 0; --i) numbers.push_back(i);
        backwards.copy_from_host(numbers.data(), numbers.size() * sizeof(numbers[0]));
        const auto gather = [&](const ops::CallOptions& how) {
            return ops::call("Gather", "{}", {x, backwards}, {}, how).at(0).to_floats();
        };
        const auto join = [&](const ops::CallOptions& how) {
            return ops::call("Concat", R"({"dim": 0})", {x.slice(0, 20, 60), x.slice(0, 0, 20)}, {},
                             how)
                .at(0)
                .to_floats();
        };
        ops::CallOptions how{.out = {x}};
        const std::vector<float> gathered = gather({});
        CHECK(gather(how) == gathered);
        const std::vector<float> joined = join({});
        CHECK(join(how) == joined);
    }
}

TEST_CASE("a row that is broadcast may lie in the result's memory", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{50, 70}}, 1).at(0);
        const auto run = [&](const ops::CallOptions& how) {
            return ops::call("Elementwise", "{}", {x, x.slice(0, 3, 4)}, {}, how).at(0).to_floats();
        };
        const std::vector<float> right = run({});
        ops::CallOptions how{.out = {x}};
        CHECK(run(how) == right);
    }
}

TEST_CASE("sums may go to a row that is summed", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{50, 70}}, 1).at(0);
        const auto run = [&](const ops::CallOptions& how) {
            return ops::call("Reduction", R"({"dims": [0]})", {x}, {}, how).at(0).to_floats();
        };
        const std::vector<float> right = run({});
        ops::CallOptions how{.out = {x.slice(0, 3, 4)}};
        CHECK(run(how) == right);
    }
}

TEST_CASE("elementwise calls work in place without other memory", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{50, 70}}, 1).at(0),
                     y = made(device, {Shape{50, 70}}, 2).at(0);
        const auto run = [&](const ops::CallOptions& how) {
            return ops::call("Elementwise", R"({"operation": "prod"})", {x, y}, {}, how).at(0);
        };
        const std::vector<float> right = run({}).to_floats();
        ops::CallOptions how{.out = {Tensor(device, Shape{50, 70})}};
        run(how);  // plans
        how.out = {y};
        device.finish();
        const Counters before = device.counters();
        CHECK(run(how).to_floats() == right);
        CHECK(device.counters().launches == before.launches + 1);
        CHECK(device.counters().allocations == before.allocations);
    }
}

TEST_CASE("a gradient may take the memory of its output's gradient", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{60, 60}}, 1).at(0);
        const auto run = [&](const Tensor& dy, const ops::CallOptions& how) {
            return ops::backward("Softmax", "{}", {x}, {}, {dy}, how).at(0).to_floats();
        };
        const Tensor dy = made(device, {Shape{60, 60}}, 2).at(0);
        const std::vector<float> right = run(dy, {});
        ops::CallOptions how{.out = {dy}};
        CHECK(run(dy, how) == right);
    }
}

TEST_CASE("packed weights are packed again once a result lies on them", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const char* const options = R"({"outputs": 60, "bias": false})";
        const Tensor x = made(device, {Shape{60, 60}}, 1).at(0),
                     weight = made(device, {Shape{60, 60}}, 2).at(0);
        const auto product = [&](const Tensor& by, const ops::CallOptions& how) {
            return ops::call("InnerProduct", options, {x}, {by}, how).at(0);
        };
        const Tensor once = product(weight, {});
        const std::vector<float> twice = product(once, {}).to_floats();
        ops::CallOptions how{.out = {weight}};
        product(weight, how);
        CHECK(product(weight, {}).to_floats() == twice);
    }
}

TEST_CASE("two results in the same memory are refused", "[eager_out]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = made(device, {Shape{4, 6}}, 1).at(0), memory(device, Shape{20});
        ops::CallOptions how{.out = {memory.slice(0, 0, 12).reshape({4, 3}),
                                     memory.slice(0, 8, 20).reshape({4, 3})}};
        check_error(ErrorKind::invalid_argument, {"Split", "0 and 1", "overlap"},
                    [&] { ops::call("Split", R"({"parts": 2, "dim": 1})", {x}, {}, how); });
    }
}

TEST_CASE("host memory that was wrapped twice is known to be the same", "[eager_out]") {
    const Context host("cpu");
    std::vector<float> memory = random_floats(3600, 1);
    const Tensor x = Tensor::wrap_host(host, memory.data(), {60, 60}),
                 y = Tensor::wrap_host(host, memory.data(), {60, 60});
    const std::vector<float> right =
        ops::call("Transpose", R"({"dims": [1, 0]})", {x}).at(0).to_floats();
    ops::CallOptions how{.out = {y}};
    ops::call("Transpose", R"({"dims": [1, 0]})", {x}, {}, how);
    CHECK(memory == right);
}
