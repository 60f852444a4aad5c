// SPDX-License-Identifier: MIT
// Calls that choose elements (dlprim/selection.hpp), and what the tables of cases cannot say of
// ArgReduce, Scan, Sort and Scatter: integers of 64 bits, NaNs, infinities, and long sums.
#include "net/support.hpp"

#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Int64s = std::vector<std::int64_t>;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;  // no double is this number

template <typename T>
Tensor made(const Context& device, const Shape& shape, const std::vector<T>& values, DType dtype) {
    Tensor tensor(device, shape, dtype);
    if (!values.empty()) tensor.copy_from_host(values.data(), values.size() * sizeof(T));
    return tensor;
}

Tensor int64s(const Context& device, const Shape& shape, const Int64s& values) {
    return made(device, shape, values, DType::i64);
}

Tensor mask_of(const Context& device, const Shape& shape, const std::vector<std::uint8_t>& values) {
    return made(device, shape, values, DType::boolean);
}

Int64s integers_of(const Tensor& tensor) {
    REQUIRE(tensor.dtype() == DType::i64);
    Int64s values(static_cast<std::size_t>(tensor.shape().numel()));
    if (!values.empty()) tensor.copy_to_host(values.data(), values.size() * sizeof(values[0]));
    return values;
}

/// 0, 1, 2, ... in this shape.
Tensor counted(const Context& device, const Shape& shape) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(i));
    return {device, shape, values};
}

}  // namespace

TEST_CASE("integers of 64 bits are compared, added and sorted exactly", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Int64s values{large, large + 1, -large, large + 1, 3};
        const Tensor x = int64s(device, Shape{5}, values);
        const auto most = ops::call(ops::ArgReduce{}, {x});
        CHECK(integers_of(most[0]) == Int64s{large + 1});
        CHECK(integers_of(most[1]) == Int64s{1});
        CHECK(integers_of(ops::call(ops::Scan{}, {x})[0]) ==
              Int64s{large, 2 * large + 1, large + 1, 2 * large + 2, 2 * large + 5});
        const auto running = ops::call(ops::Scan{.method = "max"}, {x});
        CHECK(integers_of(running[0]) == Int64s{large, large + 1, large + 1, large + 1, large + 1});
        CHECK(integers_of(running[1]) == Int64s{0, 1, 1, 3, 3});
        const auto sorted = ops::call(ops::Sort{}, {x});
        CHECK(integers_of(sorted[0]) == Int64s{-large, 3, large, large + 1, large + 1});
        CHECK(integers_of(sorted[1]) == Int64s{2, 4, 0, 1, 3});
        const Tensor zeros = int64s(device, Shape{2}, {0, 0});
        const Tensor at = int64s(device, Shape{5}, {0, 0, 1, 1, 1});
        CHECK(integers_of(ops::call(ops::Scatter{.reduction = "add"}, {zeros, at, x})[0]) ==
              Int64s{2 * large + 1, 4});
        // Products wrap around.
        const Tensor factors = int64s(device, Shape{3}, {large, large, 2});
        const auto square = static_cast<std::uint64_t>(large) * static_cast<std::uint64_t>(large);
        CHECK(integers_of(ops::call(ops::Scan{.method = "prod"}, {factors})[0]) ==
              Int64s{large, static_cast<std::int64_t>(square),
                     static_cast<std::int64_t>(2 * square)});
    }
}

TEST_CASE("NaNs are extremes, and the last of a sorted line", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{5}, {1, not_a_number, 3, not_a_number, -1});
        for (const char* const method : {"max", "min"}) {
            const auto found = ops::call(ops::ArgReduce{.method = method}, {x});
            CHECK(std::isnan(found[0].to_floats()[0]));
            CHECK(integers_of(found[1]) == Int64s{1});
            const auto running = ops::call(ops::Scan{.method = method}, {x});
            CHECK(integers_of(running[1]) == Int64s{0, 1, 1, 3, 3});
            CHECK(std::isnan(running[0].to_floats()[4]));
        }
        CHECK(integers_of(ops::call(ops::Sort{}, {x})[1]) == Int64s{4, 0, 2, 1, 3});
        CHECK(integers_of(ops::call(ops::Sort{.descending = true}, {x})[1]) ==
              Int64s{1, 3, 2, 0, 4});
    }
}

