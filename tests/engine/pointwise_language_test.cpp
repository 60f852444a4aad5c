// SPDX-License-Identifier: MIT
// The pointwise language: valid and invalid programs, printing, derivatives, activations, merging.
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "engine/pointwise/merge.hpp"
#include "engine/pointwise/philox.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace dlprim;
using namespace dlprim::pointwise;

namespace {

double at(const std::string& code, const std::vector<double>& x,
          const std::vector<double>& p = {}) {
    return evaluate(parse(code).outputs[0].value, x, p, {}, Shape{});
}

std::string message(const std::string& code) {
    try {
        parse(code);
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

bool mentions(const std::string& code, const std::string& word) {
    INFO(code);
    INFO(message(code));
    return message(code).find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("expressions have C's precedence") {
    CHECK(at("y0 = 1 + 2 * 3 - 4 / 2", {}) == 5);
    CHECK(at("y0 = (1 + 2) * -3", {}) == -9);
    CHECK(at("y0 = x0 > 1 && x0 <= 3 ? 10 : 20", {2}) == 10);
    CHECK(at("y0 = x0 == 2 || !x0", {0}) == 1);
    CHECK(at("y0 = x0 != 2 ? x0 < 1 ? 1 : 2 : 3", {0}) == 1);
    CHECK(at("t = x0 - x1; y0 = t * t + p0", {5, 2}, {0.5}) == 9.5);
    CHECK(at("y0 = fma(x0, 2, 1) + max(x0, 3) - min(x0, 3) + select(x0 > 2, 1, 0)", {4}) ==
          9 + 4 - 3 + 1);
    CHECK(at("y0 = 1e-3 + .5 + 2.", {}) == 2.501);
    CHECK(at("y0 = bitor(bitand(x0, 12), bitxor(x1, 1))", {10, -8}) == -7);
    CHECK(at("y0 = bitnot(x0) + shl(x1, 3) + shr(-5, 1)", {-4.75, 2.5}) == 3 + 16 - 3);
    CHECK(at("y0 = shl(x0, 64) + shl(x0, -1) + shr(x0, 64) + shr(x0, -1)", {-7}) == -2);
    CHECK(std::isnan(at("y0 = max(x0, 0)", {NAN})));
    CHECK(at("y0 = -inf", {}) == -INFINITY);
    const Program two = parse("y1 = sum[0,-1](x0); y0 = x0 + x2;");
    CHECK(two.inputs == 3);
    CHECK(two.outputs[1].axes == Ints{0, -1});
    CHECK(parse("y0 = x0; y1 = y0 * 2").outputs.size() == 2);
    const Program custom = parse("y0 = reduce[1; -2.5; a * b + a](x0)");
    CHECK(custom.outputs[0].init == -2.5);
    CHECK(parse("y0 = sum[](x0)").outputs[0].all_axes);
}

TEST_CASE("what does not parse says where and what") {
    CHECK(mentions("", "no output"));
    CHECK(mentions("y0 = x0 +", "column 10"));
    CHECK(mentions("y0 = exq(x0)", "did you mean 'exp'"));
    CHECK(mentions("y0 = z", "not known"));
    CHECK(mentions("y1 = x0", "y0 is missing"));
    CHECK(mentions("y0 = x0; y0 = x1", "assigned twice"));
    CHECK(mentions("x0 = 1; y0 = 2", "may not be assigned"));
    CHECK(mentions("y0 = exp(x0, x1)", "takes 1 argument"));
    CHECK(mentions("y0 = x64", "at most 64"));
    CHECK(mentions("y0 = x0 x1", "expected ';'"));
    CHECK(mentions("y0 = sum[0](x0) + 1", "expected ';'"));
    CHECK(mentions("y0 = reduce[0; 0; a + x0](x0)", "only a and b"));
    CHECK(mentions("y0 = " + std::string(500, '('), "nested deeper"));
    CHECK(mentions("y0 = " + std::string(500, '-') + "x0", "nested deeper"));
    std::string big = "y0 = x0";
    for (int i = 0; i < 6000; ++i) big += " + x0";
    CHECK(mentions(big, "more than 10000"));
    CHECK(mentions("y0 = 3x", "expected a number"));
    CHECK(mentions("y0 = @", "expected a value"));
}

TEST_CASE("printing gives an equal program") {
    for (const char* code :
         {"y0 = x0 * p0 + x1", "y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0 * x0)",
          "t = exp(x0 - x1); y0 = t / (1 + t) * t; y1 = mean[](t)",
          "y0 = x0 > 0 && !(x1 < 2) ? -x0 : 1e-10", "y0 = reduce[1; 1.5; a * b + a](x0 - 3)",
          "y0 = index(1) == x0 ? size(-1) : uniform(x1, x2, 7)",
          "y0 = -(-x0) - -2.5; y1 = max[-1](x0 / inf)"}) {
        const std::string once = print(parse(code));
        INFO(once);
        CHECK(print(parse(once)) == once);
    }
    // Sharing is preserved. Without it this would have 2^60 terms.
    std::string doubling = "t = x0";
    for (int i = 0; i < 60; ++i) doubling += "; t = t * t + t";
    const std::string text = print(parse(doubling + "; y0 = t"));
    CHECK(text.size() < 5000);
    CHECK(print(parse(text)) == text);
    CHECK(differentiate(parse(doubling + "; y0 = t").outputs[0].value, 0) != nullptr);
    std::string chain = "t = x0";
    for (int i = 0; i < 900; ++i) chain += "; t = exp(t + 1)";
    CHECK(print(parse(print(parse(chain + "; y0 = t")))) == print(parse(chain + "; y0 = t")));
}

TEST_CASE("derivatives agree with differences") {
    const char* const functions[] = {"exp(x0)",
                                     "log(x0)",
                                     "log1p(x0)",
                                     "expm1(x0)",
                                     "sqrt(x0)",
                                     "rsqrt(x0)",
                                     "abs(x0)",
                                     "sin(x0)",
                                     "cos(x0)",
                                     "tan(x0)",
                                     "asin(x0 / 4)",
                                     "acos(x0 / 4)",
                                     "atan(x0)",
                                     "sinh(x0)",
                                     "cosh(x0)",
                                     "tanh(x0)",
                                     "asinh(x0)",
                                     "acosh(x0 + 1)",
                                     "atanh(x0 / 4)",
                                     "erf(x0)",
                                     "erfc(x0)",
                                     "erfinv(x0 / 4)",
                                     "exp2(x0)",
                                     "log2(x0)",
                                     "log10(x0)",
                                     "lgamma(x0)",
                                     "digamma(x0)",
                                     "atan2(x0, 2 - x0)",
                                     "hypot(x0, x0 * x0)",
                                     "copysign(x0, -1)",
                                     "fmod(x0 * 3, x0 + 4)",
                                     "remainder(4, 0.3 + x0)",
                                     "floordiv(x0, 7) + truncdiv(x0, 7) + x0",
                                     "sigmoid(x0)",
                                     "pow(x0, 3)",
                                     "pow(2, x0)",
                                     "pow(x0, x0)",
                                     "x0 * x0 / (1 + x0)",
                                     "max(x0, 1) + min(x0, 2) * 3",
                                     "fma(x0, x0, x0)",
                                     "select(x0 > 1, x0 * x0, -x0)",
                                     "(x0 - 3) * x1 / x0",
                                     "floor(x0) + x0",
                                     "x0 > 1 ? log(x0) : x0 < 0 ? sqrt(x0) : x0"};
    for (const char* function : functions) {
        const ExprPtr f = parse(std::string("y0 = ") + function).outputs[0].value;
        const ExprPtr d = differentiate(f, 0);
        REQUIRE(d);
        for (double x : {0.37, 0.81, 1.43, 2.7}) {
            INFO(function << " at " << x);
            const double h = 1e-6;
            const double slope =
                (evaluate(f, {x + h, 2}, {}, {}, {}) - evaluate(f, {x - h, 2}, {}, {}, {})) /
                (2 * h);
            CHECK(evaluate(d, {x, 2}, {}, {}, {}) == Approx(slope).epsilon(1e-5).margin(1e-7));
        }
    }
    CHECK(differentiate(parse("y0 = floor(x0) + (x0 > 1) + sign(x0)").outputs[0].value, 0) ==
          nullptr);
    CHECK(print(differentiate(parse("y0 = 2 * x0 + 0 * x1").outputs[0].value, 0)) == "2");
    CHECK(differentiate(parse("y0 = 2 * x0 + 0 * x1").outputs[0].value, 1) == nullptr);
}

TEST_CASE("activations have gradients and let NaN through") {
    for (const std::string& name : activation_names()) {
        const Activation& f = find_activation(name);
        INFO(name);
        const bool positive = name == "log" || name == "sqrt";
        for (double x : {-4.3, -2.2, -0.7, -0.2, 0.3, 0.9, 2.4, 5.1, 7.3}) {
            if (positive && x < 0) continue;
            const double h = 1e-6;
            const double slope =
                (activate(name, x + h, f.alpha, f.beta) - activate(name, x - h, f.alpha, f.beta)) /
                (2 * h);
            CHECK(activate_gradient(name, x, f.alpha, f.beta) ==
                  Approx(slope).epsilon(1e-5).margin(1e-7));
        }
        CHECK(std::isnan(activate(name, NAN, f.alpha, f.beta)));
        if (positive) continue;
        for (double x : {-1000.0, 1000.0})
            CHECK(!std::isnan(activate_gradient(name, x / 10, f.alpha, f.beta)));
    }
    CHECK(activate_gradient("relu", 0, 0, 0) == 0);
    CHECK_THROWS_AS(find_activation("rellu"), Error);
}

TEST_CASE("merged programs compute the chain") {
    const Program producer = parse("y0 = x0 * p0 + x1");
    const Program consumer = parse("y0 = max(x1, 0) + x0; y1 = sum[](x1 * p0)");
    const std::vector<Shape> inputs{{2, 3}, {3}};
    CHECK(can_merge(producer, 0, {2, 3}, consumer, 1, {2, 3}, inputs));
    CHECK_FALSE(can_merge(producer, 0, {1, 3}, consumer, 1, {2, 3}, inputs));
    CHECK_FALSE(can_merge(consumer, 1, {2, 3}, producer, 0, {2, 3}, inputs));
    std::vector<int> of_consumer, of_producer;
    const Program merged = merge(producer, 0, consumer, 1, of_consumer, of_producer);
    CHECK(of_consumer == std::vector<int>{0, -1});
    CHECK(of_producer == std::vector<int>{1, 2});
    CHECK(evaluate(merged.outputs[0].value, {10, 3, -1}, {7, 2}, {0, 0}, {2, 3}) == 15);
    CHECK(evaluate(merged.outputs[1].value, {10, 3, -1}, {7, 2}, {0, 0}, {2, 3}) == 35);
    const Program joined = renumber(bind_scalars(merged, {7, 2}), {0, 0, 1}, 2);
    CHECK(joined.scalars == 0);
    CHECK(evaluate(joined.outputs[0].value, {3, -1}, {}, {0, 0}, {2, 3}) == 8);
}

TEST_CASE("scalars that are bound and lifted leave no number of them in the code") {
    const Program program = parse("y0 = x0 * (p0 * p1) + 3; y1 = x0 / p2 - p0 * p1");
    const auto lifted = [&](const std::vector<double>& given, std::vector<double>& scalars) {
        return print(lift_scalars(bind_scalars(program, given), scalars));
    };
    std::vector<double> some, others;
    const std::string code = lifted({0.3, 7, 2}, some);
    CHECK(code == lifted({0.1, 9, 5}, others));
    CHECK(code.find("2.1") == std::string::npos);
    // The product is folded, and read twice.
    CHECK(some == std::vector<double>{0.3 * 7, 2});
    CHECK(others == std::vector<double>{0.1 * 9, 5});
    const Program again = parse(code);
    CHECK(evaluate(again.outputs[0].value, {10}, some, {0}, {1}) == 10 * (0.3 * 7) + 3);
    CHECK(evaluate(again.outputs[1].value, {10}, some, {0}, {1}) == 10.0 / 2 - 0.3 * 7);
}

TEST_CASE("special functions have their values") {
    const auto near = [](double found, double wanted) {
        INFO(found << " for " << wanted);
        CHECK(std::fabs(found - wanted) <= 1e-13 * std::max(1.0, std::fabs(wanted)));
    };
    const double euler = 0.57721566490153286, pi = 3.14159265358979324;
    near(at("y0 = digamma(x0)", {1}), -euler);
    near(at("y0 = digamma(x0)", {0.5}), -euler - 2 * std::log(2));
    near(at("y0 = digamma(x0)", {-0.5}), 2 - euler - 2 * std::log(2));
    near(at("y0 = trigamma(x0)", {1}), pi * pi / 6);
    near(at("y0 = trigamma(x0)", {0.5}), pi * pi / 2);
    near(at("y0 = trigamma(x0)", {-0.5}), pi * pi / 2 + 4);
    CHECK(at("y0 = digamma(x0)", {0}) == -INFINITY);
    CHECK(std::isnan(at("y0 = digamma(x0)", {-3})));
    for (const double y : {-3.0, -0.7, 0.0, 1e-9, 0.3, 2.0, 4.0}) {
        const double x = std::erf(y);
        CHECK(std::fabs(at("y0 = erfinv(x0)", {x}) - y) <= (std::fabs(y) < 3 ? 1e-13 : 1e-8));
    }
    CHECK(at("y0 = erfinv(x0)", {-1}) == -INFINITY);
    CHECK(std::isnan(at("y0 = erfinv(x0)", {1.5})));
    CHECK_THROWS_AS(differentiate(parse("y0 = trigamma(x0)").outputs[0].value, 0), Error);
}

TEST_CASE("quotients have PyTorch's signs") {
    for (const double a : {7.0, -7.0, 6.0, -6.0, 0.0})
        for (const double b : {2.0, -2.0, 3.0, -3.0}) {
            CHECK(at("y0 = floordiv(x0, x1)", {a, b}) == std::floor(a / b));
            CHECK(at("y0 = truncdiv(x0, x1)", {a, b}) == std::trunc(a / b));
            CHECK(at("y0 = fmod(x0, x1)", {a, b}) == std::fmod(a, b));
            CHECK(at("y0 = remainder(x0, x1)", {a, b}) == a - b * std::floor(a / b));
        }
    // 1 / 0.1 rounds to 10, but 0.1 is more than a tenth.
    CHECK(at("y0 = floordiv(x0, x1)", {1, 0.1}) == 9);
    CHECK(at("y0 = floordiv(x0, x1)", {-1, INFINITY}) == -1);
    CHECK(at("y0 = floordiv(x0, x1)", {3, 0}) == INFINITY);
    CHECK(std::signbit(at("y0 = floordiv(x0, x1)", {-0.0, 3})));
}

TEST_CASE("Philox gives its published numbers") {
    CHECK(philox4x32({0, 0, 0, 0}, 0, 0) ==
          std::array<std::uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
    CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u) ==
          std::array<std::uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
}
