// SPDX-License-Identifier: MIT
// Float engines of convolution, its gradients and matrix products with data whose magnitudes range
// from 1e-20 to 1e20. Each must be as precise as the device's plain multiply-adds, compared with an
// oracle in double. The test is meant for engines that give blocks of values a common exponent
// (split halves, wgmma) and for those that mix values (Winograd).
//
// There are two bounds. First, the L2 error of the whole result must be below 1e-5 of its L2 norm.
// Second, the error relative to the sum of the terms' magnitudes, sum |t|, must be at most that of
// plain multiply-adds, or 1e-6. (Rounding errors are proportional to sum |t|, even if the terms
// cancel.) With two halves a factor has 22 bits. So each factor contributes an error of up to 2^-22
// to a term, and the omitted product of the lower halves another 2^-22. Together these are 7e-7,
// and the rounding errors of the sum are added. A chain of multiply-adds may have an error of 2^-24
// per term. The second error is measured over the whole result, over slices of it, or per element,
// as fine as a case promises. docs/engines/split_floats.md has the promises ("Range").
#include "engine/laid_out.hpp"
#include "graph/operator.hpp"
#include "ops/conv2d/options.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <random>

using namespace dlprim;
using namespace dlprim::conv2d;
using testing::problem_of;

namespace {

/// The magnitudes of a tensor: powers of ten from `low` to `high`.
struct Magnitudes {
    double low = 0, high = 0;
    int dim = each;        ///< the dimension along which they differ, or each
    std::int64_t run = 1;  ///< neighbours along it that have the same magnitude
    static constexpr int each = -1;
};

std::int64_t along(const Shape& shape, std::int64_t index, int dim) {
    for (int d = shape.rank() - 1; d > dim; --d) index /= shape[d];
    return index % shape[dim];
}

HostArray fill(const Shape& shape, const Magnitudes& how, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> decade(std::min(how.low, how.high),
                                                  std::max(how.low, how.high));
    // Evenly spaced from the smallest to the largest, in a random order that is the same for all
    // tensors.
    std::vector<double> decades;
    if (how.dim != Magnitudes::each) {
        const std::int64_t count = (shape[how.dim] + how.run - 1) / how.run;
        for (std::int64_t i = 0; i < count; ++i)
            decades.push_back(how.low +
                              (how.high - how.low) * static_cast<double>(i) /
                                  static_cast<double>(std::max<std::int64_t>(1, count - 1)));
        std::shuffle(decades.begin(), decades.end(), std::mt19937(5));
    }
    HostArray made{shape, {}, DType::f32};
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
        double v = normal(random);
        if (how.dim != Magnitudes::each)
            v *= std::pow(10.0,
                          decades[static_cast<std::size_t>(along(shape, i, how.dim) / how.run)]);
        else if (how.low == how.high)
            v *= std::pow(10.0, how.low);
        else
            v = std::copysign(std::pow(10.0, decade(random)), v);
        made.data.push_back(static_cast<double>(static_cast<float>(v)));
    }
    return made;
}

/// A problem of two factors and the roles of their dimensions. Kept dimensions become dimension 0
/// (of a) and 1 (of b) of the result, or the other way round. Summed ones disappear.
struct Product {
    std::string name;
    Problem problem;
    int a_kept, a_summed, b_kept, b_summed;
    bool swapped;  ///< a's kept dimension is dimension 1 of the result
    std::function<HostArray(const HostArray&, const HostArray&)> oracle;
};

