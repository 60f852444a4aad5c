// SPDX-License-Identifier: MIT
// Activations of infinities and NaN are PyTorch's, whether they run alone or behind a product.
#include "engine/engine.hpp"
#include "net/support.hpp"

#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> points{-inf, inf, no_number, -3, 3, -5, 1e38f, -1e38f};

bool alike(float a, float b) {
    return std::isnan(a) ? std::isnan(b) : a == b;
}

void check_alike(const std::vector<float>& found, const std::vector<float>& wanted) {
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(points[i], found[i], wanted[i]);
        CHECK(alike(found[i], wanted[i]));
    }
}

}  // namespace

// torch.nn.functional.hardswish, and ONNX's reference: x * min(max(x + 3, 0), 6) / 6, where the
// product of -inf and 0 is NaN.
TEST_CASE("hardswish of infinities and NaN", "[special_values]") {
    const std::vector<float> wanted{no_number, inf, no_number, 0, 3, 0, 1e38f, 0};
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{8, 1}, points);
        const char* const options = R"({"activation": "hardswish"})";
        check_alike(ops::call("Activation", options, {x}).at(0).to_floats(), wanted);
        const Tensor one(device, Shape{1, 1}, {1});
        check_alike(ops::inner_product(x, one, {.activation = "hardswish"}).to_floats(), wanted);
    }
}

TEST_CASE("the gradient of hardswish is 0 at minus infinity", "[special_values]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{5}, {-inf, -3, 3, inf, -5}),
            dy(device, Shape{5}, {1, 1, 1, 1, 1});
        const std::vector<Tensor> made =
            ops::backward("Activation", R"({"activation": "hardswish"})", {x}, {}, {dy});
        CHECK(made.at(0).to_floats() == std::vector<float>{0, 0, 1, 1, 0});
    }
}

// PyTorch takes a NaN where there is one, the last, and otherwise the first of the largest.
TEST_CASE("a maximum of NaN, infinity and ties, and where its gradient goes", "[special_values]") {
    const char* const options = R"({"kernel": 2, "stride": 2})";
    const std::vector<float> plane{1,    no_number, 2,   2, no_number, 0,    2,   2,
                                   -inf, -inf,      inf, 3, -inf,      -inf, inf, 3};
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{1, 1, 4, 4}, plane),
            dy(device, Shape{1, 1, 2, 2}, {1, 2, 3, 4});
        int tried = 0;
        for (const std::string& name : EngineRegistry::instance().names()) {
            const Engine& engine = *EngineRegistry::instance().find(name);
            if (!engine.op().starts_with("Pooling") || engine.on_host() != device.traits().host)
                continue;
            INFO(name);
            ++tried;
            ops::CallOptions how{.engines = {{std::string(engine.op()), name}}};
            const auto y = ops::call("Pooling2D", options, {x}, {}, how).at(0).to_floats();
            CHECK(std::isnan(y[0]));
            CHECK(std::vector<float>(y.begin() + 1, y.end()) == std::vector<float>{2, -inf, inf});
            CHECK(ops::backward("Pooling2D", options, {x}, {}, {dy}, how).at(0).to_floats() ==
                  std::vector<float>{0, 0, 2, 0, 1, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0});
        }
        CHECK(tried >= 2);
    }
}
