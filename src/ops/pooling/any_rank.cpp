// SPDX-License-Identifier: MIT
// pooling_nd.generic and pooling_nd_backward.generic: on OpenCL devices, in all float types.
// kernels/pooling/any_rank.cl has both kernels.
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "ops/pooling/engines.hpp"

namespace dlprim::pooling {

namespace {

class AnyRank : public AnyRankEngine {
  public:
    explicit AnyRank(bool backward)
        : AnyRankEngine(backward ? "pooling_nd_backward.generic" : "pooling_nd.generic", backward,
                        false) {}
    std::vector<std::string> sources() const override { return {"pooling/any_rank.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Windows w(problem);
        const bool positions = has_positions(problem);
        const std::uint64_t bytes = size_of(problem.inputs[0].dtype);
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return std::make_unique<KernelLaunch>();
        const std::string source = sources()[0];
        const std::string options =
            cat("-DAVERAGE=", w.average ? 1 : 0, " -DADAPTIVE=", w.adaptive ? 1 : 0,
                " -DINDEX=", positions ? 1 : 0, " -DINCLUDE=", w.count_include_pad ? 1 : 0,
                element_options(problem.inputs[0].dtype));
        KernelCall call(context.build({source, kernel_source(source), options}),
                        backward() ? "pool_backward" : "pool_forward",
                        line_range(context.traits(), count));
        // Where there are no positions, their argument is another operand, which is not read.
        const int result = backward() && positions ? 2 : 1, at = backward() ? 1 : 2;
        call.tensor(backward() ? "dy" : "x", 0, bytes)
            .tensor(backward() ? "dx" : "y", result, bytes)
            .tensor("idx", positions ? at : at - 1, positions ? size_of(DType::i64) : bytes);
        call.scalar("count", count).scalar("divisor", static_cast<std::int32_t>(w.divisor));
        set_sizes(call, w);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    static void set_sizes(KernelCall& call, const Windows& w) {
        const char* const names[] = {"d", "h", "w"};
        for (std::size_t i = 0; i < 3; ++i) {
            const Axis& a = w.axes[i];
            const std::pair<const char*, std::int64_t> sizes[] = {
                {"_in", a.in},   {"_out", a.out},     {"_kernel", a.kernel}, {"_stride", a.stride},
                {"_pad", a.pad}, {"_end", a.pad_end}, {"_dilate", a.dilate}};
            for (const auto& [name, value] : sizes)
                call.scalar(cat(names[i], name), static_cast<std::int32_t>(value));
        }
    }
};

}  // namespace

void add_any_rank_engines(EngineRegistry& engines) {
    for (const bool backward : {false, true}) engines.add(std::make_unique<AnyRank>(backward));
}

}  // namespace dlprim::pooling
