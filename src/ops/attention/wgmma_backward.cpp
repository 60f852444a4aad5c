// SPDX-License-Identifier: MIT
// attention.wgmma_backward: the gradients of attention on the matrix units of NVIDIA's warpgroups
// (kernels/attention/wgmma_backward.cl), of operands in 16 bits, which are read where they lie.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/unit.hpp"
#include "engine/storage.hpp"
#include "ops/attention/packed.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* wgmma_backward_path = "attention/wgmma_backward.cl";

/// The tile of a work-group of the gradients of keys and values (of_keys), or of queries.
struct GradientTile {
    GradientTile(const Heads& heads, bool of_keys)
        : panels(ceil_div(heads.depth, block_rows)),
          value_panels(ceil_div(heads.features, block_rows)),
          value_stages(of_keys && panels + value_panels > 3 ? 4 : 5),
          column_bytes(of_keys ? 8 * block_rows * value_stages : 0),
          tiles(ceil_div(of_keys ? heads.positions : heads.length, groups * block_rows) *
                heads.count) {}
    std::int64_t local_bytes() const {
        constexpr std::int64_t key_stages = 5;
        return panel_bytes *
                   ((groups + key_stages) * panels + (groups + value_stages) * value_panels) +
               column_bytes + 16;
    }
    std::string options() const {
        return cat(define("GROUPS", groups), define("VALUE_STAGES", value_stages));
    }

    static constexpr std::int64_t groups = 2;
    std::int64_t panels, value_panels, value_stages, column_bytes;
    std::int64_t tiles;  ///< of all heads
};

class WgmmaBackward : public Engine {
  public:
    WgmmaBackward() : Engine("attention.wgmma_backward", backward_type, false) {}
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_heads(problem, packed_features, true); !verdict) return verdict;
        const Heads heads = heads_of(problem);
        if (!is_direct(problem, heads))
            return Verdict::no(
                "it needs queries, keys, values and the result's gradient in one type of 16 bits, "
                "aligned to 16 bytes, and a precision that may round weights to it");
        if (heads.sight.window > 0)
            return Verdict::no(
                "windows are left out: with one, a case of 128 features ended with an error on an "
                "H200 (docs/engines/attention.md)");
        if (problem.outputs[1].dtype != problem.outputs[2].dtype)
            return Verdict::no("it needs gradients of keys and values of one type");
        if (Verdict verdict = unit_verdict(
                MatrixUnit::wgmma, device,
                {problem.inputs[0].dtype, problem.outputs[0].dtype, problem.outputs[1].dtype});
            !verdict)
            return verdict;
        return check_local(device, std::max(GradientTile(heads, false).local_bytes(),
                                            GradientTile(heads, true).local_bytes()));
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        // Seven products, of which the forward engine computes two.
        const double flops =
            3.5 * heads.flops() * Packed(problem, heads).waste(heads, heads.positions);
        return unit_seconds(
                   device, problem, flops,
                   std::min(GradientTile(heads, false).tiles, GradientTile(heads, true).tiles), 1,
                   7.0) +
               device.launch_us * 1e-6;
    }

    std::vector<std::string> sources() const override { return {wgmma_backward_path}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        auto launch = std::make_unique<KernelLaunch>();
        for (const bool of_keys : {false, true})
            launch->add(gradient_call(context, problem, heads, of_keys));
        return launch;
    }

  private:
    static KernelCall gradient_call(ContextImpl& context, const Problem& problem,
                                    const Heads& heads, bool of_keys) {
        const GradientTile tile(heads, of_keys);
        const DType made = problem.outputs[of_keys ? 1 : 0].dtype;
        KernelCall call(
            context.build(
                {wgmma_backward_path, kernel_source(wgmma_backward_path),
                 cat(tile.options(), define("PRODUCTS", 1), define("DEPTH", padded(heads.depth)),
                     define("FEATURES", padded(heads.features)),
                     define("KIND", problem.inputs[0].dtype == DType::f16 ? 1 : 2),
                     define("OF_KEYS", of_keys ? 1 : 0), heads_options(heads),
                     storage_options({{'C', made}}))}),
            "attention_wgmma_backward",
            group_range(tile.tiles, GradientTile::groups * warpgroup_items));
        call.tensor("q", 0, 1).tensor("k", 1, 1).tensor("v", 2, 1).tensor("dy", 5, 1);
        bind_heads(call, heads);
        return bind_gradients(call, problem, heads, of_keys);
    }
};

}  // namespace

void add_wgmma_backward(EngineRegistry& engines) {
    engines.add(std::make_unique<WgmmaBackward>());
}

}  // namespace dlprim::attention
