// SPDX-License-Identifier: MIT
// attention.wgmma: attention on the matrix units of NVIDIA's warpgroups
// (kernels/attention/wgmma.cl). Operands in 16 bits are read where they lie, if the precision may
// round weights to their type. Others are packed first, as for attention.matrix.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/unit.hpp"
#include "engine/storage.hpp"
#include "ops/attention/packed.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::attention {

namespace {

constexpr const char* wgmma_path = "attention/wgmma.cl";

/// The tile of a work-group, and how many fit a compute unit.
struct WarpgroupTile {
    WarpgroupTile(const Problem& problem, const Heads& heads)
        // With a window, a case of 128 features failed on an H200 (docs/engines/attention.md).
        : direct(is_direct(problem, heads) && heads.sight.window == 0),
          planes(direct || problem.precision != Precision::fp32 ? 1 : 2),
          panels(ceil_div(padded(heads.depth), block_rows)),
          value_panels(ceil_div(padded(heads.features), block_rows)) {
        const bool wide = std::max(panels, value_panels) > 1;
        // Three warpgroups have 168 registers for each work-item, which random numbers exceed.
        groups = direct && wide && heads.dropout_p == 0 ? 3 : 2;
        resident = wide || planes == 2 ? 1 : 2;
        drift = planes == 1 || !wide;
        stages = direct ? 5 : drift ? 4 : 2;
    }
    std::int64_t rows() const { return groups * block_rows; }
    std::int64_t tiles(const Heads& heads) const {
        return ceil_div(heads.length, rows()) * heads.count;
    }
    std::int64_t local_bytes() const {
        return planes * panel_bytes * (groups * panels + stages * (panels + value_panels)) + 16;
    }
    std::string options() const {
        return cat(define("PRODUCTS", planes == 2 ? 3 : 1), define("GROUPS", groups),
                   define("STAGES", stages), define("RESIDENT", resident),
                   define("DRIFT", drift ? 1 : 0));
    }

    bool direct, drift = false;
    std::int64_t planes, panels, value_panels, groups = 2, stages = 2;
    int resident = 1;  ///< work-groups of a compute unit
};

class Wgmma : public Engine {
  public:
    Wgmma() : Engine("attention.wgmma", forward_type, false) {}
    bool computes_in(Precision) const override { return true; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs[0].dtype;
        if (Verdict verdict = check_heads(problem, packed_features, true); !verdict) return verdict;
        if (problem.inputs[1].dtype != dtype || problem.inputs[2].dtype != dtype)
            return Verdict::no("it needs queries, keys and values of one type");
        const WarpgroupTile tile(problem, heads_of(problem));
        if (Verdict verdict =
                unit_verdict(MatrixUnit::wgmma, device,
                             {tile.direct ? dtype : DType::f16, problem.outputs[0].dtype});
            !verdict)
            return verdict;
        return check_local(device, tile.local_bytes());
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        return WarpgroupTile(problem, heads).direct
                   ? 0
                   : static_cast<std::uint64_t>(Packed(problem, heads).bytes);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        const WarpgroupTile tile(problem, heads);
        const double pace = tile.direct ? 6.3 : tile.planes == 1 ? 5.0 : 2.5;
        return unit_seconds(device, problem, heads.flops() * packed.waste(heads, heads.length),
                            tile.tiles(heads), tile.resident, pace) +
               (tile.direct ? device.launch_us * 1e-6 : packed.seconds(device));
    }

    std::vector<std::string> sources() const override { return {"attention/pack.cl", wgmma_path}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Packed packed(problem, heads);
        const WarpgroupTile tile(problem, heads);
        const DType dtype = problem.inputs[0].dtype, made = problem.outputs[0].dtype;
        const int kind = !tile.direct ? 0 : dtype == DType::f16 ? 1 : 2;
        KernelCall call(
            context.build({wgmma_path, kernel_source(wgmma_path),
                           cat(tile.options(), define("DEPTH", packed.depth),
                               define("FEATURES", packed.features), define("KIND", kind),
                               heads_options(heads), storage_options({{'C', made}}))}),
            "attention_wgmma", group_range(tile.tiles(heads), tile.groups * warpgroup_items));
        auto launch = std::make_unique<KernelLaunch>();
        if (tile.direct) {
            for (const auto& [name, operand] : {std::pair("q", 0), {"k", 1}, {"v", 2}})
                call.tensor(name, operand, 1);
            for (const char* place :
                 {"k_planes", "v_planes", "q_factors", "k_factors", "v_factors"})
                call.scalar(place, std::int64_t{0});
            bind_heads(call, heads);
        } else {
            launch->add(packed.pack_call(context, problem, heads));
            for (const char* name : {"q", "k", "v"}) call.tensor(name, heads.workspace, 1);
            packed.bind(call, heads);
        }
        call.tensor("y", heads.results, size_of(made))
            .tensor("lse", heads.results + 1)
            .size("depth", heads.depth)
            .scalar("scale", static_cast<float>(heads.scale * log2_e));
        launch->add(std::move(call));
        return launch;
    }
};

}  // namespace

void add_wgmma(EngineRegistry& engines) {
    engines.add(std::make_unique<Wgmma>());
}

}  // namespace dlprim::attention
