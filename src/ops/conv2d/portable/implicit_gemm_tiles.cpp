// SPDX-License-Identifier: MIT
// Tiles of the implicit_gemm engines, the model that chooses among them, and the sum of parts.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/launch.hpp"
#include "engine/named_tile.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/portable/implicit_gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace dlprim::conv2d {

namespace {

constexpr std::array<GemmTile, 7> tiles{{
    {16, 16, 2, 2, 0.85},  // 128 x 128
    {8, 16, 2, 2, 0.80},   // 128 x 64
    {16, 8, 2, 2, 0.80},   // 64 x 128
    {8, 8, 2, 2, 0.72},    // 64 x 64
    {16, 4, 2, 2, 0.62},   // 32 x 128
    {8, 8, 2, 1, 0.55},    // 64 x 32
    {8, 8, 1, 1, 0.40},    // 32 x 32
}};

std::uint64_t local_bytes(const GemmTile& tile) {
    return static_cast<std::uint64_t>(8 * gemm_depth * (tile.bm() + tile.bn() + 8));
}

bool gemm_tile_fits(const Traits& device, const GemmTile& tile) {
    return static_cast<std::uint64_t>(tile.threads()) <= device.max_work_group &&
           local_bytes(tile) <= device.local_bytes;
}

}  // namespace

GemmTile gemm_tile(const Tuning& tuning) {
    return named_tile(tiles, tuning);
}

std::string gemm_tile_options(const GemmTile& tile) {
    return define("TX", tile.tx) + define("TY", tile.ty) + define("GM", tile.gm) +
           define("GN", tile.gn) + define("BK", gemm_depth);
}

double gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                    std::int64_t splits) {
    const double units = std::max(device.compute_units, 1);
    const double groups = static_cast<double>(ceil_div(size.rows, tile.rows) *
                                              ceil_div(size.columns, tile.columns) * size.batches) *
                          static_cast<double>(splits);
    // A compute unit holds several work-groups, which hide each other's waiting; the last ones are
    // fewer.
    const double resident = std::max(1.0, 512.0 / static_cast<double>(tile.threads));
    const double each = groups / units;
    const double rounds =
        each > 2 * resident ? each + 0.3 * resident : std::max(1.0, std::ceil(each));
    const double active = std::min(std::ceil(each), resident) * static_cast<double>(tile.threads);
    const double hidden = active / (active + 48.0);
    // Two steps' time goes to the first reads and the stores.
    const double depth = static_cast<double>(ceil_div(size.depth, splits)) + 16.0;
    const double work = 2.0 * static_cast<double>(tile.rows * tile.columns) * depth;
    const double share = device.wide_vectors ? 0.02 : tile.share * hidden;
    return rounds * work / (std::max(device.gflops, 1.0) * 1e9 * share / units);
}

double split_gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                          std::int64_t splits, double part_bytes) {
    return gemm_seconds(device, tile, size, splits) + split_sum_seconds(device, part_bytes, splits);
}

double split_sum_seconds(const Traits& device, double part_bytes, std::int64_t splits) {
    if (splits <= 1) return 0;
    return 2.0 * part_bytes * static_cast<double>(splits) /
               (std::max(device.gbytes_per_s, 1.0) * 0.7e9) +
           device.launch_us * 1e-6;
}

TileChoice gemm_tiles(const Traits& device) {
    TileChoice fitting;
    for (const GemmTile& tile : tiles)
        if (gemm_tile_fits(device, tile)) fitting.push_back(tile.shape());
    return fitting;
}

Tuning choose_gemm(const Traits& device, const TileChoice& tiles, const GemmSize& size,
                   std::int64_t least_depth, std::int64_t most_depth, double part_bytes,
                   double limit_bytes) {
    Tuning best = with(tiles.back().named(), {{"splits", 1}});
    double best_seconds = 1e300;
    const std::int64_t fewest = std::max<std::int64_t>(1, ceil_div(size.depth, most_depth));
    for (const TileShape& tile : tiles) {
        for (std::int64_t splits = fewest; splits <= 4096;
             splits += std::max<std::int64_t>(1, splits / 4)) {
            if (splits > fewest && (size.depth / splits < least_depth ||
                                    part_bytes * static_cast<double>(splits) > limit_bytes))
                break;
            const double seconds = split_gemm_seconds(device, tile, size, splits, part_bytes);
            if (seconds < best_seconds * 0.999) {
                best_seconds = seconds;
                best = with(tile.named(), {{"splits", splits}});
            }
        }
    }
    return best;
}

TuneSpace gemm_tune_space(const TileChoice& tiles, const Tuning& standard) {
    TuneSpace space;
    for (const TileShape& tile : tiles) space.tiles.push_back(tile.named());
    const std::int64_t splits = standard.at("splits");
    space["splits"] = {splits};
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    space["splits"].push_back(splits * 2);
    return space;
}

Verdict implicit_gemm_verdict(const Traits& device, const Problem& problem) {
    const GemmTile& smallest = tiles.back();
    if (!gemm_tile_fits(device, smallest))
        return Verdict::no(cat("it needs work-groups of ", smallest.threads(), " work-items and ",
                               local_bytes(smallest), " bytes of local memory, and the device has ",
                               device.max_work_group, " and ", device.local_bytes));
    return narrow_index_verdict(problem);
}

