// SPDX-License-Identifier: MIT
// ops::pointwise() as programs use it, through the public headers: broadcasting, scalars, several
// outputs, reductions with an initial value and a custom combination, types, `out`, errors, and
// gradients through ops::backward().
#include "net/support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

Tensor floats(const Context& device, const Shape& shape, const std::vector<float>& values) {
    REQUIRE(static_cast<std::size_t>(shape.numel()) == values.size());
    Tensor tensor(device, shape, DType::f32);
    tensor.copy_from_host(values.data(), values.size() * sizeof(float));
    return tensor;
}

Tensor random_tensor(const Context& device, const Shape& shape, unsigned seed) {
    return floats(device, shape, random_floats(static_cast<std::size_t>(shape.numel()), seed));
}

std::vector<float> values_of(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().numel()));
    REQUIRE(tensor.bytes() == values.size() * sizeof(float));
    tensor.copy_to_host(values.data(), tensor.bytes());
    return values;
}

constexpr double tolerance = 1e-6;  ///< of the largest magnitude, in sums of hundreds

}  // namespace

TEST_CASE("pointwise: broadcasting and scalars", "[pointwise_api]") {
    ON_EVERY_DEVICE(device) {
        const Tensor a = random_tensor(device, Shape{2, 1, 5}, 1);
        const Tensor b = random_tensor(device, Shape{3, 1}, 2);
        const std::vector<Tensor> made =
            ops::pointwise("y0 = max(x0 * p0 + x1, p1)", {a, b}, {0.5, -0.25});
        REQUIRE(made.size() == 1);
        REQUIRE(made[0].shape() == Shape{2, 3, 5});
        const std::vector<float> x = values_of(a), y = values_of(b);
        std::vector<double> wanted;
        for (std::size_t i = 0; i < 2; ++i)
            for (std::size_t j = 0; j < 3; ++j)
                for (std::size_t k = 0; k < 5; ++k)
                    wanted.push_back(std::max(x[i * 5 + k] * 0.5 + y[j], -0.25));
        check_close(values_of(made[0]), wanted, tolerance);

        // Other scalars, with the same shapes, are another call.
        const Tensor again = ops::pointwise("y0 = max(x0 * p0 + x1, p1)", {a, b}, {-2, -9}).at(0);
        for (std::size_t i = 0; i < wanted.size(); ++i)
            wanted[i] = std::max(x[i / 15 * 5 + i % 5] * -2.0 + y[i / 5 % 3], -9.0);
        check_close(values_of(again), wanted, tolerance);

        // A single number is an operand too.
        const Tensor one = floats(device, Shape{}, {3});
        CHECK(ops::pointwise("y0 = x0 * x0", {one}).at(0).shape() == Shape{});
        CHECK(values_of(ops::pointwise("y0 = x0 * x0", {one}).at(0)).at(0) == 9.0f);
    }
}

TEST_CASE("pointwise: quotients and roots are rounded correctly", "[pointwise_api]") {
    // Where a quotient is a whole number, one unit less in the last place makes its whole part
    // wrong.
    ON_EVERY_DEVICE(device) {
        std::vector<float> dividends, divisors;
        for (int i = 1; i <= 300; ++i)
            for (int j = 1; j <= 100; ++j) {
                dividends.push_back(static_cast<float>(i * j));
                divisors.push_back(static_cast<float>(j));
            }
        const Shape shape{300, 100};
        const Tensor a = floats(device, shape, dividends), b = floats(device, shape, divisors);
        const std::vector<Tensor> made = ops::pointwise(
            "y0 = x0 / x1; y1 = truncdiv(x0, x1); y2 = sqrt(x0); y3 = x1 / x0", {a, b});
        std::vector<float> whole, roots, shares;
        for (std::size_t i = 0; i < dividends.size(); ++i) {
            whole.push_back(std::round(dividends[i] / divisors[i]));
            roots.push_back(std::sqrt(dividends[i]));
            shares.push_back(divisors[i] / dividends[i]);
        }
        CHECK((values_of(made[0]) == whole));
        CHECK((values_of(made[1]) == whole));
        CHECK((values_of(made[2]) == roots));
        CHECK((values_of(made[3]) == shares));
    }
}

