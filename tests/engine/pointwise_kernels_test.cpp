// SPDX-License-Identifier: MIT
// Compares generated and host kernels with the oracle: programs, shapes, layouts, types and both
// styles of kernel, on every device of the machine.
#include "engine/laid_out.hpp"
#include "pointwise_programs.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <algorithm>
#include <cmath>
#include <random>

using namespace dlprim;
using testing::PointwiseCase;
using testing::PointwiseInput;
using testing::problem_of_program;

namespace {

bool has_double(const Problem& problem) {
    const auto is_double = [](const Operand& operand) { return operand.dtype == DType::f64; };
    return std::any_of(problem.inputs.begin(), problem.inputs.end(), is_double) ||
           std::any_of(problem.outputs.begin(), problem.outputs.end(), is_double);
}

/// A case in the form that engines get, with the oracle's results.
struct Expected {
    Problem problem;
    OracleCall oracle;
};

Expected expected_of(const PointwiseCase& test, unsigned seed) {
    Problem problem = problem_of_program(test);
    OracleCall oracle{problem.attrs};
    std::mt19937 random(seed);
    for (const PointwiseInput& in : test.inputs) {
        HostArray array{in.shape, {}, in.dtype};
        std::normal_distribution<double> normal;
        for (std::int64_t i = 0; i < in.shape.numel(); ++i) {
            double v = normal(random);
            if (test.fill == "positive") v = std::fabs(v) + 0.1;
            if (test.fill == "integers") v = std::floor(v * 4);
            if (test.fill == "large") v = v * 60;
            array.data.push_back(v);
        }
        round_to(in.dtype, array.data);
        oracle.inputs.push_back(array);
    }
    OperatorRegistry::instance().get("Pointwise").oracle(oracle);
    for (std::size_t k = 0; k < problem.outputs.size(); ++k) {
        CHECK(oracle.outputs[k].shape == problem.outputs[k].shape);
        CHECK(oracle.outputs[k].dtype == problem.outputs[k].dtype);
        round_to(oracle.outputs[k].dtype, oracle.outputs[k].data);
    }
    return {std::move(problem), std::move(oracle)};
}

void check(const Context& context, const PointwiseCase& test, unsigned seed) {
    const auto [problem, oracle] = expected_of(test, seed);
    for (const Engine* engine : EngineRegistry::instance().of("Pointwise", context.traits().host)) {
        if (has_double(problem) && !context.traits().host && !context.traits().fp64) continue;
        REQUIRE(engine->is_applicable(context.traits(), problem).ok);
        for (const LayoutChoice& layouts : engine->layouts(context.traits(), problem)) {
            const Problem laid = with_layouts(problem, layouts);
            const std::string shown = laid.inputs.empty() ? "nchw" : laid.inputs[0].layout.str();
            // Vectors, and work-groups of the largest and of a small size, which divide reductions
            // into more parts.
            const std::vector<Tuning> ways =
                context.traits().host
                    ? std::vector<Tuning>{{}}
                    : std::vector<Tuning>{
                          {{"vector", 0}}, {{"vector", 0}, {"group", 64}}, {{"vector", 1}}};
            for (const Tuning& tuning : ways) {
                const bool vector = !tuning.empty() && tuning.at("vector") == 1;
                // Always test what the planner would choose, and the other ways in rotation.
                const bool usual = vector == context.traits().wide_vectors &&
                                   tuning.count("group") == 0 &&
                                   (laid.inputs.empty() || laid.inputs[0].layout.is_plain());
                const bool reduces = test.code.find('[') != std::string::npos;
                if (!usual &&
                    !testing::engine_turns().take(shown +
                                                      (vector                  ? " vectors"
                                                       : tuning.count("group") ? " small groups"
                                                                               : " groups") +
                                                      (reduces ? " reduction" : ""),
                                                  context))
                    continue;
                INFO(test.code << " on " << context.info().name << ", " << engine->name()
                               << ", layout " << shown << ", vector " << vector);
                for (const PointwiseInput& in : test.inputs)
                    UNSCOPED_INFO("shape " << in.shape.str() << " " << name_of(in.dtype));
                const Results found =
                    testing::run_engine(context, {engine, laid, tuning}, oracle.inputs);
                for (std::size_t k = 0; k < laid.outputs.size(); ++k) {
                    const DType dtype = laid.outputs[k].dtype;
                    const double tolerance = dtype == DType::f16    ? 1e-3
                                             : dtype == DType::bf16 ? 6e-3
                                                                    : test.tolerance;
                    UNSCOPED_INFO("output " << k);
                    CHECK(relative_error(found[k], oracle.outputs[k].data) <= tolerance);
                }
            }
        }
    }
}

void check_everywhere(const std::vector<PointwiseCase>& cases) {
    unsigned seed = 1;
    for (const Context& context : testing::test_devices())
        for (const PointwiseCase& test : cases) check(context, test, seed++);
}

/// The text that an engine compiles for a program on tensors of one shape.
std::string kernel_text(const Context& context, const std::string& code, int inputs,
                        const Tuning& tuning) {
    const Problem problem = problem_of_program(
        {code,
         std::vector<PointwiseInput>(static_cast<std::size_t>(inputs), {Shape{40, 30}}),
         {{"scalars", Doubles{0.5, 0.25}}}});
    const BuildsLater later;
    std::string text;
    for (const Engine* engine : EngineRegistry::instance().of("Pointwise", false)) {
        const auto launch = engine->build(Access::impl(context), problem, tuning);
        for (const KernelCall& call : launch->calls()) text += call.source().source;
    }
    return text;
}

}  // namespace

TEST_CASE("programs that differ in places of operands or in a factor share a kernel") {
    for (const Context& context : testing::test_devices()) {
        if (context.traits().host) continue;
        for (const int vector : {0, 1}) {
            const auto text = [&](const char* code, int inputs) {
                return kernel_text(context, code, inputs, {{"vector", vector}});
            };
            CHECK(text("y0 = (x0 - x1) * x2", 3) == text("y0 = (x2 - x0) * x1", 3));
            CHECK(text("y0 = x0 * p0", 1) == text("y0 = x0 * p1", 1));
            CHECK(text("y0 = x0 * p0 + p1", 1) == text("y0 = x0 * p1 + p0", 1));
            CHECK(text("y0 = x0 - x1", 2) != text("y0 = x0 - x0", 1));
            if (vector == 0) CHECK(text("y0 = sum[0](x0)", 1) == text("y0 = mean[0](x0)", 1));
        }
    }
}

TEST_CASE("elementwise programs") {
    check_everywhere(testing::elementwise_programs());
    check_everywhere(testing::exact_programs());
}

TEST_CASE("reductions") {
    check_everywhere(testing::reduction_programs());
}

TEST_CASE("random problems") {
    check_everywhere(testing::random_programs());
}
