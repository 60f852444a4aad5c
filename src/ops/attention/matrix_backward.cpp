// SPDX-License-Identifier: MIT
// attention.matrix_backward: the gradients of attention on NVIDIA's tensor cores, as
// attention.matrix (kernels/attention/pack.cl, backward.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/storage.hpp"
#include "ops/attention/packed.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* backward_path = "attention/backward.cl";
constexpr std::int64_t inner_rows = 32;

std::int64_t backward_local_bytes(const Packed& packed, std::int64_t rows) {
    return packed.tile_bytes(rows) + 2 * packed.tile_bytes(inner_rows) + 16 * inner_rows;
}

/// Rows of a work-group. With more features only one fits a compute unit, and more warps of it hide
/// more latency.
std::int64_t rows_of(const Traits& device, const Packed& packed) {
    const std::int64_t more = 2 * block_rows;
    const bool fits = static_cast<bool>(check_local(device, backward_local_bytes(packed, more)));
    return std::max(packed.depth, packed.features) > 64 && fits ? more : block_rows;
}

class MatrixBackward : public PackedEngine {
  public:
    MatrixBackward() : PackedEngine("attention.matrix_backward", backward_type) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = PackedEngine::is_applicable(device, problem); !verdict)
            return verdict;
        if (problem.outputs[1].dtype != problem.outputs[2].dtype)
            return Verdict::no("it needs gradients of keys and values of one type");
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        // Seven products, of which the forward engine computes two.
        const bool wide = std::max(packed.depth, packed.features) > 64;
        return unit_seconds(device, problem,
                            3.5 * heads.flops() * packed.waste(heads, heads.positions),
                            std::min(packed.q_blocks, packed.k_blocks) * heads.count, 2,
                            (packed.planes == 2 ? 1.7 : 3.5) * (wide ? 0.8 : 1)) +
               packed.seconds(device) + device.launch_us * 1e-6;
    }

    std::vector<std::string> sources() const override {
        return {"attention/pack.cl", backward_path};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(packed.pack_call(context, problem, heads));
        launch->add(gradient_call(context, problem, heads, packed, false));
        launch->add(gradient_call(context, problem, heads, packed, true));
        return launch;
    }

  protected:
    std::int64_t lane_sums(const Packed& packed) const override {
        return (packed.depth + packed.features) / 2;
    }
    std::int64_t local_bytes(const Packed& packed) const override {
        return backward_local_bytes(packed, block_rows);
    }

  private:
    /// Of keys and values, or of queries.
    static KernelCall gradient_call(ContextImpl& context, const Problem& problem,
                                    const Heads& heads, const Packed& packed, bool of_keys) {
        const DType made = problem.outputs[of_keys ? 1 : 0].dtype;
        const std::int64_t rows = rows_of(context.traits(), packed);
        const std::int64_t tiles = ceil_div(of_keys ? heads.positions : heads.length, rows);
        KernelCall call(
            context.build({backward_path, kernel_source(backward_path),
                           cat(packed.options(), heads_options(heads),
                               define("OF_KEYS", of_keys ? 1 : 0), define("ROWS", rows),
                               define("INNER", inner_rows), storage_options({{'C', made}}))}),
            "attention_backward", group_range(tiles * heads.count, 2 * rows));
        bind_gradients(call, problem, heads, of_keys);
        packed.bind(call.tensor("planes", heads.workspace, 1), heads)
            .scalar("dy_planes", packed.dy_planes)
            .scalar("dy_factors", packed.dy_factors);
        return call;
    }
};

}  // namespace

void add_matrix_backward(EngineRegistry& engines) {
    engines.add(std::make_unique<MatrixBackward>());
}

}  // namespace dlprim::attention
