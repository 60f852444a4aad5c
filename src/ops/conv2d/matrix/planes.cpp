// SPDX-License-Identifier: MIT
// conv2d.wgmma_planes and conv2d_backward_data.wgmma_planes (mma_planes): convolution and its data
// gradient on tensor cores, in exact float or in tf32. A kernel first splits the images into halves
// (kernels/conv2d/planes_pack.cl), and the product reads these (planes.cl) for every tap and every
// tile of output channels. wgmma_split needs no such pass, but it splits a value each time that it
// reads it.
#include "ops/conv2d/matrix/planes.hpp"
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/planes.cl";
constexpr const char* split_path = "conv2d/planes_pack.cl";

// The sizes of the split images in the workspace; see planes_pack.cl.
struct Planes {
    std::int64_t blocks, pixels, bytes;

    Planes(const DenseJob& job, int products)
        : blocks(ceil_div(job.group_in, split_depth)),
          pixels(job.n * job.x_h * job.x_w),
          bytes(blocks * pixels * (products == 1 ? 128 : 256) +
                ceil_div(blocks * pixels * 4, 256) * 256) {}
};

std::int64_t steps_of(const DenseJob& job) {
    return ceil_div(job.group_in, split_depth) * job.kernel_h * job.kernel_w;
}

SplitSize size_of(const DenseJob& job, int products, MatrixUnit unit) {
    return {job.group_out, job.n * job.out_h * job.out_w, steps_of(job), products,
            planes_pace * unit_pace(unit)};
}

/// How the tiles of a product are divided between launches. Work-groups run in rounds of as many as
/// the device holds, and the last round would leave most of the device idle. So the first `whole`
/// columns of tiles, which fill whole rounds, are computed with K in one part. The other columns
/// are computed with K in `splits` parts.
struct Shares {
    std::int64_t wm, splits, whole;

    explicit Shares(const Tuning& tuning)
        : wm(wm_of(tuning)), splits(tuning.at("splits")), whole(tuning.at("whole")) {}
    Shares(std::int64_t rows, std::int64_t parts, std::int64_t columns)
        : wm(rows), splits(parts), whole(columns) {}
    Tuning tuning() const {
        return {{"rows", split_rows * wm}, {"splits", splits}, {"whole", whole}};
    }

    double seconds(const Traits& device, const SplitSize& size, double output_bytes) const {
        const std::int64_t rest = size.tiles_n() - whole;
        const double part_bytes = output_bytes * static_cast<double>(rest) /
                                  static_cast<double>(std::max<std::int64_t>(size.tiles_n(), 1));
        SplitSize first = size, last = size;
        first.columns = whole * split_columns;
        last.columns = size.columns - first.columns;
        double sum = 0;
        if (whole > 0) sum += split_seconds(device, first, wm, 1) + device.launch_us * 1e-6;
        return sum + split_parts_seconds(device, last, wm, splits, part_bytes);
    }
};

/// Returns how many columns of tiles fill all rounds but the last. Returns 0 if there are none, or
/// if they are all columns.
std::int64_t filling_columns(const Traits& device, const SplitSize& size, std::int64_t wm) {
    const std::int64_t slots = std::max(device.compute_units, 1) * (wm == 2 ? 1 : 2);
    const std::int64_t rows = std::max<std::int64_t>(size.tiles_m(wm), 1);
    const std::int64_t whole = rows * size.tiles_n() / slots * slots / rows;
    return whole < size.tiles_n() ? whole : 0;
}

constexpr double most_part_bytes = 64e6;

