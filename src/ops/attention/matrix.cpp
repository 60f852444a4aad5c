// SPDX-License-Identifier: MIT
// attention.matrix: attention on NVIDIA's tensor cores, in float by products of halves
// (kernels/attention/pack.cl, matrix.cl). For precisions that may round, of upper halves alone.
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/storage.hpp"
#include "ops/attention/packed.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::attention {

namespace {

constexpr const char* matrix_path = "attention/matrix.cl";

/// Positions at a time. More features leave less room for them.
std::int64_t keys_of(const Packed& packed) {
    return std::max(packed.depth, packed.features) > 64 ? 32 : 64;
}

std::int64_t matrix_local_bytes(const Packed& packed) {
    return packed.planes * block_rows * (2 * packed.depth + 16) +
           2 * packed.tile_bytes(keys_of(packed));
}

class Matrix : public Engine {
  public:
    std::string_view name() const override { return "attention.matrix"; }
    std::string_view op() const override { return forward_type; }
    bool on_host() const override { return false; }
    bool computes_in(Precision) const override { return true; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_packed(device, problem); !verdict) return verdict;
        return check_local(device, matrix_local_bytes(Packed(problem, heads_of(problem))));
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return static_cast<std::uint64_t>(Packed(problem, heads_of(problem)).bytes);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        // Measured on an H200, as multiples of its float units' peak.
        const double pace = (packed.planes == 2 ? 1.6 : 3.5) / (device.wgmma ? 1 : 2);
        // Those of the last round leave compute units idle.
        const double groups = static_cast<double>(packed.q_blocks * heads.count);
        const double slots = 2.0 * std::max(1, device.compute_units);
        const double busy = groups / (std::ceil(groups / slots) * slots);
        return roofline_seconds(device, problem, heads.flops() * packed.waste(heads, heads.length),
                                pace * busy) +
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
        packed.bind(call, heads).scalar("scale", static_cast<float>(heads.scale * log2_e));
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(packed.pack_call(context, problem, heads));
        launch->add(std::move(call));
        return launch;
    }
};

}  // namespace

void add_matrix(EngineRegistry& engines) {
    engines.add(std::make_unique<Matrix>());
}

}  // namespace dlprim::attention
