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

class HostProgram final : public Launch {
  public:
    HostProgram(std::vector<HostJob> jobs, std::size_t scalars)
        : jobs_(std::move(jobs)), scalars_(scalars) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        queue.run([&](HostPool& pool) {
            for (const HostJob& job : jobs_) job.run(pool, operands, scalars_);
        });
    }
    void set_scalars(std::span<const Scalar> values) override {
        if (!scalars_.empty()) scalars_.assign(values.begin(), values.end());
    }

  private:
    std::vector<HostJob> jobs_;
    std::vector<Scalar> scalars_;  ///< of the run, where they are arguments
};

class Host final : public PointwiseEngine {
  public:
    Host() : PointwiseEngine("pointwise.host", true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        std::vector<HostJob> jobs;
        for (Job& job : make_jobs(problem, true)) jobs.emplace_back(std::move(job));
        return std::make_unique<HostProgram>(std::move(jobs), arguments_of(problem.attrs).size());
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::pointwise
