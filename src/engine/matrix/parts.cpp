// SPDX-License-Identifier: MIT
// The launch that adds the parts of a split-K product, with its bias and epilogue.
#include "engine/matrix/parts.hpp"

#include "engine/epilogue.hpp"
#include "engine/storage.hpp"

namespace dlprim {

void add_parts_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   const PartsSum& sum) {
    const Shape& shape = problem.outputs[0].shape;
    const std::int64_t plane = shape[2] * shape[3];
    const std::int64_t begin =
        sum.first_pixel == 0 ? 0 : sum.first_pixel / plane * shape[1] * plane;
    const auto program =
        context.build({parts_sum_source, with_epilogue(kernel_source(parts_sum_source), problem),
                       storage_options({{'C', problem.outputs[0].dtype}})});
    KernelCall call(program, "parts_sum", line_range(context.traits(), shape.numel() - begin, 256));
    const int result = static_cast<int>(problem.inputs.size());
    call.tensor_at("parts", result + 1, sum.parts_at);
    call.tensor("bias", sum.bias >= 0 ? sum.bias : result + 1)
        .tensor("y", result, size_of(problem.outputs[0].dtype));
    call.scalar("count", shape.numel()).scalar("begin", begin);
    call.scalar("splits", static_cast<std::int32_t>(sum.splits));
    call.scalar("has_bias", std::int32_t(sum.bias >= 0));
    call.scalar("channels", static_cast<std::int32_t>(shape[1]));
    call.scalar("plane", plane).scalar("pixel", sum.first_pixel == 0 ? 0 : sum.first_pixel % plane);
    bind_epilogue(call, problem);
    launch.add(std::move(call));
}

}  // namespace dlprim
