// SPDX-License-Identifier: MIT
// Packed weights of products in 16 bits: their layout, and the launch that packs them.
#include "engine/matrix/stored16_weights.hpp"

#include "base/integers.hpp"
#include "engine/kernel_options.hpp"

#include <utility>

namespace dlprim {

Stored16Weights::Stored16Weights(const WeightSource& source, std::int64_t channels)
    : rows(ceil_div(source.outputs, stored16_block) * stored16_block),
      block(channels),
      depth(ceil_div(source.inputs, block) * block * source.kernel_h * source.kernel_w),
      steps(ceil_div(depth, stored16_depth)),
      blocks_at(rows * 4),
      bytes(blocks_at + rows * steps * stored16_depth * 2) {}

void add_stored16_packing(KernelLaunch& launch, ContextImpl& context, const WeightSource& source,
                          DType dtype, std::int64_t block, std::int64_t at) {
    const Stored16Weights weights(source, block);
    // Keep a row in local memory only if it needs at most 32 KiB, so that several work-groups can
    // share a compute unit.
    std::int64_t room = 1024;
    while (room < weights.depth) room *= 2;
    if (room > 8192) room = 0;
    const auto program =
        context.build({stored16_weights_source, kernel_source(stored16_weights_source),
                       define("KIND", stored16_kind(dtype)) + define("ROOM", room)});
    KernelCall call(program, "stored16_pack", group_range(weights.rows, stored16_items));
    call.tensor("weight", 0).tensor_at("packed", 1, static_cast<std::uint64_t>(at), 1);
    const std::pair<const char*, std::int64_t> sizes[] = {{"group_out", source.outputs},
                                                          {"group_in", source.inputs},
                                                          {"depth", weights.depth},
                                                          {"block", weights.block},
                                                          {"steps", weights.steps},
                                                          {"kernel_h", source.kernel_h},
                                                          {"kernel_w", source.kernel_w},
                                                          {"weight_w", source.weight_w},
                                                          {"h0", source.h0},
                                                          {"h_step", source.h_step},
                                                          {"w0", source.w0},
                                                          {"w_step", source.w_step}};
    for (const auto& [parameter, value] : sizes)
        call.scalar(parameter, static_cast<std::int32_t>(value));
    call.scalar("weight_out", source.weight_out).scalar("weight_in", source.weight_in);
    call.scalar("blocks_at", weights.blocks_at);
    launch.add(std::move(call));
}

}  // namespace dlprim
