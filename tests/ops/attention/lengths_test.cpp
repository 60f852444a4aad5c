// SPDX-License-Identifier: MIT
// Attention of sequences behind each other: NaN of one sequence stays in it, forward and backward,
// and lengths that do not add up are refused in one sentence.
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <dlprim/ops.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace dlprim;

namespace {

constexpr std::int64_t heads = 2, features = 3;

Tensor numbers(const Context& context, std::int64_t positions) {
    Tensor x(context, {heads, positions, features});
    std::vector<float> values(static_cast<std::size_t>(x.shape().numel()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(3 * i + 1));
    x.copy_from_host(values.data(), values.size() * sizeof(float));
    return x;
}

/// The same with NaN in the first feature of a position of the second head.
Tensor with_nan(const Context& context, std::int64_t positions, std::int64_t position) {
    Tensor x = numbers(context, positions);
    std::vector<float> values(static_cast<std::size_t>(x.shape().numel()));
    x.copy_to_host(values.data(), values.size() * sizeof(float));
    values[static_cast<std::size_t>((positions + position) * features)] =
        std::numeric_limits<float>::quiet_NaN();
    x.copy_from_host(values.data(), values.size() * sizeof(float));
    return x;
}

Tensor lengths_of(const Context& context, const std::vector<std::int32_t>& queries,
                  const std::vector<std::int32_t>& keys) {
    std::vector<std::int32_t> both = queries;
    both.insert(both.end(), keys.begin(), keys.end());
    Tensor lengths(context, {2, static_cast<std::int64_t>(queries.size())}, DType::i32);
    lengths.copy_from_host(both.data(), both.size() * sizeof(std::int32_t));
    return lengths;
}

/// Whether all rows outside of [begin, end) of the second head are finite, and some within are not.
void check_nan_within(const Tensor& x, std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = x.shape()[1];
    std::vector<float> values(static_cast<std::size_t>(x.shape().numel()));
    x.copy_to_host(values.data(), values.size() * sizeof(float));
    int within = 0;
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        const std::int64_t row = i / features - rows;
        if (row >= begin && row < end)
            within += std::isfinite(values[static_cast<std::size_t>(i)]) ? 0 : 1;
        else
            CHECK(std::isfinite(values[static_cast<std::size_t>(i)]));
    }
    CHECK(within > 0);
}

}  // namespace

TEST_CASE("NaN of a sequence stays in it") {
    for (const Context& context : testing::test_devices())
        for (const std::size_t which : {0, 1, 2}) {
            INFO(context.info().name << ", input " << which);
            const Tensor lengths = lengths_of(context, {0, 4, 9, 12}, {0, 3, 9, 14});
            std::vector<Tensor> inputs{numbers(context, 12), numbers(context, 14),
                                       numbers(context, 14), lengths};
            inputs[which] = with_nan(context, which == 0 ? 12 : 14, 5);
            check_nan_within(ops::call(ops::Attention{}, inputs)[0], 4, 9);
            const std::vector<Tensor> made =
                ops::backward(ops::Attention{}, inputs, {}, {numbers(context, 12)});
            check_nan_within(made[0], 4, 9);
            check_nan_within(made[1], 3, 9);
            if (which < 2) check_nan_within(made[2], 3, 9);  // that of values does not see them
        }
}

TEST_CASE("lengths that do not add up are refused") {
    struct Hostile {
        std::vector<std::int32_t> queries, keys;
        std::string says;
    };
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const std::vector<Hostile> all{
        {{0, 5, 4, 12}, {0, 3, 9, 14}, "rows, 12, and the one at position 2 is 4"},
        {{1, 5, 9, 12}, {0, 3, 9, 14}, "rows, 12, and the one at position 0 is 1"},
        {{0, 5, 9, 11}, {0, 3, 9, 14}, "rows, 12, and the one at position 3 is 11"},
        {{0, 5, 9, 12}, {0, 3, 9, 15}, "rows, 14, and the one at position 7 is 15"},
        {{0, -7, 9, 12}, {0, 3, 9, 14}, "rows, 12, and the one at position 1 is -7"},
        {{0, 5, 9, 12}, {0, 3, most, 14}, "and the one at position"}};
    for (const Context& context : testing::test_devices())
        for (const Hostile& hostile : all) {
            INFO(context.info().name << ": " << hostile.says);
            const std::vector<Tensor> inputs{numbers(context, 12), numbers(context, 14),
                                             numbers(context, 14),
                                             lengths_of(context, hostile.queries, hostile.keys)};
            const auto run = [&] {
                const Tensor y = ops::call(ops::Attention{}, inputs)[0];
                std::vector<float> values(static_cast<std::size_t>(y.shape().numel()));
                y.copy_to_host(values.data(), values.size() * sizeof(float));
            };
            CHECK_THROWS_WITH(
                run(), ContainsSubstring("cumulative lengths begin with 0, do not fall and end") &&
                           ContainsSubstring(hostile.says));
        }
    const Context host("host");
    const std::vector<Tensor> inputs{numbers(host, 12), numbers(host, 14), numbers(host, 14)};
    const auto with = [&](const Shape& shape, DType dtype) {
        std::vector<Tensor> given = inputs;
        given.emplace_back(host, shape, dtype);
        return ops::call(ops::Attention{}, given);
    };
    CHECK_THROWS_WITH(with(Shape{4}, DType::i32), ContainsSubstring("there are 12 queries and 14"));
    CHECK_THROWS_WITH(with(Shape{3, 4}, DType::i32), ContainsSubstring("[2, sequences + 1]"));
    CHECK_THROWS_WITH(with(Shape{1}, DType::i64), ContainsSubstring("[sequences + 1]"));
    CHECK_THROWS_WITH(with(Shape{4}, DType::u8), ContainsSubstring("cumulative lengths of int32"));
}
