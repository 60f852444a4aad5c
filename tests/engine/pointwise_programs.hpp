// SPDX-License-Identifier: MIT
// Pointwise programs and their tensors, for the tests of generated kernels.
#pragma once

#include "engine/problem.hpp"
#include "graph/operator.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace dlprim::testing {

/// An input of a program.
struct PointwiseInput {
    Shape shape;
    DType dtype = DType::f32;
};

/// A program, its inputs, and its tolerance.
struct PointwiseCase {
    std::string code;
    std::vector<PointwiseInput> inputs;
    Attrs more = {};
    double tolerance = 2e-6;
    std::string fill = "normal";
};

/// The problem that engines get, with plain layouts.
inline Problem problem_of_program(const PointwiseCase& test) {
    const Operator& op = OperatorRegistry::instance().get("Pointwise");
    Attrs given = test.more;
    given.set("code", test.code);
    Problem problem;
    problem.op = "Pointwise";
    problem.attrs = op.schema().complete(given, "test");
    std::vector<TensorSpec> specs;
    for (const PointwiseInput& in : test.inputs) {
        specs.push_back({in.shape, in.dtype});
        problem.inputs.push_back({in.shape, in.dtype, Layout::plain(), false});
    }
    for (const TensorSpec& spec : op.infer(problem.attrs, specs))
        problem.outputs.push_back({spec.shape, spec.dtype, Layout::plain(), false});
    return problem;
}

inline std::vector<PointwiseCase> elementwise_programs() {
    const DType h = DType::f16, b = DType::bf16;
    return {
        {"y0 = x0", {{{}}}},
        {"y0 = x0 * 2 + x1", {{{1}}, {{1}}}},
        {"y0 = max(x0 + x1, 0)", {{{7}}, {{7}}}},
        {"y0 = x0 + x1 * p0", {{{3, 1, 5}}, {{4, 1}}}, {{"scalars", Doubles{0.25}}}},
        {"y0 = x0 + x1; y1 = x0 - x1; y2 = y0 * y1", {{{33, 65}}, {{65}}}},
        {"y0 = x0 * x1 + x2", {{{2, 19, 5, 7}}, {{19, 1, 1}}, {{1, 19, 1, 1}}}},
        {"y0 = (x0 - x1) * rsqrt(x2 + 1e-5) * x3 + x4",
         {{{3, 32, 4, 4}}, {{32, 1, 1}}, {{32, 1, 1}}, {{32, 1, 1}}, {{32, 1, 1}}},
         {},
         2e-6,
         "positive"},
        {"y0 = x0 * x1", {{{2, 21, 3, 5}}, {{2, 21, 1, 1}}}},
        {"y0 = x0 * x1 + x2", {{{2, 21, 3, 5}}, {{1}}, {{2, 1, 3, 5}}}},
        {"y0 = x0 + x1", {{{2, 16, 1, 1}}, {{2, 16, 1, 1}}}},
        {"y0 = x0 + x1", {{{2, 17, 1, 1}}, {{17, 1, 1}}}},
        {"y0 = x0 + 1", {{{1, 3, 9, 11}}}},
        {"y0 = tanh(x0) + sigmoid(x0) + erf(x0) + exp(-abs(x0))", {{{1003}}}, {}, 2e-6, "large"},
        {"y0 = x0 > 0 && x0 < 1 ? log1p(x0) : x0 * (x0 < 0)", {{{5, 37}}}},
        {"y0 = index(0) * 100 + index(1) * 10 + index(-1)", {{{2, 18, 2, 3}}}, {}, 1e-7},
        {"y0 = uniform(p0, p1, 3) + x0 * 0.0001",
         {{{2, 18, 2, 3}}},
         {{"scalars", Doubles{12345678901.0, 7}}}},
        {"y0 = uniform(x0, x1, 5)",
         {{{1}, DType::i64}, {{}, DType::i32}},
         {{"shape", Ints{3, 5, 7}}, {"dtypes", Strings{"float"}}}},
        {"y0 = size(1) + 1", {}, {{"shape", Ints{4, 6}}}},
        {"y0 = x0 + x1", {{{31}, h}, {{31}, b}}},
        {"y0 = x0 * 2", {{{2, 20, 3, 3}, h}}},
        {"y0 = x0 * 2", {{{2, 20, 3, 3}, b}}, {{"dtypes", Strings{"bfloat16"}}}},
        {"y0 = x0 * 1.5; y1 = x0; y2 = x0 > 0",
         {{{100}}},
         {{"dtypes", Strings{"int32", "uint8", "bool"}}},
         0,
         "large"},
        {"y0 = x0 * x1 + 3", {{{50}, DType::i32}, {{50}, DType::i8}}, {}, 0, "integers"},
        {"y0 = x0 / x1", {{{50}, DType::i32}, {{50}, DType::i16}}, {}, 2e-6, "positive"},
        {"y0 = x0 + x1", {{{50}, DType::i64}, {{50}, DType::u8}}, {}, 0, "integers"},
        {"y0 = x0 * x0 - x1", {{{50}, DType::f64}, {{50}}}, {}, 1e-14},
        {"y0 = x0 + 1", {{{0, 5}}}},
        {"y0 = isnan(x0 / x1) ? 5 : max(log(x1), x0 / 0)", {{{64}}, {{64}}}},
        {"y0 = pow(x0, x1) + round(x0 * 2) + floor(x1) + sign(x0)",
         {{{64}}, {{64}}},
         {},
         2e-6,
         "positive"},
        {"y0 = bitxor(bitor(bitand(x0, 29), x1), bitnot(x0))",
         {{{5, 37}, DType::i32}, {{37}, DType::i64}},
         {},
         0,
         "integers"},
        {"y0 = shl(x0, bitand(index(0), 15)) - shr(x0, x1) + shr(shl(x0, 70), 1) + shr(x0, 64)",
         {{{35}, DType::i32}, {{35}, DType::u8}},
         {},
         0,
         "integers"},
        {"y0 = bitand(x0 * 100, 60) + shl(x1 * 3, 2) + bitnot(x0) + shr(x0 * 9, 70)",
         {{{5, 37}}, {{37}}},
         {},
         0},
        {"y0 = lgamma(x0) + digamma(x0) + trigamma(x0 + 0.5) + log2(x0) + log10(x0) + exp2(-x0)",
         {{{5, 37}}},
         {},
         5e-6,
         "positive"},
        {"y0 = erfinv(erf(x0) * 0.9) + erfc(x0); y1 = atan2(x0, x1) + hypot(x0, copysign(1, x1))",
         {{{5, 37}}, {{37}}},
         {},
         5e-6},
        {"y0 = floordiv(x0 * 9, x1) + fmod(x0 * 9, x1); y1 = remainder(x0 * 9, x1) - truncdiv(x0, "
         "2)",
         {{{5, 37}}, {{37}}},
         {},
         2e-5,
         "positive"},
        {"t = x1 * 2 + 1; y0 = floordiv(x0 * 5, t); y1 = truncdiv(x0 * 5, t); y2 = fmod(x0 * 5, "
         "t); "
         "y3 = remainder(x0 * 5, t)",
         {{{5, 37}, DType::i64}, {{37}, DType::i32}},
         {},
         0,
         "integers"},
        {"y0 = normal(p0, p1, 3) + x0 * 0.0001",
         {{{2, 18, 2, 3}}},
         {{"scalars", Doubles{12345678901.0, 7}}}},
        {"y0 = random(x0, 2, 9)", {{{1}, DType::i64}}, {{"shape", Ints{3, 41}}}, 0},
        {"y0 = index(0) * 100 + index(1)",
         {},
         {{"shape", Ints{4, 60}}, {"dtypes", Strings{"int64"}}},
         0},
    };
}