void bind_images(KernelCall& call, const DenseJob& job) {
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"x_h", job.x_h},           {"x_w", job.x_w},
        {"y_h", job.y_h},           {"y_w", job.y_w},
        {"out_h", job.out_h},       {"out_w", job.out_w},
        {"row0", job.row0},         {"column0", job.column0},
        {"row_step", job.row_step}, {"column_step", job.column_step},
        {"stride_h", job.stride_h}, {"stride_w", job.stride_w},
        {"pad_h", job.pad_h},       {"pad_w", job.pad_w},
        {"dilate_h", job.dilate_h}, {"dilate_w", job.dilate_w}};
    for (const auto& [parameter, value] : sizes)
        call.scalar(parameter, static_cast<std::int32_t>(value));
}

Geometry flattened(const Problem& problem) {
    Geometry g = Geometry::of(problem);
    if (g.pointwise()) {
        g.w = g.ow = g.h * g.w;
        g.h = g.oh = 1;
    }
    return g;
}

double output_bytes(const Problem& problem) {
    return 4.0 * static_cast<double>(problem.outputs[0].shape.numel());
}

std::string image_options(const Problem& problem, bool split) {
    const bool filter = problem.op == backward_filter_type;
    return storage_options({{'A', problem.inputs[0].dtype},
                            {'B', filter ? problem.inputs[1].dtype : DType::f32},
                            {'C', split ? DType::f32 : problem.outputs[0].dtype}});
}

namespace {

Verdict sizes_verdict(const Problem& problem) {
    const Geometry g = Geometry::of(problem);
    const double limit = 2147000000.0, small = 1 << 29;
    const auto product = [](std::initializer_list<std::int64_t> sizes) {
        double all = 1;
        for (const std::int64_t size : sizes) all *= static_cast<double>(size);
        return all;
    };
    if (product({g.in, g.h, g.w}) > limit || product({g.out, g.oh, g.ow}) > limit ||
        product({g.n, g.oh, g.ow}) > limit || product({g.n, g.h, g.w}) > limit ||
        product({g.in, g.kh, g.kw}) > limit || product({g.out, g.kh, g.kw}) > limit)
        return Verdict::no(
            "an image has too many elements, or the batch too many pixels, for its 32-bit indices");
    if (product({g.kh, g.dh}) > small || product({g.kw, g.dw}) > small ||
        product({g.oh, g.sh}) > small || product({g.ow, g.sw}) > small)
        return Verdict::no(
            "the filter's dilation or stride reaches too far for its 32-bit indices");
    return Verdict::yes();
}

}  // namespace

Verdict index_verdict(const Problem& problem) {
    if (Verdict verdict = storage_verdict(problem, {}, false); !verdict) return verdict;
    return sizes_verdict(problem);
}

Verdict image_verdict(const Problem& problem) {
    if (problem.op == backward_filter_type) return storage_verdict(problem, {0, 1}, false);
    return storage_verdict(problem, {0}, true);
}

Verdict narrow_index_verdict(const Problem& problem) {
    if (Verdict verdict = image_verdict(problem); !verdict) return verdict;
    return sizes_verdict(problem);
}

void add_split_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   std::int64_t splits, std::uint64_t parts_at, std::int64_t first_pixel) {
    const Shape& shape = problem.outputs[0].shape;
    const std::int64_t plane = shape[2] * shape[3];
    const std::int64_t begin = first_pixel == 0 ? 0 : first_pixel / plane * shape[1] * plane;
    const auto program =
        context.build({split_sum_source, with_epilogue(kernel_source(split_sum_source), problem),
                       storage_options({{'C', problem.outputs[0].dtype}})});
    KernelCall call(program, "split_sum", rounded_range(context.traits(), shape.numel() - begin));
    const int result = static_cast<int>(problem.inputs.size());
    const bool bias = problem.op == forward_type && has_bias(problem);
    call.tensor_at("parts", result + 1, parts_at);
    call.tensor("bias", bias ? 2 : result + 1)
        .tensor("y", result, size_of(problem.outputs[0].dtype));
    call.scalar("count", shape.numel()).scalar("begin", begin);
    call.scalar("splits", static_cast<std::int32_t>(splits));
    call.scalar("has_bias", std::int32_t(bias));
    call.scalar("channels", static_cast<std::int32_t>(shape[1]));
    call.scalar("plane", plane).scalar("pixel", first_pixel == 0 ? 0 : first_pixel % plane);
    bind_epilogue(call, problem);
    call.check();
    launch.add(std::move(call));
}

bool has_empty_phase(const std::vector<DenseJob>& jobs) {
    return std::any_of(jobs.begin(), jobs.end(), is_empty);
}

void add_phase_fill(KernelLaunch& launch, ContextImpl& context, const Problem& problem) {
    const std::int64_t count = problem.outputs[0].shape.numel();
    const auto program =
        context.build({phase_fill_source, with_epilogue(kernel_source(phase_fill_source), problem),
                       storage_options({{'C', problem.outputs[0].dtype}})});
    KernelCall call(program, "phase_fill", rounded_range(context.traits(), count));
    call.tensor("y", static_cast<int>(problem.inputs.size()), size_of(problem.outputs[0].dtype))
        .scalar("count", count);
    bind_epilogue(call, problem);
    call.check();
    launch.add(std::move(call));
}

NDRange rounded_range(const Traits& device, std::int64_t items, std::size_t group) {
    while (group > device.max_work_group) group /= 2;
    NDRange range;
    range.global[0] = (static_cast<std::size_t>(items) + group - 1) / group * group;
    range.local[0] = group;
    range.local[1] = range.local[2] = 1;
    return range;
}

}  // namespace dlprim::conv2d
