// SPDX-License-Identifier: MIT
// The table of activations. The boundary values of branches are chosen so that the symbolic
// derivative equals PyTorch's there, and so that NaN propagates where it does in PyTorch.
//
// The `processor` text is a comparison with two outcomes, because compilers for x86 turn it into
// one instruction. With its operands in this order, the maximum in relu returns v where v is NaN.
// GPUs use select() and fmax() instead: with comparisons, whole networks take up to 3.5 % longer on
// an H200.
#include "engine/activations.hpp"

#include "base/text.hpp"
#include "engine/float_literal.hpp"
#include "engine/pointwise/erf_series.hpp"
#include "engine/pointwise/tape.hpp"

#include <cmath>
#include <map>
#include <mutex>

namespace dlprim {
namespace {

/// The erf of drivers for CPUs computes lane by lane. Here 1 + erf(v / sqrt(2)) is a power series
/// below sqrt(2), and beyond it the complement of Abramowitz and Stegun 7.1.26, so that results for
/// negative v are not differences of nearly equal numbers.
std::string gelu_for_processors() {
    const std::string s = "(0.5f * v * v)", t = "(1.0f / (1.0f + 0.231641889f * fabs(v)))";
    std::string series = float_literal(pointwise::erf_series[0]);
    for (std::size_t i = 1; i < pointwise::erf_series.size(); ++i)
        series = cat("(", series, " * ", s, " + ", float_literal(pointwise::erf_series[i]), ")");
    std::string complement = "1.061405429f";
    for (const char* c : {"-1.453152027f", "1.421413741f", "-0.284496736f", "0.254829592f"})
        complement = cat("(", complement, " * ", t, " + ", c, ")");
    complement = cat("(", complement, " * ", t, " * exp(-", s, "))");
    const std::string near = cat("1.0f + 0.797884561f * v * (1.0f - ", s, " * ", series, ")");
    // 0 + complement for negative v, 2 - complement for positive.
    const std::string far =
        cat("1.0f + clamp(v * 1e30f, -1.0f, 1.0f) + copysign(", complement, ", -v)");
    return cat("(0.5f * v * select(", far, ", ", near, ", fabs(v) < 1.41421356f))");
}

// clang-format off
const std::vector<Activation>& table() {
    static const std::vector<Activation> activations = {
        {"identity", "x", "(v)"},
        {"relu", "x <= 0 ? 0 : x", "select(v, fmax(v, 0.0f), v <= 0.0f)", 0, 0,
         "(v < 0.0f ? 0.0f : v)"},
        {"relu6", "x <= 0 ? 0 : x >= 6 ? 6 : x",
         "select(v, fmin(fmax(v, 0.0f), 6.0f), (v <= 0.0f) | (v >= 6.0f))", 0, 0,
         "((v < 0.0f ? 0.0f : v) > 6.0f ? 6.0f : (v < 0.0f ? 0.0f : v))"},
        {"sigmoid", "sigmoid(x)", "(1.0f / (1.0f + exp(-v)))"},
        {"tanh", "tanh(x)", "tanh(v)"},
        {"gelu", "0.5 * x * (1 + erf(x * 0.7071067811865476))",
         "(0.5f * v * (1.0f + erf(v * 0.70710678118654752f)))", 0, 0, gelu_for_processors()},
        {"gelu_tanh", "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
         "(0.5f * v * (1.0f + tanh(0.79788456080286536f * (v + 0.044715f * v * v * v))))"},
        {"silu", "x * sigmoid(x)", "(v / (1.0f + exp(-v)))"},
        {"hardswish", "x <= -3 ? x - x : x >= 3 ? x : x * (x + 3) / 6",
         "select(v * fmin(fmax(v + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f), v, (v >= 3.0f) | (v != v))"},
        {"hardsigmoid", "x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5",
         "select(fmin(fmax(v * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f), v, v != v)"},
        {"hardtanh", "x <= alpha ? alpha : x >= beta ? beta : x",
         "select(fmin(fmax(v, (ALPHA)), (BETA)), v, v != v)", -1, 1},
        {"leaky_relu", "x > 0 ? x : alpha * x", "select((ALPHA) * v, v, v > 0.0f)", 0.01},
        {"elu", "x > 0 ? x : alpha * expm1(x)", "select((ALPHA) * expm1(v), v, v > 0.0f)", 1},
        {"selu", "1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x))",
         "(1.0507009873554805f * select(1.6732632423543772f * expm1(v), v, v > 0.0f))"},
        {"celu", "x > 0 ? x : alpha * expm1(x / alpha)",
         "select((ALPHA) * expm1(v / (ALPHA)), v, v > 0.0f)", 1},
        {"softplus", "x * alpha > beta ? x : log1p(exp(x * alpha)) / alpha",
         "select(log1p(exp(v * (ALPHA))) / (ALPHA), v, v * (ALPHA) > (BETA))", 1, 20},
        {"softsign", "x / (1 + abs(x))", "(v / (1.0f + fabs(v)))"},
        {"mish", "x * tanh(x > 20 ? x : log1p(exp(x)))",
         "(v * tanh(select(log1p(exp(v)), v, v > 20.0f)))"},
        {"logsigmoid", "x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x))",
         "(fmin(v, 0.0f) - log1p(exp(-fabs(v))))"},
        {"tanhshrink", "x - tanh(x)", "(v - tanh(v))"},
        {"softshrink", "x > alpha ? x - alpha : x < -alpha ? x + alpha : x - x",
         "select(v - fmin(fmax(v, -(ALPHA)), (ALPHA)), v, v != v)", 0.5},
        {"hardshrink", "x >= -alpha && x <= alpha ? 0 : x",
         "select(v, fmin(fmax(v, 0.0f), 0.0f), (v >= -(ALPHA)) & (v <= (ALPHA)))", 0.5},
        {"threshold", "x <= alpha ? beta : x",
         "select(v, fmin(fmax(v, (BETA)), (BETA)), v <= (ALPHA))", 0, 0},
        {"exp", "exp(x)", "exp(v)"},
        {"log", "log(x)", "log(v)"},
        {"sqrt", "sqrt(x)", "sqrt(v)"},
        {"square", "x * x", "(v * v)"},
        {"abs", "abs(x)", "fabs(v)"},
        {"neg", "-x", "(-v)"},
    };
    return activations;
}
// clang-format on

struct Compiled {
    pointwise::Tape value, gradient;
};

const Compiled& compiled(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::string, Compiled, std::less<>> known;
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(name); found != known.end()) return found->second;
    const Activation& activation = find_activation(name);
    const auto program =
        pointwise::parse("x = x0; alpha = p0; beta = p1; y0 = " + activation.expression);
    const pointwise::ExprPtr value = program.outputs[0].value;
    pointwise::ExprPtr gradient = pointwise::differentiate(value, 0);
    if (!gradient) gradient = pointwise::constant(0);
    Compiled both{pointwise::compile(std::span(&value, 1)),
                  pointwise::compile(std::span(&gradient, 1))};
    return known.emplace(std::string(name), std::move(both)).first->second;
}

double run_at(const pointwise::Tape& tape, double x, double alpha, double beta) {
    const double scalars[] = {alpha, beta};
    const Shape shape;
    std::vector<double> values;
    pointwise::run(tape, {&x, scalars, nullptr, &shape, 0}, values);
    return values[static_cast<std::size_t>(tape.results[0])];
}

}  // namespace

const Activation& find_activation(std::string_view name) {
    for (const Activation& activation : table())
        if (activation.name == name) return activation;
    const auto names = activation_names();
    fail(ErrorKind::invalid_argument, "there is no activation '", name, "'",
         did_you_mean(name, names));
}

std::vector<std::string> activation_names() {
    std::vector<std::string> names;
    for (const Activation& activation : table()) names.push_back(activation.name);
    return names;
}

double activate(std::string_view name, double x, double alpha, double beta) {
    return run_at(compiled(name).value, x, alpha, beta);
}

double activate_gradient(std::string_view name, double x, double alpha, double beta) {
    return run_at(compiled(name).gradient, x, alpha, beta);
}

}  // namespace dlprim
