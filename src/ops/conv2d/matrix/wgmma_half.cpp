// SPDX-License-Identifier: MIT
// conv2d.wgmma_half and conv2d_backward_data.wgmma_half (mma_half): convolution and its data
// gradient over images of halves or bfloat16 with their channels last, on tensor cores
// (kernels/conv2d/wgmma_half.cl). Weights are float, and packed once to the images' type. A data
// gradient with a stride is one product for each phase of the stride. Small problems split their
// sums.
#include "ops/conv2d/matrix/wgmma_half.hpp"

#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/named_tile.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/matrix/wgmma_split.hpp"
#include "ops/conv2d/portable/implicit_gemm.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/wgmma_half.cl";
constexpr const char* sum_path = "conv2d/wgmma_half_sum.cl";

// Pixels by output channels. What bounds them is local memory, which the copies write and the
// matrix units read: a larger tile does both less often.
std::vector<HalfTile> tiles(MatrixUnit unit, const Traits& device) {
    return half_tiles({{128, 64, 300, 2, 6},
                       {128, 128, 430, 2, 6},
                       {128, 256, 500, 1, 4},
                       {256, 64, 330, 1, 4},
                       {256, 128, 470, 1, 4}},
                      unit, device, 12, true);
}

HalfSize size_of(const DenseJob& job) {
    return {job.n * job.out_h * job.out_w, job.group_out,
            ceil_div(job.group_in, half_depth) * job.kernel_h * job.kernel_w};
}

HalfSize largest(const Problem& problem) {
    HalfSize most{0, 0, 0};
    double work = -1;
    for (const DenseJob& job : jobs_of(problem)) {
        const HalfSize size = size_of(job);
        const double w =
            static_cast<double>(size.rows * size.columns) * static_cast<double>(size.steps);
        if (w <= work) continue;
        work = w;
        most = size;
    }
    return most;
}

bool has_taps(const Problem& problem) {
    for (const DenseJob& job : jobs_of(problem))
        if (job.kernel_h * job.kernel_w > 1) return true;
    return false;
}

// Whether pixels of y are pixels of x, in order.
bool is_direct(const DenseJob& job) {
    return job.kernel_h == 1 && job.kernel_w == 1 && job.stride_h == 1 && job.stride_w == 1 &&
           job.pad_h == 0 && job.pad_w == 0 && job.out_h == job.x_h && job.out_w == job.x_w &&
           fills_y(job);
}

class WgmmaHalf : public Engine {
  public:
    WgmmaHalf(MatrixUnit unit, bool backward)
        : name_(cat(backward ? "conv2d_backward_data." : "conv2d.", name_of(unit), "_half")),
          unit_(unit),
          backward_(backward) {}

