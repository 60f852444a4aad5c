// SPDX-License-Identifier: MIT
// The launches of a dense job on a CPU: tile, division of work, arguments.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace dlprim::conv2d {

namespace {

// The step of lanes in which kernels/conv2d/blocked.cl reads input channels (LANE_STEP).
constexpr int lane_step = 4;

// How tiles are assigned to work-items, and the order of items. With slab_inner all slabs of one
// item's tiles come before the next item's; otherwise all items of one slab come before the next
// slab.
struct Sharing {
    std::int64_t tiles_per_item;
    bool slab_inner;
};

// Chooses enough work-items that all cores finish together, in the order that reads the least from
// beyond a core's L2 cache. x or the weights may use half of that cache.
Sharing share_out(const Traits& device, const DenseJob& job, const Tile& tile, const Reach& reach,
                  std::int64_t tiles, std::int64_t slab_bytes) {
    constexpr std::int64_t cache = 512 * 1024;
    // Fewer items if each reads weights that have left the cache before the next item needs them.
    const std::int64_t wanted =
        (slab_bytes > cache / 2 ? 2 : 8) * std::max(1, device.compute_units);
    const std::int64_t share = std::max<std::int64_t>(1, tiles * reach.slabs / wanted);
    const std::int64_t columns = job.kernel_w <= 1 ? 1 : job.stride_w;
    const std::int64_t channels = reach.across ? reach.most_lanes : job.group_in;
    const std::int64_t tile_bytes = 4 * channels * tile.pixels * columns *
                                    std::min(job.stride_h, std::max<std::int64_t>(job.kernel_h, 1));
    const std::int64_t fitting =
        std::max<std::int64_t>(1, cache / std::max<std::int64_t>(tile_bytes, 1));
    const std::int64_t inner_tiles = std::min(share, fitting);
    const auto x_bytes = static_cast<double>(tiles * tile_bytes);
    const double passes = reach.passes();
    const double weight_bytes = passes * static_cast<double>(slab_bytes);
    const double outer = weight_bytes + x_bytes * (x_bytes <= cache ? 1 : passes);
    const double inner =
        x_bytes +
        weight_bytes *
            (weight_bytes <= cache ? 1 : static_cast<double>(ceil_div(tiles, inner_tiles)));
    // Items of equal size, so that no core gets only the remainders.
    const auto even = [&](std::int64_t most) { return ceil_div(tiles, ceil_div(tiles, most)); };
    return inner <= outer ? Sharing{even(inner_tiles), true} : Sharing{even(share), false};
}

int lanes_of(const Traits& device, const DenseJob& job) {
    return group_lanes(device, job.groups, job.group_in, job.group_out);
}

Reach reach_of(const Traits& device, const DenseJob& job, int vectors) {
    return conv2d::reach_of(device, job.groups, job.group_in, job.group_out, vectors, lane_step,
                            lanes_of(device, job));
}

// Bytes of a slab's packed weights.
std::int64_t slab_bytes(const Traits& device, const DenseJob& job, const Tile& tile,
                        const Reach& reach) {
    return 4 * reach.most_lanes * job.kernel_h * job.kernel_w * tile.vectors *
           lanes_of(device, job);
}

// Adds a packing call after binding where the job's weights lie.
void add_weights_call(KernelLaunch& launch, KernelCall call, const DenseJob& job) {
    call.sizes({{"group_out", job.group_out},
                {"group_in", job.group_in},
                {"stride_group", job.weight_group},
                {"stride_out", job.weight_out},
                {"stride_in", job.weight_in},
                {"kernel_h", job.kernel_h},
                {"kernel_w", job.kernel_w},
                {"kernel_w_full", job.weight_w},
                {"h0", job.h0},
                {"h_step", job.h_step},
                {"w0", job.w0},
                {"w_step", job.w_step}});
    launch.add(std::move(call));
}

// The call that packs weights for slabs that reach across groups.
void add_packing_across(KernelLaunch& launch, ContextImpl& context, const DenseJob& job,
                        std::uint64_t at) {
    const Traits& device = context.traits();
    const int lanes = job_tile(device, job).vectors * lanes_of(device, job);
    const Reach reach = job_reach(device, job);
    const std::string options = define("V", device.vector_width) + define("OUT_LANES", lanes) +
                                define("LANE_STEP", lane_step);
    KernelCall call(conv_program(context, "blocked_pack_across.cl", options), "pack_across",
                    single_items(reach.slabs));
    call.tensor("w", 0).tensor_at("packed", 1, at);
    call.size("slab_lanes", reach.most_lanes)
        .size("out", reach.group_out)
        .size("in", reach.group_in);
    add_weights_call(launch, std::move(call), job);
}

// How a work-item goes through the weights of a slab; see the kernel.
struct Chunks {
    std::int64_t blocks, ahead_lines;
};

Chunks chunks_of(const Traits& device, const DenseJob& job, const Tile& tile, const Reach& reach,
                 const Sharing& sharing) {
    const int v = device.vector_width;
    const std::int64_t slab_out = std::int64_t(tile.vectors) * lanes_of(device, job);
    const std::int64_t block_bytes = 4 * job.kernel_h * job.kernel_w * v * slab_out;
    // The weights of a chunk and the pixels of an item share the L2 cache. Also the error of a sum
    // grows with its length: for 4608 terms in one sum it is four times that for 256. Products of
    // zeros do not count.
    const std::int64_t taps = std::max<std::int64_t>(job.kernel_h * job.kernel_w, 1);
    const std::int64_t terms = job.rounds_less && job.group_in * taps > 256 ? 128 : 256;
    const std::int64_t in_blocks = reach.across ? reach.most_lanes / v + 2 : reach.in_blocks;
    const bool short_sums = reach.across && job.group_in * taps <= 256;
    const std::int64_t cached =
        (sharing.slab_inner ? 256 : 384) * 1024 / std::max<std::int64_t>(block_bytes, 1);
    const std::int64_t most = std::clamp<std::int64_t>(
        std::min(cached, short_sums ? in_blocks : terms / (v * taps)), 1, in_blocks);
    // The number of cache lines of the next chunk's weights that a tile prefetches at each kernel
    // position, so that all are loaded after the last tile. A small number of weights stays in the
    // L2 cache anyway.
    const std::int64_t position_lines = ceil_div(v * slab_out, 16);
    const bool far = slab_bytes(device, job, tile, reach) * reach.slabs >= 256 * 1024;
    return {ceil_div(in_blocks, ceil_div(in_blocks, most)),
            far ? ceil_div(position_lines, sharing.tiles_per_item) : 0};
}

}  // namespace

