// SPDX-License-Identifier: MIT
// What integers give at their edges, as docs/pointwise.md has it: on every device, from tensors,
// where the program's own numbers are the operands, and in what plans fold.
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"
#include "net/support.hpp"

#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Wide = std::vector<std::int64_t>;
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                       largest = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("quotients of integers by 0 are 0, and the one that does not fit wraps",
          "[integer_edges]") {
    const Wide a{7, 0, -7, lowest, lowest, -7, 7}, b{0, 0, 0, 0, -1, 2, -2};
    ON_EVERY_DEVICE(device) {
        const std::vector<Tensor> made = ops::pointwise(
            "y0 = truncdiv(x0, x1); y1 = floordiv(x0, x1); y2 = fmod(x0, x1); "
            "y3 = remainder(x0, x1); y4 = -x0; y5 = abs(x0)",
            {tensor_of(device, DType::i64, a), tensor_of(device, DType::i64, b)});
        CHECK(values_of<std::int64_t>(made[0]) == Wide{0, 0, 0, 0, lowest, -3, -3});
        CHECK(values_of<std::int64_t>(made[1]) == Wide{0, 0, 0, 0, lowest, -4, -4});
        CHECK(values_of<std::int64_t>(made[2]) == Wide{0, 0, 0, 0, 0, -1, 1});
        CHECK(values_of<std::int64_t>(made[3]) == Wide{0, 0, 0, 0, 0, 1, -1});
        CHECK(values_of<std::int64_t>(made[4]) == Wide{-7, 0, 7, lowest, lowest, 7, -7});
        CHECK(values_of<std::int64_t>(made[5]) == Wide{7, 0, 7, lowest, lowest, 7, 7});
    }
}

TEST_CASE("shifts by less than 0 and by all bits move all bits out", "[integer_edges]") {
    const Wide a{1, 1, 1, 1, -5, -5, -5, largest}, by{0, 63, 64, -1, 1, 64, -1, 200};
    using Narrow = std::vector<std::int8_t>;
    ON_EVERY_DEVICE(device) {
        const Tensor amounts = tensor_of(device, DType::i64, by);
        const std::vector<Tensor> wide =
            ops::pointwise("y0 = shl(x0, x1); y1 = shr(x0, x1); y2 = shl(1, 64) + x0 * 0",
                           {tensor_of(device, DType::i64, a), amounts});
        CHECK(values_of<std::int64_t>(wide[0]) == Wide{1, lowest, 0, 0, -10, 0, 0, 0});
        CHECK(values_of<std::int64_t>(wide[1]) == Wide{1, 0, 0, 0, -3, -1, -1, 0});
        CHECK(values_of<std::int64_t>(wide[2]) == Wide(8, 0));
        // A tensor of fewer bits keeps the low ones.
        const std::vector<Tensor> narrow =
            ops::pointwise("y0 = shl(x0, x1); y1 = shr(x0, x1)",
                           {tensor_of<std::int8_t>(device, DType::i8, {1, 1, -128, 127}),
                            tensor_of<std::int8_t>(device, DType::i8, {7, 8, 8, 1})});
        CHECK(values_of<std::int8_t>(narrow[0]) == Narrow{-128, 0, 0, -2});
        CHECK(values_of<std::int8_t>(narrow[1]) == Narrow{0, 0, -1, 63});
    }
}

TEST_CASE("floats that no integer is become the nearest one, NaN becomes 0, and is true",
          "[integer_edges]") {
    const std::vector<float> x{NAN, INFINITY, -INFINITY, 3.7f, -3.7f, 1e20f, -0.0f};
    using Bytes = std::vector<std::uint8_t>;
    ON_EVERY_DEVICE(device) {
        const Tensor from = tensor_of(device, DType::f32, x);
        const auto as = [&](const char* code, const char* dtype) {
            return ops::call(ops::Pointwise{.code = code, .dtypes = {parse_dtype(dtype)}}, {from})
                .at(0);
        };
        CHECK(values_of<std::int64_t>(as("y0 = x0", "int64")) ==
              Wide{0, largest, lowest, 3, -3, largest, 0});
        CHECK(values_of<std::int32_t>(as("y0 = x0", "int32")) ==
              std::vector<std::int32_t>{0, 2147483647, -2147483647 - 1, 3, -3, 2147483647, 0});
        CHECK(values_of<std::uint8_t>(as("y0 = x0", "uint8")) == Bytes{0, 255, 0, 3, 0, 255, 0});
        const Bytes truth{1, 1, 1, 1, 1, 1, 0};
        CHECK(values_of<std::uint8_t>(as("y0 = x0", "bool")) == truth);
        CHECK(values_of<std::uint8_t>(as("y0 = x0 ? x0 : 0", "bool")) == truth);
        CHECK(values_of<std::uint8_t>(as("y0 = x0 && 1", "bool")) == truth);
        CHECK(values_of<std::uint8_t>(as("y0 = !!x0", "bool")) == truth);
    }
}

TEST_CASE("what is folded is what kernels compute", "[integer_edges]") {
    namespace pw = pointwise;
    const auto is_left = [](const char* code) {
        const pw::Program program = pw::parse(code);
        return pw::simplify(program.outputs[0].value)->kind == pw::Expr::Kind::call;
    };
    CHECK(is_left("y0 = truncdiv(7, 0)"));
    CHECK(is_left("y0 = remainder(7, 0)"));
    CHECK(is_left("y0 = 9007199254740992 * 4"));
    CHECK_FALSE(is_left("y0 = truncdiv(7, 2)"));
    CHECK_FALSE(is_left("y0 = 0.5 / 0"));
    CHECK(pw::apply_whole(pw::Op::truncdiv, 7, 0) == 0);
    CHECK(pw::apply_whole(pw::Op::remainder, -7, 0) == 0);
    CHECK(pw::apply_whole(pw::Op::add, static_cast<double>(largest), 1) ==
          static_cast<double>(lowest));
}
