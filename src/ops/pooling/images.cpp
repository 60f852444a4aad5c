// SPDX-License-Identifier: MIT
// pooling2d.generic and pooling2d.backward: plain windows and their gradient on OpenCL. GPUs
// compute strips of a column (kernels/pooling/strip.cl, backward_strip.cl), unless windows are too
// large. CPUs compute rows, and GPUs otherwise single elements (generic.cl, backward.cl).
#include "base/text.hpp"
#include "engine/storage.hpp"
#include "engine/work_group.hpp"
#include "ops/pooling/engines.hpp"

#include <algorithm>

namespace dlprim::pooling {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// A problem in the form that the kernels need. Keeps a reference to the problem.
class ImageKernels {
  public:
    ImageKernels(const Traits& device, const Problem& problem, bool backward, bool has_positions)
        : problem_(problem),
          backward_(backward),
          has_positions_(has_positions),
          rows_(device.wide_vectors),
          windows_(problem),
          view_(problem.outputs[0]),
          strip_(device.wide_vectors ? 0 : strip_height()) {}

    bool empty() const { return view_.outer == 0; }
    /// The call with everything but its tensors set. `group`: work-items of a work-group.
    KernelCall call(ContextImpl& context, std::int64_t group) const {
        return strip_ > 0 ? strip_call(context, group) : element_call(context, group);
    }

  private:
    std::int64_t strip_vector() const { return view_.inner % 4 == 0 ? 4 : 1; }
    std::int64_t strip_height() const;
    std::int64_t registers(std::int64_t rows) const;
    std::string defines(std::int64_t vector, std::int64_t count) const;
    std::string sizes(std::int64_t vector) const;
    KernelCall strip_call(ContextImpl& context, std::int64_t group) const;
    KernelCall element_call(ContextImpl& context, std::int64_t group) const;