Geometry lying_geometry(const Problem& problem) {
    return Geometry::of(problem).lying();
}

Tile job_tile(const Traits& device, const DenseJob& job) {
    // Registers hold accumulators, one weight vector per vector, and a broadcast value.
    const bool many = device.vector_registers >= 32;
    const bool halves = lanes_of(device, job) < device.vector_width;
    const std::int64_t vectors = job.group_out / lanes_of(device, job);
    Tile best{};
    double best_cost = std::numeric_limits<double>::infinity();
    for (int v = 1; v <= (halves ? 7 : 3); ++v) {
        // No tile of half vectors reaches across groups.
        if (halves && vectors % v != 0) continue;
        const int pixels = std::min({14, 28 / v, (device.vector_registers - 1) / v - 1});
        if (pixels < 2) continue;
        // A slab's work is in proportion to its input lanes, which differ across groups.
        const Reach reach = reach_of(device, job, v);
        const double slabs =
            reach.across && !halves
                ? static_cast<double>(reach.all_lanes) / static_cast<double>(job.group_in)
                : static_cast<double>(ceil_div(reach.out_vectors, v));
        const double cost = tile_cycles({v, pixels}, pixels) * slabs / pixels;
        // Three of many registers must be worth a program of their own.
        if (cost < best_cost * (v == 3 && many ? 0.95 : 0.999)) {
            best_cost = cost;
            best = {v, pixels};
        }
    }
    return best;
}

Reach job_reach(const Traits& device, const DenseJob& job) {
    return reach_of(device, job, job_tile(device, job).vectors);
}

std::array<int, 3> tile_sizes(const Tile& tile) {
    return {tile.pixels, (tile.pixels + 2) / 2, (tile.pixels + 2) / 4};
}

double tile_cycles(const Tile& tile, std::int64_t pixels) {
    const double o = tile.vectors, p = static_cast<double>(pixels);
    return std::max({o * p / 2.0, (o + p) / 2.0 + 1, 4.0}) + 0.5;
}

double tiles_cycles(const Tile& tile, int size, std::int64_t pixels) {
    const std::int64_t whole = pixels / size;
    double cycles = static_cast<double>(whole) * tile_cycles(tile, size);
    const std::int64_t rest = pixels % size;
    if (rest == 0) return cycles;
    int last = size;
    for (const int smaller : tile_sizes(tile))
        if (smaller >= rest) last = std::min(last, smaller);
    return cycles + tile_cycles(tile, last);
}