/// Functions of which drivers' own are not as exact as they must be.
inline std::vector<PointwiseCase> exact_programs() {
    return {
        // tanh ends in 1 and -1, not a step before them.
        {"y0 = abs(tanh(x0 * 1e20)); y1 = 1 - y0 * y0", {{{5, 37}}}, {}, 0, "large"},
        {"y0 = abs(tanh(x0 * 1e20)); y1 = 1 - y0 * y0", {{{5, 37}, DType::f64}}, {}, 0, "large"},
        // Drivers' fmod of doubles may be wrong; what is left is exact.
        {"t = x1 * 0.001; y0 = fmod(x0, x1); y1 = fmod(x0 * 1e300, t); y2 = remainder(x0, t)",
         {{{5, 37}, DType::f64}, {{37}, DType::f64}},
         {},
         0,
         "large"},
    };
}

inline std::vector<PointwiseCase> reduction_programs() {
    return {
        {"y0 = sum[](x0)", {{{1}}}},
        {"y0 = sum[](x0); y1 = mean[](x0 * x0); y2 = max[](x0); y3 = min[](x0)",
         {{{1000003}}},
         {},
         1e-6},
        {"y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0 * x0)", {{{3, 19, 7, 7}}}, {}, 1e-5},
        {"y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0 * x0)", {{{2, 64, 40, 40}}}, {}, 1e-5},
        {"y0 = mean[0,2,3](x0); y1 = x0 + 1", {{{3, 35, 5, 4}}}, {}, 1e-5},
        {"y0 = sum[0,2,3](x0 * (x1 - x2)); y1 = sum[0,2,3](x0)",
         {{{4, 20, 6, 6}}, {{4, 20, 6, 6}}, {{20, 1, 1}}},
         {},
         1e-5},
        // Positions of three digits, of which the inner ones produce carries.
        {"y0 = sum[0,2,3](x0 * x1)", {{{7, 3, 90, 29}}, {{29}}}, {}, 1e-5},
        {"y0 = sum[0,2,3](x0 * x1); y1 = max[0,2,3](x0)", {{{40, 2, 9, 44}}, {{44}}}, {}, 1e-5},
        {"y0 = mean[0,2,3](x0)", {{{500, 3, 9, 9}}}, {}, 1e-5},
        {"y0 = sum[1](x0)", {{{5, 10}}}},
        {"y0 = max[1](x0); y1 = min[1](x0)", {{{37, 1000}}}},
        {"y0 = sum[0](x0)", {{{300, 1000}}}},
        {"y0 = sum[0](x0)", {{{3000, 10}}}},
        {"y0 = sum[0](x0); y1 = max[0](x0)", {{{20000, 64}}}},
        {"y0 = prod[-1](x0)", {{{3, 4, 6}}}},
        {"y0 = sum[1](x0); y1 = max[1](x0)", {{{2, 21, 3, 5}}}},
        {"y0 = sum[1](x0 * x1)", {{{2, 32, 3, 5}}, {{32, 1, 1}}}},
        {"y0 = sum[2,3](x0)", {{{2, 21, 3, 5}}}},
        {"y0 = mean[2,3](x0)", {{{2, 48, 7, 7}}}, {{"keep_dim", false}}},
        {"y0 = sum[0,2](x0 * x1)", {{{6, 7, 8}}, {{7, 1}}}, {{"keep_dim", false}}},
        {"y0 = sum[0](x0); y1 = sum[1](x0); y2 = x0 * 2", {{{70, 90}}}},
        {"y0 = reduce[1; 2; a + b](x0)", {{{5, 33}}}},
        {"y0 = reduce[0; 0; a + b + a * b](x0 * 0.01)", {{{70, 21}}}, {}, 1e-4},
        {"y0 = reduce[; 1; a * b](x0 * 0.001 + 1)", {{{70000}}}, {}, 1e-4},
        {"y0 = reduce[; 3; a > b ? a : b](x0)", {{{70000}}}},
        {"y0 = reduce[0,2,3; -0.5; max(abs(a), abs(b))](x0)", {{{3, 21, 20, 20}}}},
        {"y0 = sum[1](x0)", {{{4, 100}, DType::i32}}, {}, 0, "integers"},
        {"y0 = max[0](x0); y1 = sum[0](x0)", {{{400, 3}, DType::i64}}, {}, 0, "integers"},
        {"y0 = sum[1](x0 > 0)", {{{4, 100}}}},
        {"y0 = sum[1](x0)", {{{8, 300}, DType::f16}}, {{"dtypes", Strings{"float"}}}, 1e-5},
        {"y0 = mean[0](x0)", {{{300, 8}, DType::f64}}, {}, 1e-14},
        {"y0 = sum[1](x0); y1 = max[1](x0); y2 = prod[1](x0)", {{{3, 0}}}},
        {"y0 = sum[0](x0)", {{{0, 3}}}},
        {"y0 = sum[0](x0)", {{{3, 0}}}},
        {"y0 = max[1](x0 / 0 * x1)", {{{4, 40}}, {{4, 40}}}},
        {"y0 = sum[1](index(1) == x0 ? x1 : 0)",
         {{{9, 1}, DType::i32}, {{9, 17}}},
         {},
         2e-6,
         "integers"},
    };
}