TEST_CASE("pointwise: several outputs, elementwise and reduced", "[pointwise_api]") {
    ON_EVERY_DEVICE(device) {
        // Sums of x and of x^2 over all dimensions but C, and an elementwise output besides.
        const Shape shape{3, 7, 5, 11};
        const Tensor x = random_tensor(device, shape, 3);
        const Tensor scale = random_tensor(device, Shape{7, 1, 1}, 4);
        const auto made = ops::pointwise(
            "t = x0 * x1; y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0 * x0); y2 = t + p0;"
            "y3 = max[1](t); y4 = mean[](t)",
            {x, scale}, {1.5});
        REQUIRE(made.size() == 5);
        CHECK(made[0].shape() == Shape{1, 7, 1, 1});
        CHECK(made[1].shape() == Shape{1, 7, 1, 1});
        CHECK(made[2].shape() == shape);
        CHECK(made[3].shape() == Shape{3, 1, 5, 11});
        CHECK(made[4].shape() == Shape{1, 1, 1, 1});
        const std::vector<float> v = values_of(x), s = values_of(scale);
        std::vector<double> sum(7), squares(7), each, mean(1),
            top(3 * 55, -std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < v.size(); ++i) {
            const std::size_t c = i / 55 % 7;
            const double t = static_cast<double>(v[i]) * s[c];
            sum[c] += v[i];
            squares[c] += static_cast<double>(v[i]) * v[i];
            each.push_back(t + 1.5);
            double& most = top[i / (55 * 7) * 55 + i % 55];
            most = std::max(most, t);
            mean[0] += t / static_cast<double>(v.size());
        }
        check_close(values_of(made[0]), sum, tolerance);
        check_close(values_of(made[1]), squares, tolerance);
        check_close(values_of(made[2]), each, tolerance);
        check_close(values_of(made[3]), top, tolerance);
        check_close(values_of(made[4]), mean, 1e-5);  // the numbers cancel
    }
}

TEST_CASE("pointwise: initial values and combinations of one's own", "[pointwise_api]") {
    ON_EVERY_DEVICE(device) {
        const Shape shape{4, 6, 37};
        const Tensor x = random_tensor(device, shape, 5);
        const auto made = ops::pointwise(
            "y0 = reduce[0,2; 10; a + b](x0); y1 = reduce[0,2; -0.5; a + b](x0 * x0);"
            "y2 = reduce[0,2; 0.99; max(a, b)](x0);"
            "y3 = reduce[0,2; 0; a + b + a * b](x0 * p0);"
            "y4 = reduce[; 3; abs(a) > abs(b) ? a : b](x0)",
            {x}, {0.01});
        REQUIRE(made.size() == 5);
        const std::vector<float> v = values_of(x);
        std::vector<double> sum(6, 10), squares(6, -0.5), top(6, static_cast<double>(0.99f)),
            grown(6, 1);
        for (std::size_t i = 0; i < v.size(); ++i) {
            const std::size_t c = i / 37 % 6;
            sum[c] += v[i];
            squares[c] += static_cast<double>(v[i]) * v[i];
            top[c] = std::max<double>(top[c], v[i]);
            grown[c] *= 1 + 0.01 * v[i];  // (1 + a) (1 + b) = 1 + (a + b + a b)
        }
        for (double& g : grown) g -= 1;
        check_close(values_of(made[0]), sum, tolerance);
        check_close(values_of(made[1]), squares, tolerance);
        check_close(values_of(made[2]), top, tolerance);
        check_close(values_of(made[3]), grown, 1e-5);  // sums of 148 terms that cancel
        CHECK(values_of(made[4]) == std::vector<float>{3});
    }
}

