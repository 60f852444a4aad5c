// SPDX-License-Identifier: MIT
// Activations of infinities and NaN are PyTorch's, whether they run alone or behind a product.
#include "engine/engine.hpp"
#include "net/support.hpp"
#include "plan/trust/trust.hpp"

#include <algorithm>
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

namespace {

/// The softmax of a row and its logarithm, as PyTorch defines them, in double.
std::vector<double> softmax_of(const std::vector<float>& row, bool log) {
    const double top = *std::max_element(row.begin(), row.end());  // NaN is looked for apart
    double sum = 0;
    for (const float x : row) sum += std::exp(x - top);
    std::vector<double> y;
    for (const float x : row) y.push_back(log ? x - top - std::log(sum) : std::exp(x - top) / sum);
    return y;
}

/// Rows whose greatest element so far grows in each run (row_exponentials.cpp), in none, or from
/// minus infinity, and behind them three whose softmax is NaN.
std::vector<std::vector<float>> extreme_rows(std::size_t columns) {
    const auto row_of = [&](const auto& element) {
        std::vector<float> row;
        for (std::size_t i = 0; i < columns; ++i) row.push_back(element(static_cast<float>(i)));
        return row;
    };
    return {row_of([](float i) { return i / 8 - 100; }),
            row_of([](float i) { return -i; }),
            row_of([](float i) { return i < 1500 ? -inf : std::sin(i); }),
            row_of([](float i) { return i == 2999 ? -1e38f : -inf; }),
            row_of([](float i) { return i > 600 ? -inf : i * 1e35f; }),
            row_of([](float) { return -inf; }),
            row_of([](float i) { return i == 1600 ? inf : 0.0f; }),
            row_of([](float i) { return i == 2000 ? no_number : std::cos(i); })};
}

}  // namespace

TEST_CASE("softmax of long rows with infinities and NaN", "[special_values][long_rows]") {
    const EnginesUnchecked unchecked;  // a wrong one is not to be replaced by another
    for (const std::size_t columns : {3000, 3001}) {
        const std::vector<std::vector<float>> rows = extreme_rows(columns);
        std::vector<float> all;
        for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
        for (const Context& device : test_devices())
            for (const bool log : {false, true}) {
                const Tensor x(device, Shape{8, static_cast<std::int64_t>(columns)}, all);
                const std::vector<float> y =
                    ops::call(ops::Softmax{.log = log}, {x})[0].to_floats();
                for (std::size_t r = 0; r < rows.size(); ++r) {
                    INFO(device.info().name << ": row " << r << " of " << columns
                                            << (log ? ", logarithms" : ""));
                    const std::vector<double> wanted = softmax_of(rows[r], log);
                    double worst = 0;
                    for (std::size_t i = 0; i < columns; ++i) {
                        const double found = y[r * columns + i];
                        if (r >= 5)
                            worst += std::isnan(found) ? 0 : 1;
                        else if (found != wanted[i])  // infinities, too
                            worst = std::max(
                                worst, std::abs(found - wanted[i]) / (1e-6 + std::abs(wanted[i])));
                    }
                    CHECK(worst < 1e-5);
                }
            }
    }
}
