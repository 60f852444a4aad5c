// SPDX-License-Identifier: MIT
// attention.matrix: attention on NVIDIA's tensor cores, in float by products of halves
// (kernels/attention/pack.cl, matrix.cl). For precisions that may round, of upper halves alone.
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/storage.hpp"
#include "ops/attention/packed.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::attention {

namespace {

constexpr const char* matrix_path = "attention/matrix.cl";

/// Positions at a time. More features leave less room for them.
std::int64_t keys_of(const Packed& packed) {
    return std::max(packed.depth, packed.features) > 64 ? 32 : 64;
}

class Matrix : public PackedEngine {
  public:
    Matrix() : PackedEngine("attention.matrix", forward_type) {}

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        return unit_seconds(device, problem, heads.flops() * packed.waste(heads, heads.length),
                            packed.q_blocks * heads.count, 2, packed.planes == 2 ? 1.6 : 3.5) +
               packed.seconds(device);
    }

    std::vector<std::string> sources() const override { return {"attention/pack.cl", matrix_path}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        const DType made = problem.outputs[0].dtype;
        KernelCall call(context.build({matrix_path, kernel_source(matrix_path),
                                       cat(packed.options(), heads_options(heads),
                                           define("KEYS", keys_of(packed)),
                                           define("Q_LOCAL", packed.depth > 64 ? 1 : 0),
                                           storage_options({{'C', made}}))}),
                        "attention_matrix", group_range(packed.q_blocks * heads.count, tile_items));
        call.tensor("y", heads.results, size_of(made)).tensor("lse", heads.results + 1);
        packed.bind(call.tensor("planes", heads.workspace, 1), heads)
            .scalar("scale", static_cast<float>(heads.scale * log2_e));
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(packed.pack_call(context, problem, heads));
        launch->add(std::move(call));
        return launch;
    }

  protected:
    std::int64_t lane_sums(const Packed& packed) const override { return packed.features / 2; }
    std::int64_t local_bytes(const Packed& packed) const override {
        return packed.planes * block_rows * (2 * packed.depth + 16) +
               2 * packed.tile_bytes(keys_of(packed));
    }
};

}  // namespace

void add_matrix(EngineRegistry& engines) {
    engines.add(std::make_unique<Matrix>());
}

}  // namespace dlprim::attention
