// SPDX-License-Identifier: MIT
// pointwise.host: threads interpret the program one instruction at a time over chunks of elements,
// so the compiler's vectorised loops do the arithmetic.
//
// The walk visits kept positions in the outer loops, unless the innermost dimension is kept. Sums
// are in double. Tasks depend only on the shape, so that results do not depend on the number of
// threads.
#include "base/text.hpp"
#include "engine/pointwise/host_run.hpp"
#include "ops/pointwise/engines.hpp"
#include "ops/pointwise/operator.hpp"

namespace dlprim::pointwise {
namespace {

class Host final : public PointwiseEngine {
  public:
    std::string_view name() const override { return "pointwise.host"; }
    bool on_host() const override { return true; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        std::vector<std::shared_ptr<HostJob>> jobs;
        for (Job& job : make_jobs(problem, true))
            jobs.push_back(std::make_shared<HostJob>(std::move(job)));
        return std::make_unique<HostLaunch>(
            [jobs](HostPool& pool, std::span<const BufferRef> operands) {
                for (const auto& job : jobs) job->run(pool, operands);
            });
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::pointwise