class PlanesEngine : public ConvolutionEngine {
  public:
    PlanesEngine(MatrixUnit unit, const char* op)
        : ConvolutionEngine(op, cat(name_of(unit), "_planes")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        std::vector<std::string> all = planes_product_sources();
        for (const char* path :
             {split_path, split_weights_source, parts_sum_source, phase_fill_source})
            all.emplace_back(path);
        return all;
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = split_verdict(unit_, device, problem); !verdict) return verdict;
        if (Verdict verdict =
                split_rows_verdict(most_planes_rows(unit_, device, split_products(problem)));
            !verdict)
            return verdict;
        const Planes planes(jobs_of(problem).at(0), split_products(problem));
        if (planes.blocks * planes.pixels >= std::int64_t(1) << 31)
            return Verdict::no(
                "a tensor has too many pixels and blocks of channels for its 32-bit indices");
        return Verdict::yes();
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        // There is one choice per tile, since weights are packed for a tile. The preferred choice
        // is first.
        const std::int64_t best = wm_of(
            choose_split(device, largest(device, problem), output_bytes(problem), most_part_bytes));
        if (most_planes_rows(unit_, device, split_products(problem)) < 2)
            return {split_weights_choice(problem, all_weights(problem, best))};
        return {split_weights_choice(problem, all_weights(problem, best)),
                split_weights_choice(problem, all_weights(problem, 3 - best))};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const std::int64_t splits = tuning.at("splits");
        return static_cast<std::uint64_t>(
            Planes(jobs_of(problem).at(0), split_products(problem)).bytes +
            (splits <= 1 ? 0 : problem.outputs[0].shape.numel() * splits * 4));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Shares shares(tuning);
        const int products = split_products(problem);
        const double bytes_per_s = std::max(device.gbytes_per_s, 1.0) * 0.7e9;
        const Planes planes(jobs_of(problem).at(0), products);
        const double image_bytes = 4.0 * static_cast<double>(problem.inputs[0].shape.numel());
        double seconds = (image_bytes + static_cast<double>(planes.bytes)) / bytes_per_s +
                         device.launch_us * 1e-6;
        if (shares.whole > 0) {
            seconds +=
                std::max(shares.seconds(device, size_of(jobs_of(problem).at(0), products, unit_),
                                        output_bytes(problem)),
                         static_cast<double>(planes.bytes) / bytes_per_s);
        } else {
            for (const DenseJob& job : jobs_of(problem))
                seconds += std::max(split_seconds(device, size_of(job, products, unit_), shares.wm,
                                                  shares.splits),
                                    static_cast<double>(planes.bytes) / bytes_per_s) +
                           device.launch_us * 1e-6;
            seconds += parts_seconds(device, output_bytes(problem), shares.splits);
        }
        // A work-item holds four neighbouring pixels. If the number of pixels of an image is not a
        // multiple of four, it writes them one by one, so each write covers a part of a memory
        // line. On an H200 this slows down the 1x1 convolutions of 7x7, 17x17 and 35x35 pixels by
        // about the time added here.
        const Geometry g = Geometry::of(problem);
        const Shape& y = problem.outputs[0].shape;
        if (y[2] * y[3] % 4 != 0 && g.kh * g.kw == 1 && shares.splits <= 1)
            seconds += output_bytes(problem) / (std::max(device.gbytes_per_s, 1.0) * 0.25e9);
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const std::int64_t wm = split_weight_rows(problem);
        const SplitSize size = largest(device, problem);
        const double bytes = output_bytes(problem);
        const Tuning even = choose_split(device, size, bytes, most_part_bytes, wm);
        Shares best(wm, even.at("splits"), 0);
        for (const std::int64_t splits : tail_splits(device, problem)) {
            const Shares shares(wm, splits, filling_columns(device, size, wm));
            if (shares.seconds(device, size, bytes) < best.seconds(device, size, bytes))
                best = shares;
        }
        return best.tuning();
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t wm = split_weight_rows(problem);
        const SplitSize size = largest(device, problem);
        const std::int64_t even =
            choose_split(device, size, output_bytes(problem), most_part_bytes, wm).at("splits");
        TuneSpace space{{"rows", {split_rows * wm}}, {"splits", {even, even * 2}}, {"whole", {0}}};
        if (even > 1) space["splits"].push_back(ceil_div(even, 2));
        const std::vector<std::int64_t> parts = tail_splits(device, problem);
        if (parts.empty()) return space;
        space["whole"].push_back(filling_columns(device, size, wm));
        for (const std::int64_t splits : parts)
            if (splits != even && splits != even * 2) space["splits"].push_back(splits);
        return space;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const Shares shares(tuning);
        const bool fill = shares.splits == 1 && has_empty_phase(jobs_of(problem));
        if (fill) add_phase_fill(*launch, context, problem);
        add_split(*launch, context, problem);
        std::int64_t at = 0;
        for (const DenseJob& job : jobs_of(problem)) {
            const SplitWeights weights(job, shares.wm, split_products(problem), true);
            const std::int64_t columns = size_of(job, split_products(problem), unit_).tiles_n();
            if (shares.whole > 0)
                add_product(*launch, context, problem, {1, 0, shares.whole}, weights, at);
            if (!fill || !is_empty(job))
                add_product(*launch, context, problem,
                            {shares.splits, shares.whole, columns - shares.whole}, weights, at);
            at += weights.bytes;
        }
        if (shares.splits > 1)
            add_split_sum(*launch, context, problem, shares.splits,
                          static_cast<std::uint64_t>(
                              Planes(jobs_of(problem).at(0), split_products(problem)).bytes),
                          shares.whole * split_columns);
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_split_weights(context, all_weights(problem, split_weight_rows(problem)));
    }

  private:
    /// The tiles of one launch: `columns` columns of tiles from `first` on, with K in `splits`
    /// parts.
    struct Tiles {
        std::int64_t splits, first, columns;
    };

    /// Returns the split-K factors that the columns behind filling_columns() may have.
    /// Returns none if there are no such columns, or if outputs are not contiguous in the way
    /// columns are.
    std::vector<std::int64_t> tail_splits(const Traits& device, const Problem& problem) const {
        const std::vector<DenseJob> jobs = jobs_of(problem);
        if (jobs.size() != 1 || !fills_y(jobs[0])) return {};
        const SplitSize size = size_of(jobs[0], split_products(problem), unit_);
        const std::int64_t wm = split_weight_rows(problem);
        if (filling_columns(device, size, wm) == 0) return {};
        std::vector<std::int64_t> result;
        for (std::int64_t splits = 2; splits <= 6; ++splits)
            if (size.steps / splits >= 2 &&
                output_bytes(problem) * static_cast<double>(splits) <= most_part_bytes)
                result.push_back(splits);
        return result;
    }

    std::vector<SplitWeights> all_weights(const Problem& problem, std::int64_t wm) const {
        std::vector<SplitWeights> all;
        for (const DenseJob& job : jobs_of(problem))
            all.emplace_back(job, wm, split_products(problem), true);
        return all;
    }

    SplitSize largest(const Traits& device, const Problem& problem) const {
        SplitSize most = largest_size(problem, [&](const DenseJob& job) {
            return size_of(job, split_products(problem), unit_);
        });
        most.most_wm = most_planes_rows(unit_, device, split_products(problem));
        return most;
    }

    void add_split(KernelLaunch& launch, ContextImpl& context, const Problem& problem) const {
        const DenseJob job = jobs_of(problem).at(0);
        const Planes planes(job, split_products(problem));
        const auto program = context.build(
            {split_path, kernel_source(split_path), define("PRODUCTS", split_products(problem))});
        NDRange range;
        range.dims = 2;
        range.global = {static_cast<std::size_t>(ceil_div(planes.pixels, 32) * 256),
                        static_cast<std::size_t>(planes.blocks), 1};
        range.local = {256, 1, 1};
        KernelCall call(program, "planes_pack", range);
        call.tensor("x", 0).tensor_at("planes", static_cast<int>(problem.inputs.size()) + 1, 0, 1);
        call.size("channels", job.group_in)
            .size("plane", job.x_h * job.x_w)
            .size("pixels", planes.pixels);
        launch.add(std::move(call));
    }

    void add_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                     const Tiles& tiles, const SplitWeights& weights,
                     std::int64_t weights_at) const {
        const int products = split_products(problem);
        const Planes planes(weights.job, products);
        PlanesProduct product{weights.job, size_of(weights.job, products, unit_), planes.blocks,
                              planes.pixels, planes.bytes};
        product.unit = unit_;
        product.splits = tiles.splits;
        product.column = tiles.first;
        product.columns = tiles.columns;
        add_planes_product(launch, context, problem, product, weights, weights_at);
    }

    MatrixUnit unit_;
};

