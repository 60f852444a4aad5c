// SPDX-License-Identifier: MIT
// MatMulEngine: the base of engines for MatMul, InnerProduct and NormedProduct. Most classes are
// registered under the first two types, as "matmul.<way>" and "inner_product.<way>".
#pragma once

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/matrix/model.hpp"
#include "ops/matmul/gemm.hpp"

#include <string>

namespace dlprim::matmul {

class MatMulEngine : public Engine {
  public:
    MatMulEngine(std::string_view op, std::string_view way, bool on_host = false)
        : Engine(std::string(op == "MatMul"         ? "matmul."
                             : op == "InnerProduct" ? "inner_product."
                                                    : "normed_product.")
                     .append(way),
                 op, on_host) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        (void)device;
        return check_gemm(problem);
    }
};

/// How a kernel's tiles cover C. With split-K, K is divided into `splits` parts of k_part.
struct TileCut {
    std::int64_t tiles_m, tiles_n, splits, k_part;
    std::int64_t groups(const Gemm& g) const { return tiles_m * tiles_n * splits * g.batches; }
    /// Of the parts, where there are several.
    std::uint64_t workspace_bytes(const Gemm& g) const {
        return splits == 1 ? 0 : static_cast<std::uint64_t>(splits * g.batches * g.m * g.n) * 4;
    }
};
/// The split-K factors that engines with such tiles try. Each part has at least `least` of K.
inline PartsRange parts_of_k(const Gemm& g, std::int64_t least) {
    return {g.k, least, g.c_elements() * 4.0, 256e6, 1, 64, PartsRange::Growth::twice, 1.0};
}
/// The launch of a kernel with the parameters of kernels/matmul/tiled.cl, with `items` work-items
/// per tile. If k is divided, the launch of finish.cl follows. `defines` are the kernel's own.
std::unique_ptr<Launch> tiled_launch(ContextImpl& context, const Problem& problem,
                                     const std::string& path, const std::string& kernel,
                                     std::string defines, std::size_t items, const TileCut& cut);
/// Adds the call that sums the parts, which begin at byte `parts_at` of the workspace, in order and
/// applies alpha, bias and epilogue.
void add_finish(KernelLaunch& launch, ContextImpl& context, const Problem& problem, const Gemm& g,
                std::int64_t splits, std::uint64_t parts_at = 0);
// Each of these functions is in a file of its own and registers its engine for `op`.
void add_reference(EngineRegistry& engines, const std::string& op);
void add_host(EngineRegistry& engines, const std::string& op);
void add_vector(EngineRegistry& engines, const std::string& op);
void add_cache_blocked(EngineRegistry& engines, const std::string& op);
void add_dot(EngineRegistry& engines, const std::string& op);
void add_subgroup(EngineRegistry& engines, const std::string& op);
void add_tiled(EngineRegistry& engines, const std::string& op);
void add_stored16(EngineRegistry& engines, const std::string& op);
void add_stored16_weights(EngineRegistry& engines, const std::string& op);
void add_planes(EngineRegistry& engines, const std::string& op);
void add_split(EngineRegistry& engines, const std::string& op);
void add_gemv(EngineRegistry& engines, const std::string& op);
/// For InnerProduct with weights in blocks (blocks.hpp), and two of them for NormedProduct.
void add_blocks_host(EngineRegistry& engines);
void add_blocks(EngineRegistry& engines);
void add_blocks_integers(EngineRegistry& engines);
void add_blocks_few(EngineRegistry& engines);
void add_blocks_group(EngineRegistry& engines);
void add_blocks_reference(EngineRegistry& engines);
/// For MatMul alone: an InnerProduct is a single product.
void add_small(EngineRegistry& engines);

}  // namespace dlprim::matmul
