// SPDX-License-Identifier: MIT
// attention.online_backward: gradients of attention on any GPU
// (kernels/attention/online_backward.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/attention/spans.hpp"

#include <algorithm>
#include <optional>

namespace dlprim::attention {

namespace {

constexpr const char* online_backward_path = "attention/online_backward.cl";
constexpr std::int64_t gradient_features = 256;  // whose sums a work-item keeps

/// Work-items have four rows each, and every 16th column.
struct OnlineGradientTile {
    std::int64_t rows, inner, chunk;
    std::int64_t items() const { return rows / 4 * 16; }
    std::int64_t local_bytes() const {
        return 4 * ((rows + inner) * (chunk + 1) + rows * (inner + 1));
    }
    std::int64_t padded(std::int64_t features) const { return ceil_div(features, chunk) * chunk; }
};

std::optional<OnlineGradientTile> online_gradient_tile(const Traits& device, const Heads& heads) {
    const std::int64_t chunk = std::max(heads.depth, heads.features) > 16 ? 32 : 16;
    for (const OnlineGradientTile& tile :
         {OnlineGradientTile{32, 32, chunk}, OnlineGradientTile{16, 16, chunk}})
        if (static_cast<std::uint64_t>(tile.items()) <= device.max_work_group &&
            static_cast<std::uint64_t>(tile.local_bytes()) <= device.local_bytes)
            return tile;
    return std::nullopt;
}

KernelCall gradient_call(ContextImpl& context, const Problem& problem, const Heads& heads,
                         const OnlineGradientTile& tile, bool of_keys) {
    const std::int64_t blocks = ceil_div(of_keys ? heads.positions : heads.length, tile.rows);
    KernelCall call(
        context.build({online_backward_path, kernel_source(online_backward_path),
                       cat(heads_options(heads), define("OF_KEYS", of_keys ? 1 : 0),
                           define("ROWS", tile.rows), define("INNER", tile.inner),
                           define("CHUNK", tile.chunk), define("DEPTH", tile.padded(heads.depth)),
                           define("FEATURES", tile.padded(heads.features)))}),
        "attention_online_backward", group_range(blocks * heads.count, tile.items()));
    call.tensor("q", 0).tensor("k", 1).tensor("v", 2).tensor("dy", 5);
    bind_heads(call, heads);
    bind_gradients(call, problem, heads, of_keys);
    return call;
}

class OnlineBackward : public Engine {
  public:
    OnlineBackward() : Engine("attention.online_backward", backward_type, false) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_heads(problem, gradient_features, false); !verdict)
            return verdict;
        const Heads heads = heads_of(problem);
        if (heads.masks != Heads::Mask::spans)
            return Verdict::no(
                "gradients of whole batches are left to products: with them a compiled PyTorch "
                "model damaged the heap of Intel's runtime, for a reason that is not known");
        if (!online_gradient_tile(device, heads))
            return Verdict::no(
                cat("it needs work-groups of 64 work-items and 8 KiB of local "
                    "memory, and the device has ",
                    device.max_work_group, " and ", device.local_bytes, " bytes"));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        // Seven products, of which the forward engine computes two. Chunks are loaded for each.
        const double share = device.wide_vectors ? 0.01 : 0.1;
        return roofline_seconds(device, problem, 3.5 * heads.flops(), share, 0.5) +
               device.launch_us * 1e-6;
    }

    std::vector<std::string> sources() const override {
        return {online_backward_path, "attention/spans.cl"};
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return spans_bytes(heads_of(problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const OnlineGradientTile tile = online_gradient_tile(context.traits(), heads).value();
        auto launch = std::make_unique<KernelLaunch>();
        add_spans_call(*launch, context, problem, heads);
        launch->add(gradient_call(context, problem, heads, tile, false));
        launch->add(gradient_call(context, problem, heads, tile, true));
        return launch;
    }
};

}  // namespace

void add_online_backward(EngineRegistry& engines) {
    engines.add(std::make_unique<OnlineBackward>());
}

}  // namespace dlprim::attention