    const Problem& problem_;
    bool backward_, has_positions_;
    bool rows_;  ///< whether a work-item of element_call() computes a row
    Windows windows_;
    View view_;
    std::int64_t strip_;  ///< elements of a column that a work-item computes; 0: no strips
};

/// 0 if the windows of a work-item would need too many registers.
std::int64_t ImageKernels::strip_height() const {
    const Axis& h = windows_.h();
    // In the gradient, a strip starts at a multiple of the stride.
    const std::int64_t step = backward_ ? h.stride : 1;
    constexpr std::int64_t all_registers = 64, all_rows = 16;
    const std::int64_t highest = std::max(step, std::int64_t{backward_ ? 8 : 4});
    if (highest > all_rows || registers(step) > all_registers) return 0;
    const std::int64_t rows = backward_ ? h.in + h.pad : h.out;
    std::int64_t height = step;
    while (height + step <= highest && height < rows && registers(height + step) <= all_registers)
        height += step;
    // Make strips lower, but no more of them, so that all have about the same height.
    return divide_up(divide_up(rows, divide_up(rows, height)), step) * step;
}

/// The number of values that a work-item keeps for a strip of `rows` elements: all that it reads.
std::int64_t ImageKernels::registers(std::int64_t rows) const {
    const Axis &h = windows_.h(), &w = windows_.w();
    if (!backward_) return ((rows - 1) * h.stride + h.kernel) * w.kernel * strip_vector();
    const std::int64_t windows =
        ((rows - 1) / h.stride + (h.kernel - 1) / h.stride + 1) * ((w.kernel - 1) / w.stride + 1);
    return windows * strip_vector() * (windows_.average ? 1 : 2);
}

std::string ImageKernels::defines(std::int64_t vector, std::int64_t count) const {
    const bool bytes = windows_.index_type(Positions::window) == DType::u8;
    return cat(
        "-DV=", vector, " -DAVERAGE=", windows_.average ? 1 : 0,
        " -DINCLUDE=", windows_.count_include_pad ? 1 : 0, " -DINDEX=", has_positions_ ? 1 : 0,
        " -DINDEX_T=", bytes ? "uchar" : "int",
        " -DCOUNT_T=", count_type(static_cast<std::size_t>(count)),
        storage_options({{'A', problem_.inputs[0].dtype}, {'C', problem_.outputs[0].dtype}}));
}

std::string ImageKernels::sizes(std::int64_t vector) const {
    const Axis &h = windows_.h(), &w = windows_.w();
    return cat(" -DIH=", h.in, " -DIW=", w.in, " -DOH=", h.out, " -DOW=", w.out,
               " -DLANES=", view_.inner / vector, " -DKERNEL_H=", h.kernel,
               " -DKERNEL_W=", w.kernel, " -DSTRIDE_H=", h.stride, " -DSTRIDE_W=", w.stride);
}

KernelCall ImageKernels::strip_call(ContextImpl& context, std::int64_t group) const {
    const Axis &h = windows_.h(), &w = windows_.w();
    const std::int64_t rows = backward_ ? h.in + h.pad : h.out, columns = backward_ ? w.in : w.out;
    const std::int64_t count =
        view_.outer * divide_up(rows, strip_) * columns * (view_.inner / strip_vector());
    const char* const file = backward_ ? "pooling/backward_strip.cl" : "pooling/strip.cl";
    const ProgramSource source{file, kernel_source(file),
                               cat(defines(strip_vector(), count), sizes(strip_vector()),
                                   " -DSTRIP=", strip_, " -DPAD_TOP=", h.pad, " -DPAD_LEFT=", w.pad,
                                   " -DPAD_BOTTOM=", h.pad_end, " -DPAD_RIGHT=", w.pad_end)};
    KernelCall call(context.build(source), backward_ ? "pool_backward_strip" : "pool_strip",
                    group_range(divide_up(count, group), group));
    call.scalar("count", count);
    return call;
}

KernelCall ImageKernels::element_call(ContextImpl& context, std::int64_t group) const {
    const Axis &h = windows_.h(), &w = windows_.w();
    std::int64_t vector = 1;
    for (std::int64_t v = rows_ ? 16 : 4; v > 2 && vector == 1; v /= 2)
        if (view_.inner % v == 0) vector = v;
    const std::int64_t lanes = view_.inner / vector;
    const std::int64_t height = backward_ ? h.in : h.out, width = backward_ ? w.in : w.out;
    const std::int64_t count = view_.outer * height * (rows_ ? 1 : width * lanes);
    // A training step needs both kernels. Maxima without positions have no gradient here.
    const bool both =
        rows_ && problem_.phase == Phase::training && (windows_.average || has_positions_);
    const char* const file = both        ? "pooling/training.cl"
                             : backward_ ? "pooling/backward.cl"
                                         : "pooling/generic.cl";
    // Sizes are constants, except for rows: these take so long that divisions do not matter, and
    // CPUs compile slowly.
    const ProgramSource source{file, kernel_source(file),
                               cat(defines(vector, count), " -DROWS=", rows_ ? 1 : 0,
                                   " -DSIZED=", rows_ ? 0 : 1, rows_ ? "" : sizes(vector))};
    KernelCall call(context.build(source), backward_ ? "pool_backward" : "pool",
                    group_range(divide_up(count, group), group));
    call.scalar("count", count);
    const std::pair<const char*, std::int64_t> arguments[] = {
        {"ih", h.in},     {"iw", w.in},      {"oh", h.out},    {"ow", w.out},    {"lanes", lanes},
        {"kh", h.kernel}, {"kw", w.kernel},  {"sh", h.stride}, {"sw", w.stride}, {"pt", h.pad},
        {"pl", w.pad},    {"pb", h.pad_end}, {"pr", w.pad_end}};
    for (const auto& [name, value] : arguments) call.scalar(name, static_cast<std::int32_t>(value));
    return call;
}

class OnImages : public ImageEngine {
  public:
    explicit OnImages(bool backward)
        : ImageEngine(backward ? "pooling2d.backward" : "pooling2d.generic", backward, false) {}

    /// "group": the work-items of a work-group. CPUs, whose work-items compute rows, do not have
    /// it.
    Tuning default_tuning(const Traits& device, const Problem&) const override {
        if (device.wide_vectors) return {};
        return {{"group", usual_group(device)}};
    }
    TuneSpace tune_space(const Traits& device, const Problem&) const override {
        if (device.wide_vectors) return {};
        return {{"group", group_sizes(device)}};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const bool positions = has_positions(problem);
        const ImageKernels kernels(context.traits(), problem, backward(), positions);
        if (kernels.empty()) return std::make_unique<KernelLaunch>();
        KernelCall call = kernels.call(context, tuning.empty() ? 1 : tuning.at("group"));
        // Where there are no positions, their argument is another operand, which is not read.
        const int result = backward() && positions ? 2 : 1;
        const int at = positions ? (backward() ? 1 : 2) : backward() ? 0 : 1;
        const Operand& operand = backward() ? problem.inputs.back() : problem.outputs.back();
        call.tensor(backward() ? "dy" : "x", 0, size_of(problem.inputs[0].dtype))
            .tensor(backward() ? "dx" : "y", result, size_of(problem.outputs[0].dtype))
            .tensor("idx", at, size_of(operand.dtype));
        return std::make_unique<KernelLaunch>(std::move(call));
    }
    std::vector<std::string> sources() const override {
        if (backward()) return {"pooling/backward.cl", "pooling/backward_strip.cl"};
        return {"pooling/generic.cl", "pooling/strip.cl"};
    }
};

}  // namespace

void add_image_engines(EngineRegistry& engines) {
    for (const bool backward : {false, true}) engines.add(std::make_unique<OnImages>(backward));
}

}  // namespace dlprim::pooling
