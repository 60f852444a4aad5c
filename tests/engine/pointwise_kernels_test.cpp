// SPDX-License-Identifier: MIT
// Compares generated and host kernels with the oracle: programs, shapes, layouts, types and both
// styles of kernel, on every device of the machine.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "pointwise_programs.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/turns.hpp"

#include <dlprim/tensor.hpp>

#include <cmath>
#include <cstring>
#include <random>

using namespace dlprim;
using testing::PointwiseCase;
using testing::PointwiseInput;

namespace {

/// Converts row-major logical data to a layout's memory order and back.
std::vector<double> arranged(const std::vector<double>& data, const Shape& shape,
                             const Layout& layout, bool back) {
    if (layout.is_plain()) return data;
    const std::int64_t n = shape[0], c = shape[1], hw = shape[2] * shape[3];
    const std::int64_t b = layout.kind == Layout::Kind::blocked ? layout.block : c;
    const std::int64_t blocks = (c + b - 1) / b;
    std::vector<double> out(back ? static_cast<std::size_t>(n * c * hw)
                                 : static_cast<std::size_t>(n * blocks * b * hw));
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = 0; k < blocks * b; ++k)
            for (std::int64_t p = 0; p < hw; ++p) {
                const auto memory =
                    static_cast<std::size_t>(((i * blocks + k / b) * hw + p) * b + k % b);
                if (k >= c) {
                    // Padding lanes are zero after every write.
                    if (back) REQUIRE(data[memory] == 0);
                    continue;
                }
                const auto logical = static_cast<std::size_t>((i * c + k) * hw + p);
                if (back)
                    out[logical] = data[memory];
                else
                    out[memory] = data[logical];
            }
    return out;
}

std::vector<double> rounded(std::vector<double> data, DType dtype) {
    std::vector<std::byte> raw(data.size() * 8 + 8);
    convert(data.data(), DType::f64, raw.data(), dtype, data.size());
    convert(raw.data(), dtype, data.data(), DType::f64, data.size());
    return data;
}

Tensor upload(const Context& context, const std::vector<double>& data, DType dtype) {
    Tensor tensor(context, Shape{static_cast<std::int64_t>(data.size())}, dtype);
    std::vector<std::byte> raw(data.size() * size_of(dtype) + 8);
    convert(data.data(), DType::f64, raw.data(), dtype, data.size());
    if (!data.empty()) tensor.copy_from_host(raw.data(), data.size() * size_of(dtype));
    return tensor;
}

std::vector<double> download(const Tensor& tensor) {
    std::vector<double> out(static_cast<std::size_t>(tensor.shape().numel()));
    std::vector<std::byte> raw(out.size() * size_of(tensor.dtype()) + 8);
    if (out.empty()) return out;
    tensor.copy_to_host(raw.data(), out.size() * size_of(tensor.dtype()));
    convert(raw.data(), tensor.dtype(), out.data(), DType::f64, out.size());
    return out;
}

void compare(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
    REQUIRE(got.size() == want.size());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (!std::isfinite(want[i]) || !std::isfinite(got[i])) {
            INFO("element " << i);
            if (std::isnan(want[i]))
                CHECK(std::isnan(got[i]));
            else
                CHECK(got[i] == want[i]);
            continue;
        }
        error += (got[i] - want[i]) * (got[i] - want[i]);
        size += want[i] * want[i];
    }
    INFO("error " << std::sqrt(error) << " of " << std::sqrt(size));
    if (!(std::sqrt(error) <= tolerance * std::sqrt(size) + 1e-30)) {
        for (std::size_t i = 0; i < got.size() && i < 40; ++i)
            UNSCOPED_INFO(i << ": " << got[i] << " " << want[i]);
        CHECK(std::sqrt(error) <= tolerance * std::sqrt(size) + 1e-30);
    }
}

bool has_double(const Problem& problem) {
    for (const Operand& o : problem.inputs)
        if (o.dtype == DType::f64) return true;
    for (const Operand& o : problem.outputs)
        if (o.dtype == DType::f64) return true;
    return false;
}

testing::Turns turns;

/// A case in the form that engines get, with the oracle's results.
struct Expected {
    Problem problem;
    OracleCall oracle;
};

