// SPDX-License-Identifier: MIT
// Weights of convolutions as sums of halves: their packed layouts, and the launch that packs them.
#include "ops/conv2d/matrix/split_weights.hpp"

#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/launch.hpp"
#include "ops/conv2d/matrix/split.hpp"

#include <utility>

namespace dlprim::conv2d {

namespace {

constexpr std::string_view tag_head = "conv2d.wgmma:";
constexpr std::int64_t items = 256;  ///< work-items per work-group of the packing kernel

}  // namespace

SplitWeights::SplitWeights(const DenseJob& of, std::int64_t rows_64, int product_count,
                           bool by_blocks)
    : SplitWeights(of, rows_64, product_count, by_blocks ? split_depth : 1, of.kernel_h,
                   of.kernel_w) {}

SplitWeights SplitWeights::narrow(const DenseJob& job, std::int64_t wm, int products,
                                  std::int64_t rows_a_step) {
    return {job,
            wm,
            products,
            4,
            ceil_div(job.kernel_h, rows_a_step) * rows_a_step,
            split_depth / 4 / rows_a_step};
}

SplitWeights::SplitWeights(const DenseJob& of, std::int64_t rows_64, int product_count,
                           std::int64_t channels, std::int64_t h, std::int64_t w)
    : job(of),
      wm(rows_64),
      products(product_count),
      block(channels),
      kernel_h(h),
      kernel_w(w),
      depth(ceil_div(job.group_in, block) * block * kernel_h * kernel_w),
      steps(ceil_div(depth, split_depth)),
      rows(ceil_div(job.group_out, 64 * wm) * 64 * wm),
      table_at(rows * 4),
      planes_at(table_at + steps * split_depth * 8),
      bytes(planes_at + rows * steps * split_depth * (products == 1 ? 2 : 4)) {}

LayoutChoice split_weights_choice(const Problem& problem, const std::vector<SplitWeights>& jobs) {
    LayoutChoice choice = LayoutChoice::all(problem);
    std::string tag;
    std::int64_t bytes = 0;
    for (const SplitWeights& weights : jobs) {
        const DenseJob& job = weights.job;
        if (tag.empty()) tag = cat(tag_head, weights.wm, 'p', weights.products, ';');
        bytes += weights.bytes;
        tag += cat('b', weights.block, ',', weights.kernel_h, ',', weights.kernel_w, ':',
                   job.group_in, 'i', job.group_out, 'o', job.weight_out, 'h', job.kernel_h, '@',
                   job.h0, '/', job.h_step, 'w', job.kernel_w, '@', job.w0, '/', job.w_step, 'x',
                   job.x_h, ',', job.x_w, 'd', job.dilate_h, ',', job.dilate_w, ';');
    }
    choice.inputs[1] = Layout::packed(tag, static_cast<std::uint64_t>(bytes));
    choice.variant = cat("for ", split_rows * jobs.at(0).wm, " rows");
    return choice;
}

std::int64_t split_weight_rows(const Problem& problem) {
    const std::string& tag = problem.inputs.at(1).layout.tag;
    require(tag.size() > tag_head.size() && tag.compare(0, tag_head.size(), tag_head) == 0,
            "convolutions on matrix units want weights that they have packed");
    return tag[tag_head.size()] - '0';
}

std::unique_ptr<Launch> pack_split_weights(ContextImpl& context,
                                           const std::vector<SplitWeights>& jobs) {
    auto launch = std::make_unique<KernelLaunch>();
    const auto program = context.build({split_weights_source, kernel_source(split_weights_source),
                                        define("PRODUCTS", jobs.at(0).products)});
    std::int64_t at = 0;
    for (const SplitWeights& weights : jobs) {
        const DenseJob& job = weights.job;
        KernelCall call(
            program, "split_weights_pack",
            group_range(weights.rows + ceil_div(weights.steps * split_depth, items), items));
        call.tensor("weight", 0).tensor_at("packed", 1, static_cast<std::uint64_t>(at), 1);
        call.sizes({{"rows", weights.rows},
                    {"group_out", job.group_out},
                    {"group_in", job.group_in},
                    {"depth", weights.depth},
                    {"block", weights.block},
                    {"steps", weights.steps},
                    {"tile", 64 * weights.wm},
                    {"kernel_h", weights.kernel_h},
                    {"kernel_w", weights.kernel_w},
                    {"live_h", job.kernel_h},
                    {"live_w", job.kernel_w},
                    {"weight_w", job.weight_w},
                    {"h0", job.h0},
                    {"h_step", job.h_step},
                    {"w0", job.w0},
                    {"w_step", job.w_step},
                    {"plane", job.x_h * job.x_w},
                    {"row_pitch", job.x_w},
                    {"dilate_h", job.dilate_h},
                    {"dilate_w", job.dilate_w}});
        call.scalar("weight_out", job.weight_out).scalar("weight_in", job.weight_in);
        call.scalar("table_at", weights.table_at).scalar("planes_at", weights.planes_at);
        launch->add(std::move(call));
        at += weights.bytes;
    }
    return launch;
}

}  // namespace dlprim::conv2d