TEST_CASE("pointwise: types, results in memory that is there, errors", "[pointwise_api]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<std::int32_t> numbers{16777217, -5, 0, 7};
        Tensor n(device, Shape{4}, DType::i32);
        n.copy_from_host(numbers.data(), n.bytes());
        const Tensor tripled = ops::pointwise("y0 = x0 * 3 - 1", {n}).at(0);
        REQUIRE(tripled.dtype() == DType::i32);
        std::vector<std::int32_t> found(4);
        tripled.copy_to_host(found.data(), tripled.bytes());
        CHECK(found == std::vector<std::int32_t>{50331650, -16, -1, 20});
        // Integers and floats are combined in float.
        const Tensor half = floats(device, Shape{1}, {0.5f});
        CHECK(values_of(ops::pointwise("y0 = x0 * x1", {n, half}).at(0)).at(3) == 3.5f);

        ops::CallOptions how{.out = {Tensor(device, Shape{2, 2}, DType::f32)}};
        const Tensor x = floats(device, Shape{2, 2}, {1, 2, 3, 4});
        const Tensor given = ops::pointwise("y0 = x0 * x0", {x}, {}, how).at(0);
        CHECK(given.shares_memory(how.out[0]));
        CHECK(values_of(how.out[0]) == std::vector<float>{1, 4, 9, 16});

        check_error(ErrorKind::invalid_argument, {"column"},
                    [&] { ops::pointwise("y0 = x0 +* 1", {x}); });
        check_error(ErrorKind::invalid_argument, {"[2, 2]", "[3]"}, [&] {
            ops::pointwise("y0 = x0 + x1", {x, floats(device, Shape{3}, {1, 2, 3})});
        });
    }
}

TEST_CASE("pointwise: gradients", "[pointwise_api]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = random_tensor(device, Shape{5, 3, 8}, 6);
        const Tensor scale = random_tensor(device, Shape{3, 1}, 7);
        const std::string code =
            R"json({"code": "y0 = x0 * x1 * x1; y1 = reduce[0,2; 4; a + b](x0 * x0);)json"
            R"json( y2 = reduce[2; 0.8; max(a, b)](x0); y3 = min[0,2](x0)"})json";
        const std::vector<Tensor> made = ops::call("Pointwise", code, {x, scale});
        std::vector<Tensor> dys;
        std::vector<std::vector<float>> d;
        for (std::size_t k = 0; k < made.size(); ++k) {
            dys.push_back(random_tensor(device, made[k].shape(), 20 + static_cast<unsigned>(k)));
            d.push_back(values_of(dys.back()));
        }
        const auto gradients = ops::backward("Pointwise", code, {x, scale}, {}, dys);
        REQUIRE(gradients.size() == 2);
        const std::vector<float> v = values_of(x), s = values_of(scale), top = values_of(made[2]),
                                 low = values_of(made[3]);
        std::vector<double> dx, ds(3);
        bool start_won = false, element_won = false;
        for (std::size_t i = 0; i < v.size(); ++i) {
            const std::size_t c = i / 8 % 3, row = i / 8;
            double g = static_cast<double>(d[0][i]) * s[c] * s[c] + 2.0 * d[1][c] * v[i];
            if (v[i] == top[row]) g += d[2][row];
            if (v[i] == low[c]) g += d[3][c];
            start_won = start_won || top[row] == 0.8f;
            element_won = element_won || top[row] > 0.8f;
            dx.push_back(g);
            ds[c] += static_cast<double>(d[0][i]) * v[i] * 2 * s[c];
        }
        CHECK(start_won);  // otherwise the case above tests nothing
        CHECK(element_won);
        check_close(values_of(gradients[0]), dx, tolerance);
        check_close(values_of(gradients[1]), ds, tolerance);

        // Equal extremes share the gradient.
        const Tensor equal = floats(device, Shape{4}, {2, 1, 2, -3});
        const Tensor dy = floats(device, Shape{1}, {6});
        const auto shared =
            ops::backward("Pointwise", R"json({"code": "y0 = max[](x0)"})json", {equal}, {}, {dy});
        CHECK(values_of(shared.at(0)) == std::vector<float>{3, 0, 3, 0});

        check_error(ErrorKind::unsupported, {"combination of its own"}, [&] {
            ops::backward("Pointwise", R"json({"code": "y0 = reduce[; 0; a + b + a * b](x0)"})json",
                          {equal}, {}, {dy});
        });
    }
}