/// Steps in local memory, each with a factor for every column. Behind them are the columns' places.
std::int64_t stages_of(MatrixUnit unit, const Traits& device, std::int64_t wm, int products) {
    return planes_stages(unit, device, wm, products, split_columns * 4, split_columns * 4);
}

}  // namespace

std::int64_t most_planes_rows(MatrixUnit unit, const Traits& device, int products) {
    return most_split_rows(unit, device, products, 2, 3 * split_columns * 4);
}

std::vector<std::string> planes_product_sources() {
    return {source_path};
}

void add_planes_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                        const PlanesProduct& product, const SplitWeights& weights,
                        std::int64_t weights_at) {
    const DenseJob& job = product.job;
    const bool split = product.splits > 1;
    const bool quads = fills_y(job) && job.out_h * job.out_w % 4 == 0;
    const std::string options =
        define("WM", weights.wm) + define("PRODUCTS", weights.products) +
        define("STAGES", stages_of(product.unit, context.traits(), weights.wm, weights.products)) +
        define("Y_QUADS", quads) + define("NARROW", product.rows_a_step) +
        define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
        define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1)) + unit_option(product.unit);
    const auto program = context.build(
        {source_path,
         with_epilogue(kernel_source(source_path), split ? Epilogue{} : problem.epilogue),
         options});
    KernelCall call(program, "planes_product",
                    group_range(product.size.tiles_m(weights.wm) * product.columns * product.splits,
                                split_items));
    const int result = static_cast<int>(problem.inputs.size());
    const bool bias = problem.op == forward_type && !split && has_bias(problem);
    call.tensor_at("x", result + 1, 0, 1)
        .tensor_at("w", 1, static_cast<std::uint64_t>(weights_at), 1)
        .tensor("bias", bias ? 2 : 1);
    if (split)
        call.tensor_at("y", result + 1, static_cast<std::uint64_t>(product.planes_bytes), 4);
    else
        call.tensor("y", result);
    call.sizes(
        {{"has_bias", bias},
         {"pixels", product.size.columns},
         {"x_pixels", product.pixels},
         {"channels_out", job.group_out},
         {"blocks", product.blocks},
         {"steps", product.size.steps},
         {"steps_part", std::max<std::int64_t>(1, ceil_div(product.size.steps, product.splits))},
         {"tiles_m", product.size.tiles_m(weights.wm)},
         {"tiles_n", product.columns},
         {"tile0", product.column}});
    bind_images(call, job);
    call.scalar("planes_at", weights.planes_at);
    call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
    if (!split) bind_epilogue(call, problem.epilogue);
    launch.add(std::move(call));
}

void add_planes_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        for (const char* op : {forward_type, backward_data_type})
            registry.add(std::make_unique<PlanesEngine>(unit, op));
}

}  // namespace dlprim::conv2d