Verdict blocked_verdict(const Traits& device, const Problem& problem) {
    if (!device.wide_vectors)
        return Verdict::no("it is made for CPUs, and the device has no wide vectors");
    if (device.vector_width != 4 && device.vector_width != 8 && device.vector_width != 16)
        return Verdict::no(
            cat("it needs vectors of 4, 8 or 16 floats, and the device has ", device.vector_width));
    for (const std::vector<Operand>* side : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *side) {
            if (operand.dtype != DType::f32)
                return Verdict::no(
                    cat("it supports float tensors only, not ", name_of(operand.dtype)));
            if (operand.shape.numel() >= std::int64_t(1) << 40)
                return Verdict::no(
                    "a tensor has 2^40 elements or more, which are too many for its indices");
        }
    return Verdict::yes();
}

Verdict groups_verdict(const Geometry& g) {
    if (g.groups > 1 && g.group_in() == 1 && g.group_out() == 1)
        return Verdict::no("it does not support groups of one channel");
    return Verdict::yes();
}

Verdict filter_verdict(const Traits& device, const Problem& problem) {
    if (!problem.epilogue.empty())
        return Verdict::no("it does not support an epilogue, since it adds up partial sums");
    return blocked_verdict(device, problem);
}

Verdict winograd_verdict(const Traits& device, const Geometry& g) {
    if (g.kh != 3 || g.kw != 3 || g.sh != 1 || g.sw != 1 || g.dh != 1 || g.dw != 1)
        return Verdict::no("it supports 3x3 kernels without stride and dilation only");
    if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
    if (g.in < device.vector_width && g.out < device.vector_width)
        return Verdict::no(cat("it needs at least ", device.vector_width,
                               " input or output channels, to fill a vector, not ", g.in, " and ",
                               g.out));
    return Verdict::yes();
}

std::shared_ptr<Program> conv_program(ContextImpl& context, const char* file,
                                      const std::string& options, const Epilogue& epilogue,
                                      int lanes) {
    const std::string path = cat("conv2d/", file);
    if (lanes == 0) lanes = context.traits().vector_width;
    return context.build({path, with_epilogue(kernel_source(path), epilogue, lanes, true),
                          cat(options, ' ', flush_subnormals)});
}

NDRange single_items(std::int64_t items) {
    return group_range(items, 1);
}

std::uint64_t packed_bytes(const Traits& device, const DenseJob& job) {
    if (job.kernel_h * job.kernel_w == 0) return 0;
    const Reach reach = job_reach(device, job);
    const std::int64_t weights =
        reach.slabs * slab_bytes(device, job, job_tile(device, job), reach);
    return static_cast<std::uint64_t>(4 * device.vector_width + weights);
}

std::string pack_tag(const Traits& device, const std::vector<DenseJob>& jobs) {
    std::string tag = cat("conv2d.blocked:", device.vector_width, 'x');
    for (const DenseJob& job : jobs)
        tag += cat(job.groups, 'g', job.weight_out, 'o',
                   job_tile(device, job).vectors * lanes_of(device, job), 'h', job.kernel_h, '@',
                   job.h0, '/', job.h_step, 'w', job.kernel_w, '@', job.w0, '/', job.w_step, ';');
    return tag;
}

void add_packing(KernelLaunch& launch, ContextImpl& context, const DenseJob& job, int zeros,
                 int in_lanes, int tile_blocks, std::uint64_t at) {
    const int v = context.traits().vector_width;
    const auto program = conv_program(context, "blocked_pack.cl", {});
    const std::int64_t group_slabs = ceil_div(ceil_div(job.group_out, v), tile_blocks);
    const std::int64_t in_blocks = ceil_div(job.group_in, in_lanes);
    KernelCall call(program, "pack", single_items(job.groups * group_slabs * in_blocks));
    call.tensor("w", 0).tensor_at("packed", 1, at);
    call.sizes({{"zeros", zeros},
                {"in_lanes", in_lanes},
                {"out_lanes", std::int64_t{tile_blocks} * v},
                {"group_slabs", group_slabs},
                {"in_blocks", in_blocks}});
    add_weights_call(launch, std::move(call), job);
}