/// A convolution and its two gradients.
std::vector<Product> convolution(const std::string& name, const Shape& x, const Attrs& options) {
    const Operator& op = OperatorRegistry::instance().get("Convolution");
    const Attrs attrs = op.schema().complete(options, name);
    const Shape weight = op.params(attrs, std::vector<TensorSpec>{{x, DType::f32}})[0].spec.shape;
    const Shape y =
        op.infer(attrs, std::vector<TensorSpec>{{x, DType::f32}, {weight, DType::f32}})[0].shape;
    const auto gradient = [&](const char* shape_name, const Shape& shape) {
        Attrs kept;
        for (const char* option : {"groups", "kernel", "stride", "pad", "dilate"})
            kept.set(option, attrs.at(option));
        return kept.set(shape_name, shape.to_vector());
    };
    const auto forward = [&op, attrs](const HostArray& a, const HostArray& b) {
        OracleCall call{attrs, false, {a, b}, std::vector<HostArray>(1), {}};
        op.oracle(call);
        return call.outputs[0];
    };
    // Each gradient does not depend on one of the arrays.
    const auto backward = [&op, attrs](const HostArray& image, const HostArray& filter,
                                       const HostArray& dy) {
        OracleBackwardCall call{attrs, false, {image, filter}, {dy}, {dy}, {}, 0, 0, {}};
        op.oracle_backward(call);
        return call.input_gradients;
    };
    const auto zeros = [](const Shape& shape) {
        return HostArray{shape, std::vector<double>(static_cast<std::size_t>(shape.numel()))};
    };
    return {{name, problem_of(forward_type, attrs, {x, weight}, y), 0, 1, 0, 1, false, forward},
            {name + " backward data",
             problem_of(backward_data_type, gradient("input_shape", x), {y, weight}, x), 0, 1, 1, 0,
             false,
             [=](const HostArray& a, const HostArray& b) { return backward(zeros(x), b, a)[0]; }},
            {name + " backward filter",
             problem_of(backward_filter_type, gradient("weight_shape", weight), {x, y}, weight), 1,
             0, 1, 0, true, [=](const HostArray& a, const HostArray& b) {
                 return backward(a, zeros(weight), b)[1];
             }}};
}

Product matrices(const std::string& type, const Attrs& options, const Shape& a, const Shape& b) {
    const Operator& op = OperatorRegistry::instance().get(type);
    Attrs attrs = op.schema().complete(options, "test");
    if (attrs.has("activation")) attrs.set("activation", std::string("identity"));
    const Shape y =
        op.infer(attrs, std::vector<TensorSpec>{{a, DType::f32}, {b, DType::f32}})[0].shape;
    const bool ta = attrs.has("transpose_a") && attrs.boolean("transpose_a");
    const bool tb = type == "InnerProduct" || attrs.boolean("transpose_b");
    return {type + (ta ? " of A turned" : "") + (tb ? " of B turned" : ""),
            problem_of(type, attrs, {a, b}, y),
            ta ? 1 : 0,
            ta ? 0 : 1,
            tb ? 0 : 1,
            tb ? 1 : 0,
            false,
            [&op, attrs](const HostArray& left, const HostArray& right) {
                OracleCall call{attrs, false, {left, right}, std::vector<HostArray>(1), {}};
                op.oracle(call);
                return call.outputs[0];
            }};
}

std::vector<Product> products() {
    std::vector<Product> all;
    const auto add = [&](std::vector<Product> more) {
        for (Product& p : more) all.push_back(std::move(p));
    };
    const auto conv = [](std::int64_t out, std::int64_t kernel, std::int64_t stride) {
        return Attrs{{"channels_out", out},
                     {"kernel", Ints{kernel}},
                     {"stride", Ints{stride}},
                     {"pad", Ints{kernel / 2}},
                     {"bias", false}};
    };
    add(convolution("1x1", Shape{3, 80, 9, 8}, conv(48, 1, 1)));
    add(convolution("3x3", Shape{3, 80, 7, 8}, conv(48, 3, 1)));
    add(convolution("first layer", Shape{3, 3, 19, 18}, conv(48, 5, 2)));
    add({matrices("MatMul", {}, Shape{48, 150}, Shape{150, 80}),
         matrices("MatMul", {{"transpose_a", true}, {"transpose_b", true}}, Shape{150, 48},
                  Shape{80, 150}),
         matrices("InnerProduct", {{"outputs", std::int64_t(80)}, {"bias", false}}, Shape{48, 150},
                  Shape{80, 150})});
    return all;
}

/// For what an error is measured: slices along dimension 0 or 1 of the result, or elements.
enum class Grain { whole, along0, along1, elements };

struct Errors {
    double of_result;  ///< L2, of the result's norm
    double
        of_terms;  ///< of sum |t|: L2 of a slice, the worst one; of elements their root mean square
};

