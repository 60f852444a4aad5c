// SPDX-License-Identifier: MIT
// conv2d.wgmma_window: a convolution over plain images with few channels on tensor cores, in exact
// float or in coarser precisions. Such a convolution is the first layer of most networks. The
// kernel splits a window of the image into halves while it copies the window to local memory. It
// multiplies taps where they are in the window, even though they overlap
// (kernels/conv2d/window.cl).
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/stored16.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/window.cl";
constexpr const char* pack_path = "conv2d/window_pack.cl";
constexpr std::int64_t side = 8, row_block = 64;
/// Warpgroups that share weights. The more there are, the fewer registers each of them has.
constexpr std::int64_t least_workers = 4, most_workers = 8;

// The sizes that the kernel uses.
struct Window {
    Geometry g;
    std::int64_t planes, side_h, side_w, chunks, pairs, steps, rows, planes_at, bytes, tiles_y,
        tiles_x;
    bool last;

    Window(const Problem& problem, bool channels_last)
        : g(Geometry::of(problem)),
          planes(split_products(problem) == 3 ? 2 : 1),
          side_h(ceil_div(g.kh, g.sh)),
          side_w(ceil_div(g.kw, g.sw)),
          chunks(ceil_div(g.in * g.sh * g.sw, 8)),
          pairs(ceil_div(chunks * side_h * side_w, 2)),
          steps(ceil_div(pairs, 4)),
          rows(ceil_div(g.out, row_block) * row_block),
          planes_at(rows * 4),
          bytes(planes_at + rows * steps * 128 * planes),
          tiles_y(ceil_div(g.oh, side)),
          tiles_x(ceil_div(g.ow, side)),
          last(channels_last) {}

    std::int64_t tiles() const { return g.n * tiles_y * tiles_x; }
    std::int64_t window_pixels() const { return (side - 1 + side_h) * (side - 1 + side_w); }
    std::int64_t local_bytes(std::int64_t workers) const {
        const std::int64_t window = chunks * window_pixels() * 16 * planes;
        return steps * planes * 8192 +
               workers * (std::max<std::int64_t>(window, last ? 64 * 72 * 4 : 0) + 16);
    }
    std::string options() const {
        return define("PRODUCTS", planes == 2 ? 3 : 1) + define("S", g.sh) +
               define("SIDE_H", side_h) + define("SIDE_W", side_w) + define("C8", chunks);
    }
    Layout weights() const {
        return Layout::packed(cat("conv2d.wgmma_window:p", planes, 's', g.sh, ';', g.in, 'i', g.out,
                                  'o', g.kh, 'x', g.kw),
                              static_cast<std::uint64_t>(bytes));
    }
};

bool is_last(const Problem& problem) {
    return problem.outputs[0].layout == Layout::channels_last();
}

/// Returns the time in which a plain result with rows of an odd length is stored; 0 for others.
/// Such rows begin anywhere, so that the kernel stores single floats. An H200 stores 0.5 TB/s
/// then, of 4.3 (images of 111 x 111: 415 us, and 114 us with channels last).
double odd_rows_seconds(const Traits& device, const Problem& problem, const Window& window) {
    if (window.last || window.g.ow % 2 == 0) return 0;
    return output_bytes(problem) / (std::max(device.gbytes_per_s, 1.0) * 0.12e9);
}

Verdict fits(const Traits& device, const Window& window, std::int64_t workers) {
    return stored16_local_verdict(MatrixUnit::wgmma, device, window.local_bytes(workers));
}

class WindowEngine : public ConvolutionEngine {
  public:
    WindowEngine() : ConvolutionEngine(forward_type, "wgmma_window") {}

