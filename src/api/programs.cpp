// SPDX-License-Identifier: MIT
// planned_programs(): collects the programs of a plan whose launches are made and not compiled.
// write_programs(): the files of the caches, in another folder.
#include <dlprim/programs.hpp>

#include "api/net_impl.hpp"
#include "plan/plan.hpp"
#include "plan/trust/trust_store.hpp"
#include "runtime/access.hpp"
#include "runtime/binary_cache.hpp"
#include "runtime/shipped_programs.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace dlprim {

namespace {

class Collector {
  public:
    void add(const Step& step, const char* part) {
        if (!step.launch) return;
        for (const KernelCall& call : step.launch->reported_calls()) {
            NDRange range = call.range();
            for (std::size_t d = 0; d < 3; ++d) {
                if (d >= static_cast<std::size_t>(range.dims)) range.global[d] = 1;
                if (d > 0 && range.local[0] > 0)
                    range.local[d] = std::max<std::size_t>(1, range.local[d]);
            }
            const std::string engine(step.engine == nullptr ? "" : step.engine->name());
            program_of(call.source())
                .kernels.push_back(
                    {call.kernel(), step.name, step.type, engine, part, range.global, range.local});
        }
    }
    std::vector<PlannedProgram> take() { return std::move(programs_); }

  private:
    PlannedProgram& program_of(const ProgramSource& source) {
        const auto [at, is_new] =
            known_.try_emplace({source.options, source.source}, programs_.size());
        if (is_new) programs_.push_back({source.name, source.source, source.options, {}});
        return programs_[at->second];
    }

    std::vector<PlannedProgram> programs_;
    std::map<std::pair<std::string, std::string>, std::size_t> known_;
};

}  // namespace

std::vector<PlannedProgram> planned_programs(const Net& net, const SolverOptions* solver) {
    const BuildsLater later;
    const std::unique_ptr<Plan> plan = Access::impl(net).plan_step(solver, true);
    Collector all;
    for (const Step& step : plan->setup) all.add(step, "setup");
    for (const Step& step : plan->steps) all.add(step, name_of(step.part));
    return all.take();
}

std::size_t write_programs(const Context& context, const std::string& folder) {
    const std::filesystem::path to(folder);
    ContextImpl& impl = Access::impl(context);
    impl.require_runs();
    context.finish();
    const std::size_t written = write_programs_of(impl, BinaryCache(to / "kernels"));
    TrustStore::of(impl).write(to);
    return written;
}

}  // namespace dlprim
