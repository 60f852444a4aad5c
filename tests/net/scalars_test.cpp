// SPDX-License-Identifier: MIT
// Scalars of Pointwise programs that come with each call (CallOptions::scalars): other values plan
// and compile nothing, they arrive exactly, and programs have their gradients.
#include "engine/pointwise/philox.hpp"
#include "exec/eager.hpp"
#include "net/support.hpp"
#include "runtime/access.hpp"

#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

ops::CallOptions with(std::vector<Scalar> scalars) {
    ops::CallOptions how;
    how.scalars = std::move(scalars);
    return how;
}

bool computes_doubles(const Context& device) {
    return device.info().id == "host" || Access::impl(device).traits().fp64;
}

}  // namespace

TEST_CASE("scalars: another value is a launch alone", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = tensor_of<float>(device, DType::f32, {1, 2, 3, 4, 5, 6, 7});
        const Attrs program{{"code", std::string("y0 = x0 * p0 + p1; y1 = sum[0](x0 * p1)")}};
        const auto call = [&](double a, double b) {
            return ops::pointwise("y0 = x0 * p0 + p1; y1 = sum[0](x0 * p1)", {x}, {a, b});
        };
        CHECK(values_of<float>(call(2, 1).at(0)) == std::vector<float>{3, 5, 7, 9, 11, 13, 15});
        call(4, 5);
        device.finish();
        const Counters before = device.counters();
        const Plan* const plan =
            &eager_plan("Pointwise", program, std::vector<Tensor>{x}, {}, {}, with({1.0, 1.0}));
        for (int i = 0; i < 5; ++i) {
            const auto made = call(i, 0.5 * i);
            const auto y = values_of<float>(made.at(0));
            for (std::size_t j = 0; j < y.size(); ++j)
                CHECK(y[j] == static_cast<float>(i) * static_cast<float>(j + 1) + 0.5f * i);
            CHECK(values_of<float>(made.at(1)).at(0) == 14.0f * i);
        }
        const Counters after = device.counters();
        CHECK(after.compiles == before.compiles);
        CHECK(after.cache_hits == before.cache_hits);
        CHECK(after.allocations == before.allocations);
        CHECK(after.launches - before.launches <= 10);  // the sums may take two
        CHECK(plan ==
              &eager_plan("Pointwise", program, std::vector<Tensor>{x}, {}, {}, with({3.0, -1.0})));
    }
}

TEST_CASE("scalars: integers of 64 bits, doubles and floats arrive exactly", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const std::int64_t large = (std::int64_t{1} << 53) + 1;
        const std::int64_t low = std::numeric_limits<std::int64_t>::min() + 3;
        const ops::Pointwise sum{.code = "y0 = x0 + p0; y1 = x0 == p0; y2 = bitxor(x0, p1)"};
        const Tensor whole = tensor_of<std::int64_t>(device, DType::i64, {0, large, -large});
        for (int i = 0; i < 2; ++i) {
            const std::int64_t n = large + i;
            const auto made = ops::call(sum, {whole}, {}, with({n, low}));
            REQUIRE(made.at(0).dtype() == DType::i64);
            CHECK(values_of<std::int64_t>(made[0]) == std::vector<std::int64_t>{n, n + large, i});
            CHECK(values_of<std::int64_t>(made[1]) ==
                  std::vector<std::int64_t>{0, i == 0 ? 1 : 0, 0});
            CHECK(values_of<std::int64_t>(made[2]) ==
                  std::vector<std::int64_t>{low, low ^ large, low ^ -large});
        }
        // The bits of unsigned integers go into signed ones.
        const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
        const Tensor naturals = tensor_of<std::uint64_t>(device, DType::u64, {0, 5});
        const auto shifted = ops::call(ops::Pointwise{.code = "y0 = p0 - x0"}, {naturals}, {},
                                       with({static_cast<std::int64_t>(most)}));
        REQUIRE(shifted.at(0).dtype() == DType::u64);
        CHECK(values_of<std::uint64_t>(shifted[0]) == std::vector<std::uint64_t>{most, most - 5});

        // A program on floats rounds once; a fraction makes integers floats, as an option does.
        const Tensor ones = tensor_of<float>(device, DType::f32, {1, 2});
        const ops::Pointwise product{.code = "y0 = x0 * p0"};
        const std::int64_t odd = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
        CHECK(values_of<float>(ops::call(product, {ones}, {}, with({odd})).at(0)).at(0) ==
              static_cast<float>(odd));
        const Tensor scaled = ops::call(product, {whole}, {}, with({0.5})).at(0);
        REQUIRE(scaled.dtype() == DType::f32);
        CHECK(values_of<float>(scaled).at(1) == 0x1p52f);
        const Tensor truth(device, Shape{2}, DType::boolean);
        CHECK(ops::call(product, {truth}, {}, with({std::int64_t{3}})).at(0).dtype() == DType::i64);

        if (!computes_doubles(device)) continue;
        const Tensor real = tensor_of<double>(device, DType::f64, {1, 3});
        for (const double third : {1.0 / 3, 0.1}) {
            const auto y = values_of<double>(ops::call(product, {real}, {}, with({third})).at(0));
            CHECK(y == std::vector<double>{third, 3 * third});
        }
        CHECK(values_of<double>(ops::call(product, {real}, {}, with({large - 2})).at(0)).at(0) ==
              static_cast<double>(large - 2));
    }
}