TEST_CASE("sums up to an infinity, and logarithms of sums", "[selection]") {
    constexpr float inf = std::numeric_limits<float>::infinity();
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{4}, {1, inf, 2, -inf});
        const std::vector<float> sums = ops::call(ops::Scan{}, {x})[0].to_floats();
        CHECK((sums[0] == 1 && sums[1] == inf && sums[2] == inf && std::isnan(sums[3])));
        const Tensor lows(device, Shape{4}, {-inf, -inf, 1000, inf});
        CHECK(ops::call(ops::Scan{.method = "logsumexp"}, {lows})[0].to_floats() ==
              std::vector<float>{-inf, -inf, 1000, inf});
    }
}

TEST_CASE("a long sum of floats has no error that grows", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<float> values(200000, 0.1f);
        const std::vector<float> sums =
            ops::call(ops::Scan{}, {Tensor(device, Shape{200000}, values)})[0].to_floats();
        double expected = 0;
        float worst = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            expected += static_cast<double>(values[i]);
            worst = std::max(worst, std::abs(sums[i] - static_cast<float>(expected)) / sums[i]);
        }
        CHECK(worst < 2e-7f);
    }
}

TEST_CASE("nonzero has as many rows as there are elements", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{2, 3}, {0, 1, not_a_number, 0, 0, -2});
        const Tensor rows = ops::nonzero(x);
        CHECK(rows.shape() == Shape{3, 2});
        CHECK(integers_of(rows) == Int64s{0, 1, 0, 2, 1, 2});
        CHECK(ops::nonzero(Tensor(device, Shape{4}, {0, 0, 0, 0})).shape() == Shape{0, 1});
        CHECK(ops::nonzero(Tensor(device, Shape{3, 0})).shape() == Shape{0, 2});
        CHECK(ops::nonzero(Tensor(device, Shape{}, {5})).shape() == Shape{1, 0});
        CHECK(integers_of(ops::nonzero(int64s(device, Shape{3}, {0, large, 0}))) == Int64s{1});
    }
}

TEST_CASE("masks select and replace elements", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = counted(device, Shape{2, 3});
        const Tensor mask = mask_of(device, Shape{2, 3}, {1, 0, 1, 0, 0, 1});
        const Tensor columns = mask_of(device, Shape{3}, {0, 1, 1});
        const Tensor none = mask_of(device, Shape{2, 3}, {0, 0, 0, 0, 0, 0});
        CHECK(ops::masked_select(x, mask).to_floats() == std::vector<float>{0, 2, 5});
        CHECK(ops::masked_select(x, columns).to_floats() == std::vector<float>{1, 2, 4, 5});
        CHECK(ops::masked_select(x, none).shape() == Shape{0});
        const Tensor source(device, Shape{2, 2}, {10, 11, 12, 13});
        CHECK(ops::masked_scatter(x, mask, source).to_floats() ==
              std::vector<float>{10, 1, 11, 3, 4, 12});
        CHECK(ops::masked_scatter(x, columns, source).to_floats() ==
              std::vector<float>{0, 10, 11, 3, 12, 13});
        const Tensor empty(device, Shape{0});
        CHECK(ops::masked_scatter(x, none, empty).to_floats() == x.to_floats());
        check_error(invalid, {"the source has no elements"},
                    [&] { ops::masked_scatter(x, mask, empty); });
        check_error(invalid, {"index 2"}, [&] {
            ops::masked_scatter(x, mask, Tensor(device, Shape{2}, {1, 2}));
            device.finish();
        });
        check_error(invalid, {"float", "must be bool"}, [&] { ops::masked_select(x, x); });
        const Tensor integers = int64s(device, Shape{3}, {large, 7, -large});
        CHECK(integers_of(ops::masked_scatter(integers, mask_of(device, Shape{3}, {0, 1, 0}),
                                              int64s(device, Shape{1}, {large + 2}))) ==
              Int64s{large, large + 2, -large});
    }
}