    std::string_view name() const override { return name_; }
    std::string_view op() const override { return backward_ ? backward_data_type : forward_type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override {
        return {source_path, half_weights_source, sum_path, "common/half_store.clh",
                "common/matrix_half.clh"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs[0].dtype;
        if (half_kind(dtype) == 0) return Verdict::no("it needs images in half or bfloat16");
        if (problem.inputs[0].shape[1] % 8 != 0)
            return Verdict::no(cat("it needs a number of channels that is a multiple of 8, not ",
                                   problem.inputs[0].shape[1]));
        if (!half_precision(problem, dtype))
            return Verdict::no(
                "it rounds weights to the type of the images, which the precision does not "
                "allow");
        if (const Verdict verdict = half_storage_verdict(problem, {0}, true); !verdict)
            return verdict;
        if (const Verdict verdict = half_size_verdict(unit_, device, problem, dtype); !verdict)
            return verdict;
        return half_tiles_verdict(tiles(unit_, device));
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice;
        choice.inputs.assign(problem.inputs.size(), Layout::plain());
        choice.inputs[0] = Layout::channels_last();
        for (const EpilogueStage& stage : problem.epilogue)
            if (stage.kind == EpilogueStage::Kind::add)
                choice.inputs[static_cast<std::size_t>(stage.operand)] = Layout::channels_last();
        choice.outputs.assign(1, Layout::channels_last());
        choice.inputs[1] =
            half_weights_layout(jobs_of(problem), problem.inputs[0].dtype, half_depth);
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const std::int64_t splits = tuning.at("splits");
        return splits <= 1
                   ? 0
                   : static_cast<std::uint64_t>(problem.outputs[0].shape.numel() * splits) * 4;
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        double seconds = 0;
        for (const DenseJob& job : jobs_of(problem))
            seconds +=
                half_seconds(device, tile_of(device, tuning), size_of(job), tuning.at("splits")) +
                device.launch_us * 1e-6;
        seconds += split_sum_seconds(device, output_bytes(problem), tuning.at("splits"));
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return choose_half(device, tiles(unit_, device), largest(problem), output_bytes(problem),
                           64e6, has_taps(problem));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return half_tune_space(tiles(unit_, device), largest(problem),
                               default_tuning(device, problem), has_taps(problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::int64_t at = 0;
        for (const DenseJob& job : jobs_of(problem)) {
            add_product(*launch, context, problem, tuning, job, at);
            at += HalfWeights(job, half_depth).bytes;
        }
        if (tuning.at("splits") > 1) add_sum(*launch, context, problem, tuning.at("splits"));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_half_weights(context, jobs_of(problem), problem.inputs[0].dtype, half_depth);
    }

  private:
    void add_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                     const Tuning& tuning, const DenseJob& job, std::int64_t weights_at) const {
        const HalfTile tile = tile_of(context.traits(), tuning);
        const HalfWeights weights(job, half_depth);
        const HalfSize size = size_of(job);
        const std::int64_t splits = tuning.at("splits");
        const bool split = splits > 1, fours = job.group_out % 4 == 0;
        // Few steps leave local memory to more work-groups.
        const std::int64_t stages = std::min(
            half_stages(tile, tuning), std::max<std::int64_t>(2, ceil_div(size.steps, splits) + 1));
        const std::string options =
            define("KIND", half_kind(problem.inputs[0].dtype)) + define("STAGES", stages) +
            define("NEAR", tuning.at("near")) + define("MG", tile.rows / 128) +
            define("BN", tile.columns) +
            define("Y_KIND", split ? 0 : half_kind(problem.outputs[0].dtype)) +
            define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
            define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1)) +
            define("DIRECT", is_direct(job)) +
            define("CHANNEL_TAIL", job.group_in % half_depth != 0) + define("Y_FOURS", fours) +
            unit_option(unit_);
        const std::int64_t tiles_m = ceil_div(size.rows, tile.rows),
                           tiles_n = ceil_div(size.columns, tile.columns);
        const auto program = context.build(
            {source_path,
             split ? with_epilogue(kernel_source(source_path), Epilogue{}, fours ? 4 : 1)
                   : with_epilogue(kernel_source(source_path), problem, fours ? 4 : 1),
             options});
        KernelCall call(program, "wgmma_half", group_range(tiles_m * tiles_n * splits, half_items));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && !split && has_bias(problem);
        call.tensor("x", 0, 2).tensor_at("w", 1, static_cast<std::uint64_t>(weights_at), 1);
        call.tensor("bias", bias ? 2 : 1);
        if (split)
            call.tensor("y", result + 1);
        else
            call.tensor("y", result, size_of(problem.outputs[0].dtype));
        const std::pair<const char*, std::int64_t> sizes[] = {
            {"has_bias", bias},
            {"pixels", size.rows},
            {"channels_in", job.group_in},
            {"channels_out", job.group_out},
            {"steps", size.steps},
            {"steps_part", std::max<std::int64_t>(1, ceil_div(size.steps, splits))},
            {"tiles_m", tiles_m},
            {"tiles_n", tiles_n},
            {"row_blocks", weights.rows / half_block}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        bind_images(call, job);
        call.scalar("blocks_at", weights.blocks_at);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem);
        call.check();
        launch.add(std::move(call));
    }

    void add_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                 std::int64_t splits) const {
        const Shape& shape = problem.outputs[0].shape;
        const int lanes = shape[1] % 4 == 0 ? 4 : 1;
        const auto program = context.build(
            {sum_path, with_epilogue(kernel_source(sum_path), problem, lanes),
             define("LANES", lanes) + define("Y_KIND", half_kind(problem.outputs[0].dtype))});
        KernelCall call(program, "wgmma_half_sum",
                        rounded_range(context.traits(), shape.numel() / lanes));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && has_bias(problem);
        call.tensor("parts", result + 1).tensor("bias", bias ? 2 : result + 1);
        call.tensor("y", result, size_of(problem.outputs[0].dtype));
        call.scalar("count", shape.numel()).scalar("splits", static_cast<std::int32_t>(splits));
        call.scalar("has_bias", std::int32_t(bias));
        call.scalar("channels", static_cast<std::int32_t>(shape[1]));
        bind_epilogue(call, problem);
        call.check();
        launch.add(std::move(call));
    }

    static std::size_t size_of(DType dtype) { return dlprim::size_of(dtype); }
    static HalfSize size_of(const DenseJob& job) { return conv2d::size_of(job); }
    HalfTile tile_of(const Traits& device, const Tuning& tuning) const {
        return named_tile(tiles(unit_, device), tuning);
    }