TEST_CASE("scalars: quotients of wide integers", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const std::int64_t most = std::numeric_limits<std::int64_t>::max();
        const std::int64_t least = std::numeric_limits<std::int64_t>::min();
        const Tensor x =
            tensor_of<std::int64_t>(device, DType::i64, {most, least, most - 1, -7, 7});
        const ops::Pointwise program{
            .code =
                "y0 = floordiv(x0, p0); y1 = truncdiv(x0, p0); y2 = fmod(x0, p0); "
                "y3 = remainder(x0, p0)"};
        const auto by = [&](std::int64_t divisor) {
            std::vector<std::vector<std::int64_t>> found;
            for (const Tensor& y : ops::call(program, {x}, {}, with({divisor})))
                found.push_back(values_of<std::int64_t>(y));
            return found;
        };
        using Lists = std::vector<std::vector<std::int64_t>>;
        CHECK(by(2) == Lists{{most / 2, least / 2, most / 2, -4, 3},
                             {most / 2, least / 2, most / 2, -3, 3},
                             {1, 0, 0, -1, 1},
                             {1, 0, 0, 1, 1}});
        CHECK(by(-2) == Lists{{-(most / 2) - 1, -(least / 2), -(most / 2), 3, -4},
                              {-(most / 2), -(least / 2), -(most / 2), 3, -3},
                              {1, 0, 0, -1, 1},
                              {-1, 0, 0, -1, -1}});
        // Nothing stops the processor.
        const std::vector<std::int64_t> zeros(5, 0);
        CHECK(by(0) == Lists{zeros, zeros, zeros, zeros});
        const std::vector<std::int64_t> negated{-most, least, 1 - most, 7, -7};
        CHECK(by(-1) == Lists{negated, negated, zeros, zeros});
    }
}

TEST_CASE("scalars: gradients", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = tensor_of<float>(device, DType::f32, {1, -2, 3});
        const ops::Pointwise program{.code = "y0 = x0 * x0 * p1; y1 = max[0](x0 * p0)"};
        const Tensor dy = tensor_of<float>(device, DType::f32, {1, 10, 100});
        const Tensor one = tensor_of<float>(device, DType::f32, {1});
        const auto gradient = [&](double a, double b) {
            return values_of<float>(ops::backward(program, {x}, {}, {dy, one}, with({a, b})).at(0));
        };
        CHECK(gradient(2, 0.5) == std::vector<float>{1, -20, 302});
        const Counters before = device.counters();
        CHECK(gradient(-3, 2) == std::vector<float>{4, -83, 1200});
        const Counters after = device.counters();
        CHECK(after.compiles == before.compiles);
        CHECK(after.cache_hits == before.cache_hits);
    }
}