inline std::vector<PointwiseCase> random_programs() {
    std::mt19937 random(2024);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<PointwiseCase> cases;
    for (int n = 0; n < 8; ++n) {
        const int rank = 1 + pick(4);
        std::vector<std::int64_t> dims;
        for (int d = 0; d < rank; ++d) dims.push_back(1 + pick(rank > 2 ? 20 : 200));
        const auto part = [&] {
            std::vector<std::int64_t> own = dims;
            if (pick(2))
                for (auto& d : own)
                    if (pick(2)) d = 1;
            if (pick(3) == 0) own.erase(own.begin());
            return Shape(own);
        };
        PointwiseCase test{"", {{Shape(dims)}, {part()}, {part()}}};
        test.inputs[1].dtype = pick(4) ? DType::f32 : DType::f16;
        std::string axes;
        for (int d = 0; d < rank; ++d)
            if (pick(2)) axes += (axes.empty() ? "" : ",") + std::to_string(pick(2) ? d : d - rank);
        switch (pick(4)) {
            case 0:
                test.code = "y0 = x0 * x1 + x2; y1 = tanh(x1)";
                break;
            case 1:
                test.code = "y0 = sum[" + axes + "](x0 * x1); y1 = max[" + axes + "](x2 - x0)";
                break;
            case 2:
                test.code = "y0 = mean[" + axes + "](x0 * x0 + x1); y1 = x0 > x2 ? x1 : x0";
                break;
            default:
                test.code = "y0 = sum[" + axes + "](abs(x0)); y1 = sum[](x1 * x1); y2 = x2 + 1";
        }
        // A sum of both signs may cancel to almost zero, where a relative error is meaningless.
        test.fill = "positive";
        test.more = Attrs{{"keep_dim", pick(2) == 1}, {"dtypes", Strings{"float"}}};
        test.tolerance = 1e-5;
        cases.push_back(test);
    }
    return cases;
}

}  // namespace dlprim::testing
