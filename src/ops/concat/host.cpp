// SPDX-License-Identifier: MIT
// concat.host: one strided copy per input, by the host's threads. Elements of any type are copied
// as raw bits.
#include "ops/concat/options.hpp"

namespace dlprim {

namespace {

class HostConcat : public Engine {
  public:
    std::string_view name() const override { return "concat.host"; }
    std::string_view op() const override { return "Concat"; }
    bool on_host() const override { return true; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return concat::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem, static_cast<int>(problem.inputs.size()));
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [copies = concat::copies(problem)](HostPool& pool,
                                               std::span<const BufferRef> operands) {
                for (std::size_t i = 0; i < copies.size(); ++i)
                    host_copy(pool, copies[i], operands[i].host(), operands[copies.size()].host());
            });
    }
};

}  // namespace

std::unique_ptr<Engine> make_concat_host() {
    return std::make_unique<HostConcat>();
}

}  // namespace dlprim
