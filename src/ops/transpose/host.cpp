// SPDX-License-Identifier: MIT
// transpose.host: one strided copy by the host's threads. Elements of any type are copied as raw
// bits.
#include "ops/transpose/options.hpp"

namespace dlprim {

namespace {

class HostTranspose : public Engine {
  public:
    std::string_view name() const override { return "transpose.host"; }
    std::string_view op() const override { return "Transpose"; }
    bool on_host() const override { return true; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [copy = transpose::copy(problem)](HostPool& pool, std::span<const BufferRef> operands) {
                host_copy(pool, copy, operands[0].host(), operands[1].host());
            });
    }
};

}  // namespace

std::unique_ptr<Engine> make_transpose_host() {
    return std::make_unique<HostTranspose>();
}

}  // namespace dlprim
