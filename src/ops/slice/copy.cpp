// SPDX-License-Identifier: MIT
// slice.copy: one strided copy by kernels/engine/strided_copy.cl. Elements of any type are copied
// as raw bits.
#include "ops/slice/options.hpp"

namespace dlprim {

namespace {

class SliceCopy : public Engine {
  public:
    std::string_view name() const override { return "slice.copy"; }
    std::string_view op() const override { return "Slice"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return slice::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        add_copy(*launch, context, slice::copy(problem), 0, 1);
        return launch;
    }
    std::vector<std::string> sources() const override { return {strided_copy_source}; }
};

}  // namespace

std::unique_ptr<Engine> make_slice_copy() {
    return std::make_unique<SliceCopy>();
}

}  // namespace dlprim
