// SPDX-License-Identifier: MIT
// conv2d.wgmma_narrow (mma_narrow): a convolution of images with at most four channels on tensor
// cores, in exact float or in tf32. Such a convolution is the first layer of most networks. A
// kernel first pads the images and splits them into halves, four channels per pixel
// (kernels/conv2d/narrow_pack.cl). A row of the filter's window is then contiguous in memory, as
// the product needs it. So the product only copies and multiplies, whereas wgmma_split gathers
// single floats.
#include "base/text.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/planes.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* pack_path = "conv2d/narrow_pack.cl";
constexpr std::int64_t pixels_a_step = split_depth / 4;
constexpr std::int64_t parts = 16;  ///< parts of an image, each searched for its largest value

// The sizes of the split images in the workspace, and the convolution that the product computes
// over them.
struct Narrow {
    std::int64_t rows_a_step, steps, h, w, pixels, unscale_at, largest_at, bytes;

    Narrow(const DenseJob& job, int products)
        : rows_a_step(job.kernel_w <= pixels_a_step / 4   ? 4
                      : job.kernel_w <= pixels_a_step / 2 ? 2
                                                          : 1),
          steps(ceil_div(job.kernel_h, rows_a_step)),
          h((job.out_h - 1) * job.stride_h + steps * rows_a_step),
          w(ceil_div((job.out_w - 1) * job.stride_w + pixels_a_step / rows_a_step, 2) * 2),
          pixels(job.n * h * w),
          unscale_at(pixels * 8 * (products == 1 ? 1 : 2)),
          largest_at(unscale_at + job.n * 4),
          bytes(ceil_div(largest_at + job.n * parts * 4, 256) * 256) {}

    /// Returns the job as the kernel sees it: the borders are in memory, and steps are the rows of
    /// a kernel with one column.
    DenseJob seen(DenseJob job) const {
        job.x_h = h;
        job.x_w = w;
        job.pad_h = job.pad_w = 0;
        job.kernel_h = steps;
        job.kernel_w = 1;
        job.dilate_h = rows_a_step;
        return job;
    }
};

DenseJob job_of(const Problem& problem) {
    return jobs_of(problem).at(0);
}

class NarrowEngine : public ConvolutionEngine {
  public:
    explicit NarrowEngine(MatrixUnit unit)
        : ConvolutionEngine(forward_type, cat(name_of(unit), "_narrow")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        std::vector<std::string> all = planes_product_sources();
        all.emplace_back(pack_path);
        all.emplace_back(split_weights_source);
        return all;
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = split_verdict(unit_, device, problem); !verdict) return verdict;
        if (Verdict verdict =
                split_rows_verdict(most_planes_rows(unit_, device, split_products(problem)));
            !verdict)
            return verdict;
        const Geometry g = Geometry::of(problem);
        if (g.in > 4) return Verdict::no(cat("it supports at most 4 input channels, not ", g.in));
        if (g.dh != 1 || g.dw != 1) return Verdict::no("it does not support dilation");
        if (g.sw % 2 != 0)
            return Verdict::no(
                "it needs an even horizontal stride, because it copies pairs of pixels");
        if (Narrow(job_of(problem), 3).pixels >= std::int64_t(1) << 31)
            return Verdict::no("the batch has too many pixels for its 32-bit indices");
        return Verdict::yes();
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        const std::int64_t best =
            wm_of(choose_split(device, size_of(device, problem), output_bytes(problem), 0));
        if (most_planes_rows(unit_, device, split_products(problem)) < 2)
            return {split_weights_choice(problem, {weights_of(problem, best)})};
        return {split_weights_choice(problem, {weights_of(problem, best)}),
                split_weights_choice(problem, {weights_of(problem, 3 - best)})};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return static_cast<std::uint64_t>(narrow_of(problem).bytes);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double bytes_per_s = std::max(device.gbytes_per_s, 1.0) * 0.7e9;
        const double image_bytes = 4.0 * static_cast<double>(problem.inputs[0].shape.numel());
        const double split =
            (2 * image_bytes + static_cast<double>(narrow_of(problem).bytes)) / bytes_per_s;
        const double product =
            split_seconds(device, size_of(device, problem), split_weight_rows(problem), 1);
        return split + std::max(product, output_bytes(problem) / bytes_per_s) +
               3 * device.launch_us * 1e-6;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const DenseJob job = job_of(problem);
        const Narrow narrow = narrow_of(problem);
        add_split(*launch, context, problem, job, narrow);
        PlanesProduct product{narrow.seen(job), size_of(context.traits(), problem), 1,
                              narrow.pixels, narrow.bytes};
        product.unit = unit_;
        product.rows_a_step = narrow.rows_a_step;
        product.columns = product.size.tiles_n();
        add_planes_product(*launch, context, problem, product,
                           weights_of(problem, split_weight_rows(problem)));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_split_weights(context, {weights_of(problem, split_weight_rows(problem))});
    }

  private:
    static Narrow narrow_of(const Problem& problem) {
        return {job_of(problem), split_products(problem)};
    }
    SplitSize size_of(const Traits& device, const Problem& problem) const {
        const DenseJob job = job_of(problem);
        return {job.group_out,
                job.n * job.out_h * job.out_w,
                narrow_of(problem).steps,
                split_products(problem),
                planes_pace * unit_pace(unit_),
                most_planes_rows(unit_, device, split_products(problem))};
    }
    static SplitWeights weights_of(const Problem& problem, std::int64_t wm) {
        return SplitWeights::narrow(job_of(problem), wm, split_products(problem),
                                    narrow_of(problem).rows_a_step);
    }

    static void add_split(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                          const DenseJob& job, const Narrow& narrow) {
        const auto program = context.build(
            {pack_path, kernel_source(pack_path), define("PRODUCTS", split_products(problem))});
        const int workspace = static_cast<int>(problem.inputs.size()) + 1;
        const auto range = [&](std::int64_t groups) {
            NDRange made = group_range(groups, split_items);
            made.dims = 2;
            made.global[1] = static_cast<std::size_t>(job.n);
            made.local[1] = 1;
            return made;
        };
        KernelCall largest(program, "narrow_largest", range(parts));
        largest.tensor("x", 0).tensor_at("largest", workspace,
                                         static_cast<std::uint64_t>(narrow.largest_at), 4);
        largest.size("count", job.group_in * job.x_h * job.x_w);
        launch.add(std::move(largest));
        KernelCall pack(program, "narrow_pack", range(ceil_div(narrow.h * narrow.w, split_items)));
        pack.tensor("x", 0).tensor_at("planes", workspace, 0, 1);
        pack.sizes({{"channels", job.group_in},
                    {"x_h", job.x_h},
                    {"x_w", job.x_w},
                    {"pad_h", job.pad_h},
                    {"pad_w", job.pad_w},
                    {"h", narrow.h},
                    {"w", narrow.w}});
        launch.add(std::move(pack));
    }

    MatrixUnit unit_;
};

}  // namespace

void add_narrow_engine(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units) registry.add(std::make_unique<NarrowEngine>(unit));
}

}  // namespace dlprim::conv2d
