// SPDX-License-Identifier: MIT
// conv2d.winograd and conv2d_backward_data.winograd: 3x3 convolutions of stride 1 and their data
// gradients on GPUs with plain images, by Winograd's F(2x2, 3x3) and F(4x4, 3x3). Tiles of the
// image are transformed to positions (kernels/conv2d/winograd_input.cl), each position is a matrix
// product (winograd.cl), and the products are transformed to pixels (winograd_output.cl).
//
// The tile size determines how weights are packed, so each size is a layout of the engine, with
// F(4x4) first. If the workspace for all tiles would be large, the tiles are processed in slices.
// Tuning: the work-group's tile of the product, and "slices".
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"

#include <algorithm>
#include <array>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/winograd.cl";
constexpr const char* input_path = "conv2d/winograd_input.cl";
constexpr const char* output_path = "conv2d/winograd_output.cl";
constexpr const char* pack_path = "conv2d/winograd_pack.cl";

// The model: the share of the bandwidth that the transformations reach, and that the product
// reaches where memory limits it. Otherwise the product has the rate of its tile (gemm_seconds).
constexpr double transform_bandwidth = 0.6;
constexpr double product_bandwidth = 0.6;
// The workspace in bytes at which slices are cut, if the device can allocate as much.
constexpr double workspace_limit = 256 << 20;
// Long sums are divided into runs of this many steps of gemm_depth channels. Compared with a single
// sum over 512 channels, this halves the error. The price is to read and write the sums once more
// per 128 channels.
constexpr std::int64_t longest_run = 16;

constexpr std::array<int, 2> sizes{4, 2};
constexpr const char* tag = "conv2d.winograd:";

// A problem divided into tiles of `size` x `size` pixels.
struct Plan {
    DenseJob job;
    std::int64_t size, positions;
    std::int64_t tile_rows, tile_columns, tiles;
    std::int64_t slices, columns;  // tiles of a slice, a multiple of four
    std::int64_t steps, w_row;  // steps of gemm_depth input channels; output channels, rounded up

    std::int64_t channels_in() const { return job.groups * job.group_in; }
    std::int64_t channels_out() const { return job.groups * job.group_out; }
    std::int64_t batches() const { return positions * job.groups; }
    /// Elements of the packed weights of one position.
    std::int64_t weights() const { return job.groups * steps * gemm_depth * w_row; }
    std::int64_t packed_bytes() const { return 4 * positions * weights(); }
    /// Bytes of a tile in the workspace before and after the product.
    std::int64_t tile_in() const { return 4 * positions * channels_in(); }
    std::int64_t tile_out() const { return 4 * positions * channels_out(); }
    std::int64_t runs() const { return ceil_div(steps, longest_run); }
    GemmSize product() const { return {job.group_out, columns, steps * gemm_depth, batches()}; }
};

std::int64_t most_tiles(const Traits& device, const Plan& plan) {
    const double bytes = std::min(workspace_limit, static_cast<double>(device.max_alloc_bytes));
    return static_cast<std::int64_t>(bytes) / (plan.tile_in() + plan.tile_out()) / 4 * 4;
}

// Divided into `slices` slices, or more if the workspace requires it.
Plan plan_of(const Traits& device, const Problem& problem, std::int64_t size,
             std::int64_t slices = 1) {
    Plan plan{};
    plan.job = jobs_of(problem).at(0);
    plan.size = size;
    plan.positions = (size + 2) * (size + 2);
    plan.tile_rows = ceil_div(plan.job.out_h, size);
    plan.tile_columns = ceil_div(plan.job.out_w, size);
    plan.tiles = plan.job.n * plan.tile_rows * plan.tile_columns;
    const std::int64_t most = std::max<std::int64_t>(4, most_tiles(device, plan));
    const std::int64_t cut = std::max({slices, ceil_div(plan.tiles, most), std::int64_t{1}});
    plan.columns = std::max<std::int64_t>(1, ceil_div(ceil_div(plan.tiles, cut), 4)) * 4;
    plan.slices = ceil_div(plan.tiles, plan.columns);
    plan.steps = ceil_div(plan.job.group_in, gemm_depth);
    plan.w_row = ceil_div(plan.job.group_out, 4) * 4;
    return plan;
}

bool fits(const Traits& device, const Plan& plan) {
    return most_tiles(device, plan) >= 4 &&
           static_cast<std::uint64_t>(plan.packed_bytes()) <= device.max_alloc_bytes;
}

// The tile size that the problem's layout implies.
std::int64_t tile_size(const Problem& problem) {
    const std::string& name = problem.inputs[1].layout.tag;
    const std::size_t at = std::string_view(tag).size();
    return name.size() > at && name[at] == '2' ? 2 : 4;
}