Expected expected_of(const PointwiseCase& test, unsigned seed) {
    const Operator& op = OperatorRegistry::instance().get("Pointwise");
    Attrs given = test.more;
    given.set("code", test.code);
    Problem problem;
    problem.op = "Pointwise";
    problem.attrs = op.schema().complete(given, "test");
    OracleCall oracle{problem.attrs};
    std::mt19937 random(seed);
    std::vector<TensorSpec> specs;
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
        array.data = rounded(array.data, in.dtype);
        oracle.inputs.push_back(array);
        specs.push_back({in.shape, in.dtype});
        problem.inputs.push_back({in.shape, in.dtype, Layout::plain(), false});
    }
    const auto made = op.infer(problem.attrs, specs);
    for (const TensorSpec& spec : made)
        problem.outputs.push_back({spec.shape, spec.dtype, Layout::plain(), false});
    op.oracle(oracle);
    for (std::size_t k = 0; k < made.size(); ++k) {
        CHECK(oracle.outputs[k].shape == made[k].shape);
        CHECK(oracle.outputs[k].dtype == made[k].dtype);
    }
    return {std::move(problem), std::move(oracle)};
}

void check(const Context& context, const PointwiseCase& test, unsigned seed) {
    const auto [problem, oracle] = expected_of(test, seed);
    for (const Engine* engine : EngineRegistry::instance().of("Pointwise", context.traits().host)) {
        if (has_double(problem) && !context.traits().host && !context.traits().fp64) continue;
        REQUIRE(engine->is_applicable(context.traits(), problem).ok);
        for (const LayoutChoice& layouts : engine->layouts(context.traits(), problem)) {
            Problem laid = problem;
            for (std::size_t i = 0; i < laid.inputs.size(); ++i)
                laid.inputs[i].layout = layouts.inputs[i];
            for (std::size_t k = 0; k < laid.outputs.size(); ++k)
                laid.outputs[k].layout = layouts.outputs[k];
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
                if (!usual && !turns.take(shown +
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
                auto launch = engine->build(Access::impl(context), laid, tuning);
                std::vector<Tensor> tensors;
                for (std::size_t i = 0; i < laid.inputs.size(); ++i)
                    tensors.push_back(upload(context,
                                             arranged(oracle.inputs[i].data, laid.inputs[i].shape,
                                                      laid.inputs[i].layout, false),
                                             laid.inputs[i].dtype));
                for (const Operand& out : laid.outputs) {
                    const auto count = static_cast<std::int64_t>(
                        storage_bytes(out.shape, out.dtype, out.layout) / size_of(out.dtype));
                    Tensor tensor(context, Shape{count}, out.dtype);
                    if (count > 0) tensor.fill(7);
                    tensors.push_back(tensor);
                }
                const std::uint64_t workspace =
                    engine->workspace_bytes(context.traits(), laid, tuning);
                if (workspace > 0)
                    tensors.emplace_back(context, Shape{static_cast<std::int64_t>(workspace)},
                                         DType::u8);
                std::vector<BufferRef> operands;
                for (const Tensor& t : tensors)
                    operands.push_back({Access::buffer(t).get(), t.byte_offset()});
                launch->enqueue(Access::impl(context).queue(), operands);
                for (std::size_t k = 0; k < laid.outputs.size(); ++k) {
                    const Operand& out = laid.outputs[k];
                    const auto got = arranged(download(tensors[laid.inputs.size() + k]), out.shape,
                                              out.layout, true);
                    const double tolerance = out.dtype == DType::f16    ? 1e-3
                                             : out.dtype == DType::bf16 ? 6e-3
                                                                        : test.tolerance;
                    UNSCOPED_INFO("output " << k);
                    compare(got, rounded(oracle.outputs[k].data, out.dtype), tolerance);
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
    const Operator& op = OperatorRegistry::instance().get("Pointwise");
    Attrs given{{"scalars", Doubles{0.5, 0.25}}};
    given.set("code", code);
    Problem problem;
    problem.op = "Pointwise";
    problem.attrs = op.schema().complete(given, "test");
    const TensorSpec spec{Shape{40, 30}, DType::f32};
    const std::vector<TensorSpec> specs(static_cast<std::size_t>(inputs), spec);
    for (const TensorSpec& in : specs)
        problem.inputs.push_back({in.shape, in.dtype, Layout::plain(), false});
    for (const TensorSpec& out : op.infer(problem.attrs, specs))
        problem.outputs.push_back({out.shape, out.dtype, Layout::plain(), false});
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