    std::vector<std::string> sources() const override { return {source_path, pack_path}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = stored16_storage_verdict(problem, {}, true); !verdict) return verdict;
        if (Verdict verdict = stored16_size_verdict(MatrixUnit::wgmma, device, problem, DType::f16);
            !verdict)
            return verdict;
        const Window window(problem, true);
        const Geometry& g = window.g;
        if (g.dh != 1 || g.dw != 1) return Verdict::no("it does not support dilation");
        if (g.sh != g.sw)
            return Verdict::no(
                cat("it needs the same stride in both directions, not ", g.sh, " and ", g.sw));
        // With more channels, other engines need not gather single elements, and the previous layer
        // can store its output in 16 bits without a conversion.
        if (g.in > 4) return Verdict::no(cat("it supports at most 4 input channels, not ", g.in));
        if (window.chunks * window.window_pixels() > 6 * 128)
            return Verdict::no(
                cat("a block of ", g.sh, " x ", g.sw,
                    " pixels, as large as the stride, has too many channels for its window: ",
                    g.in * g.sh * g.sw));
        if (window.pairs > 64)
            return Verdict::no(
                cat("it supports filters of at most 64 blocks of 16 elements, not ", window.pairs));
        return fits(device, window, least_workers);
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice plain;
        plain.inputs.assign(problem.inputs.size(), Layout::plain());
        plain.inputs[1] = Window(problem, true).weights();
        plain.outputs.assign(1, Layout::plain());
        LayoutChoice last = plain;
        last.outputs[0] = Layout::channels_last();
        bool narrow = problem.outputs[0].dtype != DType::f32;
        for (const EpilogueStage& stage : problem.epilogue) {
            if (stage.kind != EpilogueStage::Kind::add) continue;
            const auto operand = static_cast<std::size_t>(stage.operand);
            last.inputs[operand] = Layout::channels_last();
            narrow = narrow || problem.inputs[operand].dtype != DType::f32;
        }
        // If the result is plain, the kernel supports only float for it and for what epilogues add
        // to it.
        if (narrow) return {last};
        return {plain, last};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Window window(problem, is_last(problem));
        const double units = std::max(device.compute_units, 1);
        // The matrix units take 32 cycles at 1.75 GHz for 64 x 64 x 16, and wait for the same time.
        const double each =
            static_cast<double>(window.pairs) * (window.planes == 2 ? 3.0 : 1.0) * 2 * 32 / 1.75e9;
        const std::int64_t blocks = window.tiles() * window.rows / row_block;
        const auto windows = static_cast<double>(blocks);
        const double memory = std::max(roofline_seconds(device, problem, 0, 1.0, 0.5),
                                       odd_rows_seconds(device, problem, window));
        return std::max(windows / units * each, memory) + 2 * device.launch_us * 1e-6;
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // With three products, the sums need twice as many registers.
        const Window window(problem, is_last(problem));
        std::int64_t workers = window.planes == 2 ? least_workers : 6;
        if (!fits(device, window, workers)) workers = least_workers;
        return {{"workers", workers}};
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        TuneSpace space;
        for (std::int64_t workers = least_workers; workers <= most_workers; ++workers)
            if (fits(device, Window(problem, is_last(problem)), workers))
                space["workers"].push_back(workers);
        return space;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Window window(problem, is_last(problem));
        const std::int64_t workers = tuning.at("workers");
        const Geometry& g = window.g;
        const bool fours = g.out % 4 == 0, bias = has_bias(problem);
        const std::string options = window.options() + define("WORKERS", workers) +
                                    define("Y_KIND", stored16_kind(problem.outputs[0].dtype)) +
                                    define("Y_LAST", window.last) + define("Y_FOURS", fours) +
                                    define("Y_PAIRS", g.ow % 2 == 0);
        const int lanes = window.last && fours ? 4 : 1;
        const auto program = context.build(
            {source_path, with_epilogue(kernel_source(source_path), problem, lanes), options});
        const std::int64_t groups = std::clamp<std::int64_t>(
            ceil_div(window.tiles(), workers), 1, std::max(context.traits().compute_units, 1));
        NDRange range = group_range(groups, workers * 128);
        range.dims = 2;
        range.global[1] = static_cast<std::size_t>(window.rows / row_block);
        range.local[1] = 1;
        KernelCall call(program, "window_product", range);
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0).tensor_at("w", 1, 0, 1).tensor("bias", bias ? 2 : 1);
        call.tensor("y", result, size_of(problem.outputs[0].dtype));
        call.sizes({{"has_bias", bias},
                    {"channels_in", g.in},
                    {"channels_out", g.out},
                    {"x_h", g.h},
                    {"x_w", g.w},
                    {"out_h", g.oh},
                    {"out_w", g.ow},
                    {"pad_h", g.pt},
                    {"pad_w", g.pl},
                    {"tiles_y", window.tiles_y},
                    {"tiles_x", window.tiles_x},
                    {"tiles", window.tiles()}});
        call.scalar("planes_at", window.planes_at);
        bind_epilogue(call, problem);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        const Window window(problem, true);
        const auto program = context.build(
            {pack_path, kernel_source(pack_path),
             window.options() + define("KERNEL_H", window.g.kh) + define("KERNEL_W", window.g.kw)});
        KernelCall call(program, "window_pack", group_range(window.rows, 256));
        call.tensor("weight", 0).tensor_at("packed", 1, 0, 1);
        call.size("channels_in", window.g.in)
            .size("channels_out", window.g.out)
            .scalar("planes_at", window.planes_at);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_window_engine(EngineRegistry& registry) {
    registry.add(std::make_unique<WindowEngine>());
}

}  // namespace dlprim::conv2d
