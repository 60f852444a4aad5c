// SPDX-License-Identifier: MIT
// matmul.wide and inner_product.wide: products of doubles and of integers on OpenCL devices
// (kernels/matmul/wide.cl).
#include "ops/matmul/wide.hpp"

#include "engine/element_types.hpp"

#include <bit>
#include <limits>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/wide.cl";
constexpr std::int64_t side = 4;  // of a work-item's tile

std::int64_t tiles(std::int64_t size) {
    return (size + side - 1) / side;
}

class Wide : public MatMulEngine {
  public:
    explicit Wide(const std::string& op) : MatMulEngine(op, "wide") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return check_wide(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 0.1, 0.3);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = tiles(g.m) * tiles(g.n) * g.batches;
        if (count == 0) return std::make_unique<KernelLaunch>();
        const bool doubles = dtype == DType::f64;
        const std::string defines =
            cat("#define HAS_RESIDUAL ", g.residual >= 0 ? 1 : 0, "\n#define FACTOR(bits) ",
                doubles ? "as_double(bits)" : "(bits)", "\n");
        const double alpha = alpha_of(problem);
        KernelCall call(
            context.build({source, defines + kernel_source(source), element_options(dtype)}),
            "matmul_wide", line_range(context.traits(), count));
        const std::size_t bytes = size_of(dtype);
        call.tensor("a", g.a, bytes).tensor("b", g.b, bytes).tensor("c", g.c, bytes);
        call.tensor("bias", g.bias >= 0 ? g.bias : g.c, bytes);
        call.tensor("residual", g.residual >= 0 ? g.residual : g.c, bytes);
        bind_batch_digits(call, g);
        bind_strides(bind_sizes(call, g), g)
            .scalar("count", count)
            .scalar("alpha",
                    doubles ? std::bit_cast<std::int64_t>(alpha) : static_cast<std::int64_t>(alpha))
            .scalar("has_bias", std::int32_t{g.bias >= 0});
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

bool is_wide_type(DType dtype) {
    return dtype == DType::f64 || is_integer(dtype);
}

Verdict check_wide(const Traits& device, const Problem& problem) {
    const DType dtype = problem.inputs.at(0).dtype;
    if (!is_wide_type(dtype))
        return Verdict::no(cat("it multiplies doubles and integers, not ", name_of(dtype)));
    for (const auto* side_of : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *side_of)
            if (operand.dtype != dtype)
                return Verdict::no(cat("it needs tensors of one type, not ", name_of(dtype),
                                       " and ", name_of(operand.dtype)));
    if (problem.epilogue.size() > 1 ||
        (!problem.epilogue.empty() && problem.epilogue[0].kind != EpilogueStage::Kind::add))
        return Verdict::no("its epilogue is at most one sum");
    const Gemm g = gemm_of(problem);
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() / 2;
    if (g.m > limit || g.n > limit || g.k > limit)
        return Verdict::no(cat("it needs matrices whose dimensions are below 2^30, not M = ", g.m,
                               ", N = ", g.n, ", K = ", g.k));
    return has_double(device, dtype);
}

double alpha_of(const Problem& problem) {
    return problem.op == "MatMul" ? problem.attrs.number("alpha") : 1.0;
}

void add_wide(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Wide>(op));
}

}  // namespace dlprim::matmul