TEST_CASE("scalars: the keys of random numbers", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const ops::Pointwise random{
            .code = "y0 = uniform(p0, p1, p2)", .dtypes = {DType::f32}, .shape = {41}};
        ops::CallOptions how{
            .out = {Tensor(device, Shape{41}, DType::f32)}};  // without inputs it says where to run
        const auto draw = [&](std::int64_t seed, std::int64_t step) {
            how.scalars = {seed, step, std::int64_t{7}};
            return values_of<float>(ops::call(random, {}, {}, how).at(0));
        };
        const std::vector<float> first = draw(3, 4);
        CHECK(first == draw(3, 4));
        const Tensor shape_giver(device, Shape{41}, DType::f32);
        CHECK(first == values_of<float>(
                           ops::call(ops::Pointwise{.code = "y0 = uniform(3, 4, 7)", .shape = {41}},
                                     {shape_giver})
                               .at(0)));
        CHECK(first != draw(3, 5));
        const std::int64_t large = std::int64_t{1} << 53;
        CHECK(draw(large, 0) != draw(large + 1, 0));
        CHECK(draw(-1, 0) != draw(-2, 0));
    }
}

TEST_CASE("scalars: random numbers are the same bits everywhere", "[scalars]") {
    constexpr std::int64_t count = 20011;
    ON_EVERY_DEVICE(device) {
        ops::Pointwise program{.code = "y0 = normal(p0, p1, p2); y1 = uniform(p0, p1, p2)",
                               .dtypes = {DType::f32},
                               .shape = {count}};
        ops::CallOptions how{.out = {Tensor(device, Shape{count}, DType::f32)}};
        const pointwise::RandomKey key{0x123456789abcdef0u, 0xfedcba9876543210u, 5u};
        how.scalars = {static_cast<std::int64_t>(key.seed), static_cast<std::int64_t>(key.step),
                       static_cast<std::int64_t>(key.id)};
        const auto made = ops::call(program, {}, {}, how);
        const std::vector<float> normal = values_of<float>(made[0]);
        const std::vector<float> uniform = values_of<float>(made[1]);
        double mean = 0, square = 0, fourth = 0;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < normal.size(); ++i) {
            wrong += normal[i] != pointwise::normal(key, i);
            wrong += uniform[i] != pointwise::uniform(key, i);
            const double x = normal[i];
            mean += x / count;
            square += x * x / count;
            fourth += x * x * x * x / count;
        }
        CHECK(wrong == 0);
        CHECK(std::fabs(mean) < 4 / std::sqrt(double(count)));
        CHECK(std::fabs(square - 1) < 6 / std::sqrt(double(count)));
        CHECK(std::fabs(fourth - 3) < 40 / std::sqrt(double(count)));

        // Integers of 64 bits from two words.
        program.code = "y0 = bitor(shl(random(p0, p1, 0), 32), random(p0, p1, 1)); y1 = index(0)";
        program.dtypes = {DType::i64};
        how.out = {Tensor(device, Shape{count}, DType::i64)};
        const auto whole = ops::call(program, {}, {}, how);
        const auto words = values_of<std::int64_t>(whole[0]);
        for (std::size_t i = 0; i < words.size(); i += 1000) {
            const std::uint64_t high = pointwise::random_words({key.seed, key.step, 0}, i)[0];
            const std::uint64_t low = pointwise::random_words({key.seed, key.step, 1}, i)[0];
            CHECK(words[i] == static_cast<std::int64_t>(high << 32 | low));
        }
    }
}

TEST_CASE("scalars: errors", "[scalars]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = tensor_of<float>(device, DType::f32, {1, 2});
        check_error(invalid, {"Softmax", "scalars"},
                    [&] { ops::call(ops::Softmax{.axis = 0}, {x}, {}, with({1.0})); });
        check_error(invalid, {"p1", "1 values"}, [&] {
            ops::call(ops::Pointwise{.code = "y0 = x0 * p1"}, {x}, {}, with({1.0}));
        });
        check_error(invalid, {"one place"}, [&] {
            ops::call(ops::Pointwise{.code = "y0 = x0 * p0", .scalars = {2}}, {x}, {}, with({1.0}));
        });
        check_error(invalid, {"twice"},
                    [&] { ops::pointwise("y0 = x0 * p0", {x}, {2}, with({1.0})); });
        check_error(invalid, {"at least one tensor"},
                    [&] { ops::call(ops::Pointwise{.code = "y0 = 1", .shape = {2}}, {}); });
    }
}
