// SPDX-License-Identifier: MIT
// The launches of a product in 16 bits: the product itself, and the sum of the parts of split-K.
#include "engine/matrix/stored16_product.hpp"

#include "base/integers.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

constexpr const char* product_path = "matrix/stored16.cl";
constexpr const char* sum_path = "matrix/stored16_sum.cl";

std::string options_of(const Problem& problem, const Stored16Product& product) {
    const Images& images = product.images;
    // If there are few steps, fewer stages leave local memory to more work-groups.
    const std::int64_t stages =
        std::min(product.stages,
                 std::max<std::int64_t>(2, ceil_div(product.weights.steps, product.splits) + 1));
    return define("KIND", stored16_kind(problem.inputs[0].dtype)) + define("STAGES", stages) +
           define("NEAR", product.near) + define("MG", product.rows / 128) +
           define("BN", product.columns) +
           define("Y_KIND", product.splits > 1 ? 0 : stored16_kind(problem.outputs[0].dtype)) +
           define("KERNEL_H", std::max<std::int64_t>(images.kernel_h, 1)) +
           define("KERNEL_W", std::max<std::int64_t>(images.kernel_w, 1)) +
           define("DIRECT", images.direct()) +
           define("CHANNEL_TAIL", product.channels_in % stored16_depth != 0) +
           define("Y_FOURS", product.channels_out % 4 == 0) + unit_option(product.unit);
}

void bind_operands(KernelCall& call, const Problem& problem, const Stored16Product& product) {
    const int result = static_cast<int>(problem.inputs.size());
    call.tensor("x", 0, 2).tensor_at("w", 1, static_cast<std::uint64_t>(product.weights_at), 1);
    call.tensor("bias", product.bias >= 0 ? product.bias : 1);
    if (product.splits > 1)
        call.tensor("y", result + 1);
    else
        call.tensor("y", result, size_of(problem.outputs[0].dtype));
}

}  // namespace

void add_stored16_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                          const Stored16Product& product) {
    const bool split = product.splits > 1;
    const int lanes = product.channels_out % 4 == 0 ? 4 : 1;
    const std::int64_t tiles_m = ceil_div(product.pixels, product.rows),
                       tiles_n = ceil_div(product.channels_out, product.columns);
    const std::string source = kernel_source(product_path);
    const auto program = context.build(
        {product_path,
         split ? with_epilogue(source, Epilogue{}, lanes) : with_epilogue(source, problem, lanes),
         options_of(problem, product)});
    KernelCall call(program, "stored16_product",
                    group_range(tiles_m * tiles_n * product.splits, stored16_items));
    bind_operands(call, problem, product);
    const Stored16Weights& weights = product.weights;
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"has_bias", product.bias >= 0},
        {"pixels", product.pixels},
        {"channels_in", product.channels_in},
        {"channels_out", product.channels_out},
        {"steps", weights.steps},
        {"steps_part", std::max<std::int64_t>(1, ceil_div(weights.steps, product.splits))},
        {"tiles_m", tiles_m},
        {"tiles_n", tiles_n},
        {"row_blocks", weights.rows / stored16_block}};
    for (const auto& [parameter, value] : sizes)
        call.scalar(parameter, static_cast<std::int32_t>(value));
    bind_images(call, product.images);
    call.scalar("blocks_at", weights.blocks_at);
    call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
    if (!split) bind_epilogue(call, problem);
    launch.add(std::move(call));
}

void add_stored16_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                      std::int64_t splits, std::int64_t channels, int bias,
                      std::size_t group_items) {
    const std::int64_t count = problem.outputs[0].shape.numel();
    const int lanes = channels % 4 == 0 ? 4 : 1;
    const auto program = context.build(
        {sum_path, with_epilogue(kernel_source(sum_path), problem, lanes),
         define("LANES", lanes) + define("Y_KIND", stored16_kind(problem.outputs[0].dtype))});
    KernelCall call(program, "stored16_sum",
                    line_range(context.traits(), count / lanes, group_items));
    const int result = static_cast<int>(problem.inputs.size());
    call.tensor("parts", result + 1).tensor("bias", bias >= 0 ? bias : result + 1);
    call.tensor("y", result, size_of(problem.outputs[0].dtype));
    call.scalar("count", count).scalar("splits", static_cast<std::int32_t>(splits));
    call.scalar("has_bias", std::int32_t(bias >= 0));
    call.scalar("channels", static_cast<std::int32_t>(channels));
    bind_epilogue(call, problem);
    launch.add(std::move(call));
}

std::vector<std::string> stored16_product_sources() {
    return {product_path, stored16_weights_source, sum_path};
}

}  // namespace dlprim