Errors errors_of(const std::vector<double>& found, const HostArray& wanted, const HostArray& terms,
                 Grain grain) {
    double error = 0, size = 0, squares = 0;
    std::int64_t count = 0;
    const int dim = grain == Grain::along1 ? 1 : 0;
    const bool sliced = grain == Grain::along0 || grain == Grain::along1;
    std::vector<double> slice_error(sliced ? static_cast<std::size_t>(wanted.shape[dim]) : 1);
    std::vector<double> slice_terms(slice_error.size());
    for (std::size_t i = 0; i < wanted.data.size(); ++i) {
        if (!std::isfinite(found[i])) return {INFINITY, INFINITY};
        const double d = found[i] - wanted.data[i], t = terms.data[i];
        const std::size_t slice =
            sliced
                ? static_cast<std::size_t>(along(wanted.shape, static_cast<std::int64_t>(i), dim))
                : 0;
        error += d * d;
        size += wanted.data[i] * wanted.data[i];
        slice_error[slice] += d * d;
        slice_terms[slice] += t * t;
        if (t == 0 && d != 0) return {INFINITY, INFINITY};
        if (t > 0) squares += d / t * (d / t);
        count += t > 0;
    }
    Errors errors{std::sqrt(error / size), 0};
    for (std::size_t i = 0; i < slice_error.size(); ++i)
        if (slice_terms[i] > 0)
            errors.of_terms = std::max(errors.of_terms, std::sqrt(slice_error[i] / slice_terms[i]));
    if (grain == Grain::elements)
        errors.of_terms =
            std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(1, count)));
    return errors;
}

/// If an engine has one exponent for more than a column of a step of K, or mixes values, then what
/// a case promises for elements and slices holds only for larger parts.
struct Case {
    std::string name;
    Magnitudes a, b;
    Grain grain;
    Grain mixing;  ///< Winograd's, which mixes a tile of x and the taps of a kernel;
                   ///< wgmma_narrow's, whose images have one exponent
    Grain shared;  ///< of filter gradients and matrix products by wgmma_split, where 16 rows (or
                   ///< columns) of a step of K share one
    bool splits = true;  ///< whether engines of split halves are tested at all
};

bool names(const Engine& engine, std::string_view part) {
    return engine.name().find(part) != std::string_view::npos;
}

bool plain_multiply_adds(const Engine& engine) {
    return names(engine, ".reference") || names(engine, ".implicit_gemm") ||
           names(engine, ".tiled") || names(engine, ".host");
}

Grain grain_of(const Case& c, const Engine& engine) {
    if (names(engine, "winograd") || names(engine, "mma_narrow") || names(engine, "mma_window"))
        return c.mixing;
    const bool filter = engine.op() == backward_filter_type;
    if (names(engine, "mma_split") &&
        (filter || engine.op() == "MatMul" || engine.op() == "InnerProduct"))
        return c.shared;
    return c.grain;
}