class Winograd : public ConvolutionEngine {
  public:
    explicit Winograd(const char* op) : ConvolutionEngine(op, "winograd") {}

    std::vector<std::string> sources() const override {
        return {source_path, input_path, output_path, pack_path};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = implicit_gemm_verdict(device, problem); !verdict) return verdict;
        const Geometry g = Geometry::of(problem);
        if (g.kh != 3 || g.kw != 3 || g.sh != 1 || g.sw != 1 || g.dh != 1 || g.dw != 1)
            return Verdict::no("it supports 3x3 kernels without stride and dilation only");
        if (!fits(device, plan_of(device, problem, 2)))
            return Verdict::no(
                "the weights, or a few tiles of all channels, need more memory than the "
                "device's largest allocation");
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        std::vector<LayoutChoice> choices;
        for (const int size : sizes) {
            const Plan plan = plan_of(device, problem, size);
            if (!fits(device, plan)) continue;
            const DenseJob& job = plan.job;
            LayoutChoice choice = LayoutChoice::all(problem);
            choice.inputs[1] = Layout::packed(
                cat(tag, size, backward_ ? 'b' : 'f', job.groups, 'g', job.group_in, 'i',
                    job.group_out, 'o'),
                static_cast<std::uint64_t>(std::max<std::int64_t>(plan.packed_bytes(), 4)));
            choice.variant = cat(size, 'x', size);
            choices.push_back(std::move(choice));
        }
        return choices;
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Plan plan = plan_of(device, problem, tile_size(problem), tuning.at("slices"));
        return static_cast<std::uint64_t>((plan.tile_in() + plan.tile_out()) * plan.columns);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Plan plan = plan_of(device, problem, tile_size(problem), tuning.at("slices"));
        const double rate = std::max(device.gbytes_per_s, 1.0) * 1e9;
        const auto slices = static_cast<double>(plan.slices);
        const auto in = static_cast<double>(plan.tile_in() * plan.tiles);
        const auto out = static_cast<double>(plan.tile_out() * plan.tiles);
        const double product =
            slices * gemm_seconds(device, gemm_tile(tuning).shape(), plan.product(), 1);
        const double product_bytes = in + out * static_cast<double>(2 * plan.runs() - 1) +
                                     slices * static_cast<double>(plan.packed_bytes());
        return std::max(product, product_bytes / (rate * product_bandwidth)) +
               (in + out) / (rate * transform_bandwidth) +
               roofline_seconds(device, problem, 0, 1.0, transform_bandwidth) +
               (3 * slices - 1) * device.launch_us * 1e-6;
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Plan plan = plan_of(device, problem, tile_size(problem));
        constexpr std::int64_t whole = std::int64_t(1) << 40;  // of K: no split-K
        Tuning tuning = choose_gemm(device, gemm_tiles(device), plan.product(), whole, whole, 0, 0);
        tuning.erase("splits");
        tuning["slices"] = plan.slices;
        return tuning;
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const Plan plan = plan_of(device, problem, tile_size(problem));
        TuneSpace space{{"slices", {plan.slices}}};
        for (const std::int64_t times : {2, 4})  // less workspace, which may fit into a cache
            if (plan.columns >= 4 * times) space["slices"].push_back(plan.slices * times);
        for (const TileShape& tile : gemm_tiles(device)) space.tiles.push_back(tile.named());
        return space;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Plan plan =
            plan_of(context.traits(), problem, tile_size(problem), tuning.at("slices"));
        const GemmTile tile = gemm_tile(tuning);
        const Programs programs{
            context.build(
                {input_path, kernel_source(input_path),
                 define("SIZE", plan.size) + storage_options({{'A', problem.inputs[0].dtype}})}),
            context.build({source_path, kernel_source(source_path),
                           gemm_tile_options(context.traits(), tile) +
                               define("DEPTH_TAIL", plan.job.group_in % gemm_depth != 0)}),
            context.build({output_path, with_epilogue(kernel_source(output_path), problem),
                           define("SIZE", plan.size) + define("VECTOR", vector_of(plan, problem)) +
                               storage_options({{'C', problem.outputs[0].dtype}})})};
        auto launch = std::make_unique<KernelLaunch>();
        for (std::int64_t first = 0; first < plan.tiles; first += plan.columns) {
            const std::int64_t count = std::min(plan.columns, plan.tiles - first);
            launch->add(input_call(context.traits(), programs, problem, plan, first, count));
            launch->add(product_call(programs, problem, plan, tile, count));
            launch->add(output_call(context.traits(), programs, problem, plan, first, count));
        }
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        const Plan plan = plan_of(context.traits(), problem, tile_size(problem));
        const DenseJob& job = plan.job;
        KernelCall call(
            context.build({pack_path, kernel_source(pack_path), define("SIZE", plan.size)}),
            "winograd_pack", rounded_range(context.traits(), plan.weights(), 64));
        call.tensor("weight", 0).tensor("packed", 1).scalar("count", plan.weights());
        call.sizes({{"group_out", job.group_out},
                    {"group_in", job.group_in},
                    {"row", plan.w_row},
                    {"depth", plan.steps * gemm_depth},
                    {"h0", job.h0},
                    {"h_step", job.h_step},
                    {"w0", job.w0},
                    {"w_step", job.w_step}});
        call.scalar("weight_group", job.weight_group).scalar("weight_out", job.weight_out);
        call.scalar("weight_in", job.weight_in);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    struct Programs {
        std::shared_ptr<Program> input, product, output;
    };

