// SPDX-License-Identifier: MIT
// conv2d.reference, conv2d_backward_data.reference, conv2d_backward_filter.reference: the engines
// that support every problem of float, half and bfloat16 images on every OpenCL device, and of
// doubles where the device has them (kernels/conv2d/reference.cl).
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/options.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/reference.cl";

class Reference : public ConvolutionEngine {
  public:
    Reference(const char* op, const char* kernel)
        : ConvolutionEngine(op, "reference"), kernel_(kernel) {}

    std::vector<std::string> sources() const override { return {source_path}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = types_verdict(device, problem); !verdict) return verdict;
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands)
                for (const std::int64_t size : operand.shape.dims())
                    if (size > std::numeric_limits<std::int32_t>::max())
                        return Verdict::no(
                            cat("it uses 32-bit indices for rows, columns and "
                                "channels, and a dimension is ",
                                size));
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double flops = Geometry::of(problem).flops();
        // Each work-item computes the sum of one element of the result.
        const double elements = static_cast<double>(problem.outputs[0].shape.numel());
        return std::max(
            roofline_seconds(device, problem, flops, device.wide_vectors ? 0.01 : 0.02, 0.1),
            serial_loop_seconds(device, flops / (2 * std::max(elements, 1.0))) +
                device.launch_us * 1e-6);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        const auto program = context.build(
            {source_path, with_epilogue(kernel_source(source_path), problem),
             is_double(problem) ? element_options(DType::f64) : image_options(problem, false)});
        const std::int64_t count = problem.outputs[0].shape.numel();
        std::size_t group = 64;
        while (group > context.traits().max_work_group) group /= 2;
        NDRange range;
        range.global[0] = (static_cast<std::size_t>(count) + group - 1) / group * group;
        range.local[0] = group;
        KernelCall call(program, kernel_, range);
        const int result = static_cast<int>(problem.inputs.size());
        const std::size_t first = size_of(problem.inputs[0].dtype),
                          second = size_of(problem.inputs[1].dtype),
                          made = size_of(problem.outputs[0].dtype);
        if (op() == forward_type) {
            const bool bias = has_bias(problem);
            call.tensor("x", 0, first).tensor("weight", 1, second);
            call.tensor("bias", bias ? 2 : 1, second);
            call.tensor("y", result, made).scalar("has_bias", std::int32_t(bias));
        } else if (backward_) {
            call.tensor("dy", 0, first).tensor("weight", 1, second).tensor("dx", result, made);
        } else {
            call.tensor("x", 0, first).tensor("dy", 1, second).tensor("dweight", result, made);
            call.size("batch", g.n);
        }
        call.scalar("count", count);
        call.sizes({{"in", g.in},
                    {"h", g.h},
                    {"w", g.w},
                    {"out", g.out},
                    {"oh", g.oh},
                    {"ow", g.ow},
                    {"kh", g.kh},
                    {"kw", g.kw},
                    {"groups", g.groups},
                    {"sh", g.sh},
                    {"sw", g.sw},
                    {"pt", g.pt},
                    {"pl", g.pl},
                    {"dh", g.dh},
                    {"dw", g.dw}});
        bind_epilogue(call, problem);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    static bool is_double(const Problem& problem) { return problem.inputs[0].dtype == DType::f64; }
    static Verdict types_verdict(const Traits& device, const Problem& problem) {
        if (!is_double(problem)) return image_verdict(problem);
        if (!problem.epilogue.empty())
            return Verdict::no("it does not support an epilogue of doubles");
        return one_float_type(device, problem, problem.inputs.size(), problem.outputs.size());
    }

    const char* kernel_;
};

}  // namespace

void add_reference_engines(EngineRegistry& registry) {
    registry.add(std::make_unique<Reference>(forward_type, "conv2d_forward"));
    registry.add(std::make_unique<Reference>(backward_data_type, "conv2d_backward_data"));
    registry.add(std::make_unique<Reference>(backward_filter_type, "conv2d_backward_filter"));
}

}  // namespace dlprim::conv2d