std::unique_ptr<Launch> pack_jobs(ContextImpl& context, const std::vector<DenseJob>& jobs) {
    const Traits& device = context.traits();
    auto launch = std::make_unique<KernelLaunch>();
    std::uint64_t at = 0;
    for (const DenseJob& job : jobs) {
        if (job.kernel_h * job.kernel_w == 0) continue;
        if (job_reach(device, job).across)
            add_packing_across(*launch, context, job, at);
        else
            add_packing(*launch, context, job, device.vector_width, device.vector_width,
                        job_tile(device, job).vectors, at);
        at += packed_bytes(device, job);
    }
    return launch;
}

void add_job(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
             const DenseJob& job, const JobOperands& operands) {
    const Traits& device = context.traits();
    const int v = device.vector_width, lanes = lanes_of(device, job);
    const Tile tile = job_tile(device, job);
    const Reach reach = job_reach(device, job);
    const std::int64_t group_slabs = reach.slabs / reach.groups;
    const std::int64_t image_tiles = ceil_div(job.out_h * job.out_w, tile.pixels);
    const std::int64_t tiles = job.n * image_tiles;

    const Sharing sharing =
        share_out(device, job, tile, reach, tiles, slab_bytes(device, job, tile, reach));
    const std::int64_t items = ceil_div(tiles, sharing.tiles_per_item);
    const auto [chunk, ahead_lines] = chunks_of(device, job, tile, reach, sharing);

    const std::string options = define("B", v) + define("V", lanes) + define("P", tile.pixels) +
                                define("O", tile.vectors) + define("ACROSS", reach.across) +
                                define("LANE_STEP", lane_step);
    const auto program = conv_program(context, "blocked.cl", options, problem.epilogue, lanes);
    KernelCall call(program, "conv", single_items(items * reach.slabs));
    const bool bias = operands.bias >= 0;
    call.tensor("x", operands.x)
        .tensor_at("w", operands.weight, operands.weight_bytes)
        .tensor("y", operands.y);
    call.tensor("bias", bias ? operands.bias : operands.x);
    bind_epilogue(call, problem.epilogue);
    call.sizes({{"tiles", tiles},
                {"image_tiles", image_tiles},
                {"tiles_per_item", sharing.tiles_per_item},
                {"items", items},
                {"slabs", reach.slabs},
                {"slab_inner", sharing.slab_inner},
                {"group_slabs", group_slabs},
                {"group_out", reach.group_out},
                {"width_in", job.group_in},
                {"width_out", job.group_out},
                {"slab_lanes", reach.most_lanes},
                {"in_blocks", reach.in_blocks},
                {"chunk", chunk},
                {"ahead_lines", ahead_lines},
                {"x_blocks", reach.groups * reach.in_blocks},
                {"x_h", job.x_h},
                {"x_w", job.x_w},
                {"out_vectors", reach.out_vectors},
                {"y_blocks", reach.groups * ceil_div(reach.group_out, v)},
                {"y_h", job.y_h},
                {"y_w", job.y_w},
                {"has_bias", bias}});
    bind_window(call, job);
    launch.add(std::move(call));
}

bool reads_subsample(const Geometry& g) {
    return g.kh == 1 && g.kw == 1 && g.sh * g.sw > 1 && g.pt == 0 && g.pl == 0 &&
           (g.oh - 1) * g.sh < g.h && (g.ow - 1) * g.sw < g.w && g.group_out() >= 64;
}

Geometry without_stride(Geometry g) {
    g.h = g.oh;
    g.w = g.ow;
    g.sh = g.sw = 1;
    return g;
}

std::int64_t subsample_bytes(const Traits& device, const Geometry& g) {
    const std::int64_t v = device.vector_width;
    return 4 * g.n * ceil_div(g.in, v) * v * g.oh * g.ow;
}

void add_subsampling(KernelLaunch& launch, ContextImpl& context, const Geometry& g, int to,
                     std::uint64_t at) {
    const Traits& device = context.traits();
    const std::int64_t rows = g.n * ceil_div(g.in, device.vector_width) * g.oh;
    const std::int64_t rows_per_item =
        std::max<std::int64_t>(1, rows / (8 * std::max(1, device.compute_units)));
    const auto program =
        conv_program(context, "blocked_subsample.cl", define("V", device.vector_width));
    KernelCall call(program, "subsample", single_items(ceil_div(rows, rows_per_item)));
    call.tensor("x", 0).tensor_at("y", to, at);
    call.sizes({{"rows", rows},
                {"rows_per_item", rows_per_item},
                {"x_h", g.h},
                {"x_w", g.w},
                {"out_h", g.oh},
                {"out_w", g.ow},
                {"stride_h", g.sh},
                {"stride_w", g.sw}});
    launch.add(std::move(call));
}

}  // namespace dlprim::conv2d
