// SPDX-License-Identifier: MIT
// concat.copy: one strided copy per input, by kernels/engine/strided_copy.cl. Elements of any type
// are copied as raw bits.
#include "ops/concat/options.hpp"

namespace dlprim {

namespace {

class ConcatCopy : public Engine {
  public:
    std::string_view name() const override { return "concat.copy"; }
    std::string_view op() const override { return "Concat"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return concat::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem, static_cast<int>(problem.inputs.size()));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const std::vector<StridedCopy> copies = concat::copies(problem);
        const int output = static_cast<int>(copies.size());
        for (int i = 0; i < output; ++i)
            add_copy(*launch, context, copies[static_cast<std::size_t>(i)], i, output);
        return launch;
    }
    std::vector<std::string> sources() const override { return {strided_copy_source}; }
};

}  // namespace

std::unique_ptr<Engine> make_concat_copy() {
    return std::make_unique<ConcatCopy>();
}

}  // namespace dlprim
