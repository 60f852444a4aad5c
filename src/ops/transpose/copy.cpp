// SPDX-License-Identifier: MIT
// transpose.copy: one strided copy by kernels/engine/strided_copy.cl. Elements of any type are
// copied as raw bits.
#include "ops/transpose/options.hpp"

namespace dlprim {

namespace {

class TransposeCopy : public Engine {
  public:
    std::string_view name() const override { return "transpose.copy"; }
    std::string_view op() const override { return "Transpose"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        add_copy(*launch, context, transpose::copy(problem), 0, 1);
        return launch;
    }
    std::vector<std::string> sources() const override { return {strided_copy_source}; }
};

}  // namespace

std::unique_ptr<Engine> make_transpose_copy() {
    return std::make_unique<TransposeCopy>();
}

}  // namespace dlprim