TEST_CASE("tensors of indices, of integers and masks", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = counted(device, Shape{2, 3, 4});
        const Tensor i = int64s(device, Shape{2, 1}, {1, 0});
        const Tensor j = made<std::int32_t>(device, Shape{3}, {0, -1, 1}, DType::i32);
        const Tensor both = ops::index(x, {i, j});
        CHECK(both.shape() == Shape{2, 3, 4});
        CHECK(both.slice(0, 1, 2).to_floats() ==
              std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7});
        const Tensor apart = ops::index(x, {i, {}, j});
        CHECK(apart.shape() == Shape{2, 3, 3});
        CHECK(apart.slice(0, 0, 1).to_floats() ==
              std::vector<float>{12, 16, 20, 15, 19, 23, 13, 17, 21});
        CHECK(ops::index(x, {{}, j}).shape() == Shape{2, 3, 4});
        const Tensor scalar = int64s(device, Shape{}, {-1});
        CHECK(ops::index(x, {scalar, scalar}).to_floats() == std::vector<float>{20, 21, 22, 23});
        const Tensor mask = mask_of(device, Shape{2, 3}, {0, 1, 0, 0, 0, 1});
        CHECK(ops::index(x, {mask}).to_floats() == std::vector<float>{4, 5, 6, 7, 20, 21, 22, 23});
        CHECK(ops::index(x, {{}, mask_of(device, Shape{3}, {0, 0, 0})}).shape() == Shape{2, 0, 4});
        CHECK(ops::index(x, {int64s(device, Shape{0}, {})}).shape() == Shape{0, 3, 4});
        check_error(invalid, {"mask of shape [3]", "[2, 3, 4]"}, [&] {
            ops::index(x, {mask_of(device, Shape{3}, {0, 0, 0})});
        });
        check_error(invalid, {"does not fit"}, [&] { ops::index(x, {i, i, i, i}); });
        check_error(invalid, {"index 3", "-3 to 2"}, [&] {
            ops::index(x, {{}, int64s(device, Shape{1}, {3})});
            device.finish();
        });
    }
}

TEST_CASE("values are put at indices", "[selection]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = counted(device, Shape{3, 2});
        const Tensor rows = int64s(device, Shape{3}, {2, 0, 2});
        const Tensor values(device, Shape{3, 2}, {10, 11, 12, 13, 14, 15});
        CHECK(ops::index_put(x, {rows}, values).to_floats() ==
              std::vector<float>{12, 13, 2, 3, 14, 15});
        const Tensor one(device, Shape{}, {100});
        CHECK(ops::index_put(x, {rows, {}}, one, true).to_floats() ==
              std::vector<float>{100, 101, 2, 3, 204, 205});
        const Tensor mask = mask_of(device, Shape{3, 2}, {1, 0, 0, 1, 0, 0});
        CHECK(ops::index_put(x, {mask}, one).to_floats() ==
              std::vector<float>{100, 1, 2, 100, 4, 5});
        CHECK(ops::index_put(x, {int64s(device, Shape{0}, {})}, one).to_floats() == x.to_floats());
        check_error(invalid, {"values of shape [5]", "[3, 2]"},
                    [&] { ops::index_put(x, {rows}, Tensor(device, Shape{5})); });
        Tensor kept = counted(device, Shape{3, 2});
        const Tensor result = ops::index_put(kept, {rows}, values, true, kept);
        CHECK(result.shares_memory(kept));
        CHECK(kept.to_floats() == std::vector<float>{12, 14, 2, 3, 28, 31});
        const Tensor at = int64s(device, Shape{2, 2}, {5, -6, 3, 5});
        CHECK(ops::take(x, at).to_floats() == std::vector<float>{5, 0, 3, 5});
        const Tensor four(device, Shape{4}, {1, 2, 3, 4});
        CHECK(ops::put(x, at, four).to_floats() == std::vector<float>{2, 1, 2, 3, 4, 4});
        CHECK(ops::put(x, at, four, true).to_floats() == std::vector<float>{2, 1, 2, 6, 4, 10});
    }
}