std::vector<Case> cases_of(const Product& p) {
    std::vector<Case> all;
    const auto level = [](double decade) { return Magnitudes{decade, decade}; };
    const auto add = [&](std::string name, Magnitudes a, Magnitudes b, Grain grain, Grain mixing,
                         Grain shared, bool splits = true) {
        all.push_back({std::move(name), a, b, grain, mixing, shared, splits});
    };
    constexpr Grain whole = Grain::whole, elements = Grain::elements;
    // 1: whole tensors of another scale.
    const double scales[][2] = {{-20, 20}, {20, -20}, {-20, 0},   {0, -20},
                                {20, 0},   {0, 20},   {-17, -17}, {17, 17}};
    for (const auto& s : scales)
        add("of scale", level(s[0]), level(s[1]), elements, elements, elements);
    // 2: all magnitudes in one tensor. An element whose taps cross the border uses only few of the
    // weights that determine its channel's exponent.
    const bool window = p.problem.inputs[1].shape.rank() == 4 &&
                        p.problem.attrs.ints("kernel") != Ints{1} &&
                        p.problem.op != backward_filter_type;
    add("all in a", {-20, 20}, level(0), elements, whole, elements);
    add("all in b", level(0), {-20, 20}, window ? whole : elements, whole, elements);
    add("all in both", {-20, 20}, {-17, 17}, whole, whole, whole);
    // 3: slices of the result with very different magnitudes.
    const Grain by_a = p.swapped ? Grain::along1 : Grain::along0;
    const Grain by_b = p.swapped ? Grain::along0 : Grain::along1;
    add("slices of a", {-20, 20, p.a_kept}, level(0), by_a, by_a, whole);
    add("slices of b", level(0), {-20, 20, p.b_kept}, by_b, by_b, whole);
    add("slices of a by 16", {-20, 20, p.a_kept, 16}, level(0), by_a, by_a, by_a);
    add("slices of b by 16", level(0), {-20, 20, p.b_kept, 16}, by_b, by_b, by_b);
    add("near slices of both", {-2.5, 2.5, p.a_kept}, {-2.5, 2.5, p.b_kept}, by_a, by_a, by_a);
    // 4: parts of the sum with very different magnitudes; and parts that the other factor
    // compensates, where a common exponent keeps 2^-18 of the largest.
    add("parts of a", {-20, 20, p.a_summed}, level(0), elements, elements, elements);
    add("parts of b", level(0), {-20, 20, p.b_summed}, elements, elements, elements);
    add("evened out", {-2.5, 2.5, p.a_summed}, {2.5, -2.5, p.b_summed}, elements, elements,
        elements);
    add("evened out from afar", {-17, 17, p.a_summed}, {17, -17, p.b_summed}, elements, elements,
        elements, false);
    return all;
}

HostArray magnitudes_of(HostArray array) {
    for (double& v : array.data) v = std::abs(v);
    return array;
}

void check(const Product& p, const Case& c) {
    const HostArray a = fill(p.problem.inputs[0].shape, c.a, 11);
    const HostArray b = fill(p.problem.inputs[1].shape, c.b, 12);
    const HostArray wanted = p.oracle(a, b), terms = p.oracle(magnitudes_of(a), magnitudes_of(b));
    for (const Context& context : testing::test_devices()) {
        const Traits& traits = context.traits();
        // The errors of plain multiply-adds, for each grain.
        double plain[4] = {};
        for (const bool others : {false, true})
            for (const bool constant : {false, true}) {
                Problem problem = p.problem;
                problem.inputs[1].constant = constant;
                for (const Engine* engine :
                     EngineRegistry::instance().of(problem.op, traits.host)) {
                    if (plain_multiply_adds(*engine) == others) continue;
                    if (!engine->is_applicable(traits, problem)) continue;
                    if (!c.splits && names(*engine, "mma")) continue;
                    for (const LayoutChoice& choice : engine->layouts(traits, problem)) {
                        // A constant factor makes a difference only if it is packed.
                        if (constant && choice.inputs[1].kind != Layout::Kind::packed) continue;
                        const Problem laid = with_layouts(problem, choice);
                        const std::vector<double> found =
                            testing::run_engine(
                                context, {engine, laid, engine->default_tuning(traits, laid)},
                                {a, b})
                                .at(0);
                        const Grain grain = grain_of(c, *engine);
                        const Errors errors = errors_of(found, wanted, terms, grain);
                        if (!others)
                            for (const Grain g :
                                 {Grain::whole, Grain::along0, Grain::along1, Grain::elements}) {
                                double& most = plain[static_cast<int>(g)];
                                most = std::max(most, errors_of(found, wanted, terms, g).of_terms);
                            }
                        INFO(engine->name() << " on " << context.info().name << ", " << p.name
                                            << ", " << c.name << " [" << c.a.low << ", " << c.a.high
                                            << "] x [" << c.b.low << ", " << c.b.high << ']');
                        CHECK(errors.of_result <= 1e-5);
                        CHECK(errors.of_terms <=
                              (others ? std::max(1e-6, plain[static_cast<int>(grain)]) : 1e-5));
                    }
                }
            }
    }
}

}  // namespace

TEST_CASE("engines are as precise as multiply-adds over magnitudes from 1e-20 to 1e20") {
    testing::test_devices();
    for (const Product& product : products())
        for (const Case& c : cases_of(product)) check(product, c);
}
