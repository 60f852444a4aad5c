// SPDX-License-Identifier: MIT
// The kernels of strips: the height of a strip, and the calls; see strip.hpp.
#include "ops/pooling2d/strip.hpp"

#include "base/text.hpp"
#include "engine/storage.hpp"

#include <algorithm>

namespace dlprim::pooling2d {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

}  // namespace

Strip::Strip(const Traits& device, const Problem& problem, bool backward)
    : problem_(problem),
      backward_(backward),
      options_(problem.attrs),
      x_((backward ? problem.outputs : problem.inputs)[0].shape),
      y_((backward ? problem.inputs : problem.outputs)[0].shape) {
    const Operand& result = problem.outputs[0];
    const View view(result.shape, result.layout);
    outer_ = view.outer;
    vector_ = view.inner % 4 == 0 ? 4 : 1;
    lanes_ = view.inner / vector_;
    if (device.wide_vectors || device.host) return;
    // In the gradient, a strip starts at a multiple of the stride.
    const std::int64_t step = backward ? options_.stride[0] : 1;
    constexpr std::int64_t all_registers = 64, all_rows = 16;
    const std::int64_t highest = std::max(step, std::int64_t{backward ? 8 : 4});
    if (highest > all_rows || registers(step) > all_registers) return;
    const std::int64_t rows = backward ? x_[2] + options_.pad[0] : y_[2];
    height = step;
    while (height + step <= highest && height < rows && registers(height + step) <= all_registers)
        height += step;
    // Make strips lower, but no more of them, so that all have about the same height.
    height = divide_up(divide_up(rows, divide_up(rows, height)), step) * step;
}

/// The number of values that a work-item keeps for a strip of `rows` elements: all that it reads.
std::int64_t Strip::registers(std::int64_t rows) const {
    const auto [kh, kw] = options_.kernel;
    const auto [sh, sw] = options_.stride;
    if (!backward_) return ((rows - 1) * sh + kh) * kw * vector_;
    const std::int64_t windows = ((rows - 1) / sh + (kh - 1) / sh + 1) * ((kw - 1) / sw + 1);
    return windows * vector_ * (options_.average ? 1 : 2);
}

std::string Strip::defines(std::size_t count) const {
    const bool bytes = options_.index_type() == DType::u8;
    return cat(
        "-DV=", vector_, " -DSTRIP=", height, " -DLANES=", lanes_,
        " -DAVERAGE=", options_.average ? 1 : 0, " -DINCLUDE=", options_.count_include_pad ? 1 : 0,
        " -DINDEX_T=", bytes ? "uchar" : "int", " -DCOUNT_T=", count_type(count), " -DIH=", x_[2],
        " -DIW=", x_[3], " -DOH=", y_[2], " -DOW=", y_[3], " -DKERNEL_H=", options_.kernel[0],
        " -DKERNEL_W=", options_.kernel[1], " -DSTRIDE_H=", options_.stride[0],
        " -DSTRIDE_W=", options_.stride[1], " -DPAD_TOP=", options_.pad[0],
        " -DPAD_LEFT=", options_.pad[1], " -DPAD_BOTTOM=", options_.pad[2],
        " -DPAD_RIGHT=", options_.pad[3],
        storage_options({{'A', problem_.inputs[0].dtype}, {'C', problem_.outputs[0].dtype}}));
}

KernelCall Strip::call(ContextImpl& context, const std::string& more, std::int64_t group) const {
    const std::int64_t rows = backward_ ? x_[2] + options_.pad[0] : y_[2];
    const std::int64_t columns = backward_ ? x_[3] : y_[3];
    const std::int64_t count = outer_ * divide_up(rows, height) * columns * lanes_;
    const char* const file = backward_ ? "pooling2d/backward_strip.cl" : "pooling2d/strip.cl";
    const ProgramSource source{file, kernel_source(file),
                               cat(defines(static_cast<std::size_t>(count)), more)};
    KernelCall result(context.build(source), backward_ ? "pool_backward_strip" : "pool_strip",
                      group_range(divide_up(count, group), group));
    result.scalar("count", count);
    return result;
}

}  // namespace dlprim::pooling2d