    std::string name_;
    MatrixUnit unit_;
    bool backward_;
};

}  // namespace

int half_kind(DType dtype) {
    return dtype == DType::f16 ? 1 : dtype == DType::bf16 ? 2 : 0;
}

bool half_precision(const Problem& problem, DType dtype) {
    return problem.precision == Precision::bf16 ||
           (dtype == DType::f16 && problem.precision != Precision::fp32);
}

Verdict half_local_verdict(MatrixUnit unit, const Traits& device, std::int64_t bytes) {
    return bytes <= unit_local_bytes(unit, device)
               ? Verdict::yes()
               : Verdict::no("all of K does not fit into the local memory of a work-group");
}

std::vector<HalfTile> half_tiles(std::vector<HalfTile> tiles, MatrixUnit unit, const Traits& device,
                                 std::int64_t row_bytes, bool sums) {
    for (HalfTile& tile : tiles) {
        tile.tflops /= unit_pace(unit);
        const std::int64_t limit = unit_local_bytes(unit, device) - row_bytes * tile.rows;
        tile.most_stages =
            std::min(tile.most_stages, std::max<std::int64_t>(limit, 0) / tile.stage_bytes());
        if (sums && tile.rows * (tile.columns + 8) * 4 > limit) tile.most_stages = 0;
    }
    return tiles;
}

Verdict half_tiles_verdict(const std::vector<HalfTile>& tiles) {
    for (const HalfTile& tile : tiles)
        if (tile.most_stages >= 2) return Verdict::yes();
    return Verdict::no("its tiles do not fit into the local memory of a work-group");
}

Verdict half_size_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                          DType product) {
    Problem sizes = problem;
    for (auto* operands : {&sizes.inputs, &sizes.outputs})
        for (Operand& operand : *operands) operand.dtype = DType::f32;
    return wgmma_split_verdict(unit, device, sizes, {product, problem.outputs[0].dtype});
}

Verdict half_storage_verdict(const Problem& problem, std::initializer_list<int> inputs,
                             bool output) {
    std::vector<bool> narrow(problem.inputs.size(), false);
    for (const int i : inputs) narrow[static_cast<std::size_t>(i)] = true;
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add && output)
            narrow[static_cast<std::size_t>(stage.operand)] = true;
    const auto takes = [](const Operand& operand, bool may_be_narrow) {
        return operand.dtype == DType::f32 || (may_be_narrow && half_kind(operand.dtype) != 0);
    };
    for (std::size_t i = 0; i < problem.inputs.size(); ++i)
        if (!takes(problem.inputs[i], narrow[i]))
            return Verdict::no(
                cat("it does not support ", name_of(problem.inputs[i].dtype), " as input ", i));
    if (!takes(problem.outputs[0], output))
        return Verdict::no(
            cat("it does not support ", name_of(problem.outputs[0].dtype), " as output"));
    return Verdict::yes();
}

HalfWeights::HalfWeights(const DenseJob& job, std::int64_t channels)
    : rows(ceil_div(job.group_out, half_block) * half_block),
      block(channels),
      depth(ceil_div(job.group_in, block) * block * job.kernel_h * job.kernel_w),
      steps(ceil_div(depth, half_depth)),
      blocks_at(rows * 4),
      bytes(blocks_at + rows * steps * half_depth * 2) {}

Layout half_weights_layout(const std::vector<DenseJob>& jobs, DType dtype, std::int64_t block) {
    std::string tag = cat("conv2d.wgmma_half:", half_kind(dtype), 'b', block, ';');
    std::int64_t bytes = 0;
    for (const DenseJob& job : jobs) {
        bytes += HalfWeights(job, block).bytes;
        tag += cat(job.group_in, 'i', job.group_out, 'o', job.weight_out, 'h', job.kernel_h, '@',
                   job.h0, '/', job.h_step, 'w', job.kernel_w, '@', job.w0, '/', job.w_step, ';');
    }
    return Layout::packed(tag, static_cast<std::uint64_t>(bytes));
}