    /// The pixels of a row that are written together. Rows must consist of whole vectors.
    static std::int64_t vector_of(const Plan& plan, const Problem& problem) {
        if (plan.size == 4 && plan.job.y_w % 4 == 0) return 4;
        return problem.outputs[0].dtype == DType::f32 && plan.job.y_w % 2 == 0 ? 2 : 1;
    }

    // The workspace holds `columns` tiles before the product, followed by as many after it.
    static int workspace(const Problem& problem) {
        return static_cast<int>(problem.inputs.size()) + 1;
    }
    static std::uint64_t products_at(const Plan& plan) {
        return static_cast<std::uint64_t>(plan.tile_in() * plan.columns);
    }

    static KernelCall input_call(const Traits& device, const Programs& programs,
                                 const Problem& problem, const Plan& plan, std::int64_t first,
                                 std::int64_t count) {
        KernelCall call(programs.input, "winograd_input",
                        rounded_range(device, count * plan.channels_in(), 128));
        call.tensor("x", 0, size_of(problem.inputs[0].dtype));
        call.tensor("v", workspace(problem));
        call.sizes({{"tile0", first},
                    {"tiles", count},
                    {"channels", plan.channels_in()},
                    {"tile_rows", plan.tile_rows},
                    {"tile_columns", plan.tile_columns},
                    {"x_h", plan.job.x_h},
                    {"x_w", plan.job.x_w},
                    {"pad_h", plan.job.pad_h},
                    {"pad_w", plan.job.pad_w},
                    {"v_row", plan.columns}});
        return call;
    }

    static KernelCall product_call(const Programs& programs, const Problem& problem,
                                   const Plan& plan, const GemmTile& tile, std::int64_t count) {
        const std::int64_t tiles_m = ceil_div(plan.job.group_out, tile.bm());
        const std::int64_t tiles_n = ceil_div(count, tile.bn());
        KernelCall call(programs.product, "winograd_multiply",
                        group_range(tiles_m * tiles_n * plan.batches(), tile.threads()));
        call.tensor("u", 1).tensor("v", workspace(problem));
        call.tensor_at("m", workspace(problem), products_at(plan));
        call.sizes({{"rows", plan.job.group_out},
                    {"depth", plan.job.group_in},
                    {"u_row", plan.w_row},
                    {"v_row", plan.columns},
                    {"steps", plan.steps},
                    {"run", ceil_div(plan.steps, plan.runs())},
                    {"tiles_m", tiles_m},
                    {"tiles_n", tiles_n}});
        return call;
    }

    KernelCall output_call(const Traits& device, const Programs& programs, const Problem& problem,
                           const Plan& plan, std::int64_t first, std::int64_t count) const {
        const bool bias = !backward_ && has_bias(problem);
        KernelCall call(programs.output, "winograd_output",
                        rounded_range(device, count * plan.channels_out(), 128));
        call.tensor_at("m", workspace(problem), products_at(plan)).tensor("bias", bias ? 2 : 1);
        call.tensor("y", static_cast<int>(problem.inputs.size()),
                    size_of(problem.outputs[0].dtype));
        call.sizes({{"has_bias", bias},
                    {"tile0", first},
                    {"tiles", count},
                    {"channels", plan.channels_out()},
                    {"tile_rows", plan.tile_rows},
                    {"tile_columns", plan.tile_columns},
                    {"y_h", plan.job.y_h},
                    {"y_w", plan.job.y_w},
                    {"m_row", plan.columns}});
        bind_epilogue(call, problem);
        return call;
    }
};

}  // namespace

void add_winograd_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<Winograd>(op));
}

}  // namespace dlprim::conv2d
