// SPDX-License-Identifier: MIT
// The calls of engines that compute C by tiles. K is split into parts if the tiles alone do not
// fill the device.
#include "base/text.hpp"
#include "ops/matmul/engine.hpp"

namespace dlprim::matmul {

void add_finish(KernelLaunch& launch, ContextImpl& context, const Problem& problem, const Gemm& g,
                std::int64_t splits, std::uint64_t parts_at) {
    const auto program = context.build(
        {"matmul/finish.cl", epilogue_defines(problem, g) + kernel_source("matmul/finish.cl"),
         gemm_storage(problem, g)});
    KernelCall finish(program, "matmul_finish",
                      line_range(context.traits(), g.batches * g.m * g.n));
    finish.tensor_at("parts", g.workspace, parts_at);
    bind_output(finish, problem, g);
    finish.scalar("count", g.batches * g.m * g.n)
        .size("n", g.n)
        .size("splits", splits)
        .scalar("alpha", g.alpha);
    launch.add(std::move(finish));
}

std::unique_ptr<Launch> tiled_launch(ContextImpl& context, const Problem& problem,
                                     const std::string& path, const std::string& kernel,
                                     std::string defines, std::size_t items, const TileCut& cut) {
    const Gemm g = gemm_of(problem);
    const bool split = cut.splits > 1;
    defines +=
        cat("#define TA ", g.transpose_a ? 1 : 0, "\n#define TB ", g.transpose_b ? 1 : 0, "\n");
    defines +=
        split ? "#define HAS_RESIDUAL 0\n#define EPILOGUE(v, r)\n" : epilogue_defines(problem, g);
    defines += batch_defines(batch_offsets(g));
    KernelCall call(
        context.build({path, defines + kernel_source(path), gemm_storage(problem, g, split)}),
        kernel, group_range(cut.groups(g), static_cast<std::int64_t>(items)));
    bind_factors(call, problem, g);
    if (split)
        call.tensor("bias", g.workspace)
            .tensor("residual", g.workspace)
            .tensor("c", g.workspace)
            .scalar("has_bias", std::int32_t{0});
    else
        bind_output(call, problem, g);
    bind_batch(call, g);
    bind_sizes(call, g)
        .size("k_part", cut.k_part)
        .size("tiles_m", cut.tiles_m)
        .size("tiles_n", cut.tiles_n)
        .size("batches", g.batches)
        .scalar("alpha", split ? 1.0f : g.alpha);
    auto launch = std::make_unique<KernelLaunch>();
    launch->add(std::move(call));
    if (split) add_finish(*launch, context, problem, g, cut.splits);
    return launch;
}

}  // namespace dlprim::matmul