std::unique_ptr<Launch> pack_half_weights(ContextImpl& context, const std::vector<DenseJob>& jobs,
                                          DType dtype, std::int64_t block) {
    auto launch = std::make_unique<KernelLaunch>();
    std::int64_t at = 0;
    for (const DenseJob& job : jobs) {
        const HalfWeights weights(job, block);
        // 32 KiB at most, so that several work-groups stay on a compute unit.
        std::int64_t room = 1024;
        while (room < weights.depth) room *= 2;
        if (room > 8192) room = 0;
        const auto program =
            context.build({half_weights_source, kernel_source(half_weights_source),
                           define("KIND", half_kind(dtype)) + define("ROOM", room)});
        KernelCall call(program, "wgmma_half_pack", group_range(weights.rows, half_items));
        call.tensor("weight", 0).tensor_at("packed", 1, static_cast<std::uint64_t>(at), 1);
        const std::pair<const char*, std::int64_t> sizes[] = {{"group_out", job.group_out},
                                                              {"group_in", job.group_in},
                                                              {"depth", weights.depth},
                                                              {"block", weights.block},
                                                              {"steps", weights.steps},
                                                              {"kernel_h", job.kernel_h},
                                                              {"kernel_w", job.kernel_w},
                                                              {"weight_w", job.weight_w},
                                                              {"h0", job.h0},
                                                              {"h_step", job.h_step},
                                                              {"w0", job.w0},
                                                              {"w_step", job.w_step}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        call.scalar("weight_out", job.weight_out).scalar("weight_in", job.weight_in);
        call.scalar("blocks_at", weights.blocks_at);
        call.check();
        launch->add(std::move(call));
        at += weights.bytes;
    }
    return launch;
}

double half_seconds(const Traits& device, const HalfTile& tile, const HalfSize& size,
                    std::int64_t splits) {
    constexpr double h200_units = 132;
    const double units = std::max(device.compute_units, 1);
    const double step = 2.0 * static_cast<double>(tile.rows * tile.columns * half_depth) /
                        (tile.tflops * 1e12 / h200_units);
    const double groups =
        static_cast<double>(ceil_div(size.rows, tile.rows) * ceil_div(size.columns, tile.columns)) *
        static_cast<double>(splits);
    // Work-groups that share a compute unit hide each other's waiting; one alone does so less.
    const double each = groups / units, resident = tile.resident;
    const double rounds =
        each <= 1 ? 1 + 0.4 * (resident - 1) : std::ceil(each / resident) * resident;
    return rounds * step * (static_cast<double>(ceil_div(size.steps, splits)) + 3.0);
}

Tuning choose_half(const Traits& device, const std::vector<HalfTile>& tiles, const HalfSize& size,
                   double part_bytes, double limit_bytes, bool near) {
    Tuning best;
    double best_seconds = 1e300;
    for (const HalfTile& tile : tiles) {
        if (tile.most_stages < 2) continue;
        for (std::int64_t splits = 1; splits <= 512;
             splits += std::max<std::int64_t>(1, splits / 4)) {
            if (splits > 1 &&
                (size.steps / splits < 2 || part_bytes * static_cast<double>(splits) > limit_bytes))
                break;
            const double seconds = half_seconds(device, tile, size, splits) +
                                   split_sum_seconds(device, part_bytes, splits);
            if (seconds >= best_seconds * 0.999) continue;
            best_seconds = seconds;
            best =
                with(tile.named(),
                     {{"splits", splits}, {"stages", tile.resident > 1 ? 3 : 4}, {"near", near}});
        }
    }
    return best;
}

TuneSpace half_tune_space(const std::vector<HalfTile>& tiles, const HalfSize& size,
                          const Tuning& standard, bool near) {
    const std::int64_t splits = standard.at("splits");
    TuneSpace space{{"stages", {3, 4}}, {"splits", {splits}}, {"near", {0}}};
    if (near) space["near"].push_back(1);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto computed = [&](const HalfTile& tile) {
        return ceil_div(size.rows, tile.rows) * tile.rows * ceil_div(size.columns, tile.columns) *
               tile.columns;
    };
    for (const HalfTile& tile : tiles) {
        if (tile.most_stages < 2) continue;
        least = std::min(least, computed(tile));
        if (tile.most_stages > 4 && space["stages"].size() == 2) space["stages"].push_back(6);
    }
    for (const HalfTile& tile : tiles)
        if (tile.most_stages >= 2 && computed(tile) * 2 <= least * 3)
            space.tiles.push_back(tile.named());
    if (size.steps >= 8) space["splits"].push_back(splits * 2);
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    return space;
}

std::int64_t half_stages(const HalfTile& tile, const Tuning& tuning) {
    return std::clamp<std::int64_t>(tuning.at("stages"),
                                    std::min<std::int64_t>(3, tile.most_stages), tile.most_stages);
}

void add_wgmma_half_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        for (const bool backward : {false, true})
            registry.add(std::make_unique<WgmmaHalf>(unit, backward));
}

}  // namespace dlprim::conv2d
