// SPDX-License-Identifier: MIT
// StepBuilder: converts scheduled items to steps, with their launches.
#pragma once

#include "plan/choose.hpp"
#include "plan/launch_schedule.hpp"
#include "plan/plan.hpp"
#include "plan/trust/trust.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class StepBuilder {
  public:
    /// Keeps references to its arguments. Without `with_launches`, steps get no launch
    /// (PlanOptions::build).
    StepBuilder(ContextImpl& context, const Graph& graph, const std::vector<Choice>& choices,
                const LaunchSchedule& schedule, bool with_launches)
        : context_(context),
          graph_(graph),
          choices_(choices),
          schedule_(schedule),
          with_launches_(with_launches) {}

    /// Adds the engines that steps use, without their programs, to `uses`: those of a launch once.
    void note_uses(std::vector<EngineUse>* uses) { uses_ = uses; }

    /// Requests the step's programs. While a NotedBuilds exists, they are not compiled yet. Throws
    /// EngineFailed if the item's engine cannot make its launch.
    Step build(const Item& item);

  private:
    /// Who computes what: an engine the problem, or the packed form of its input `packed`.
    struct Work {
        const Engine* engine;
        const Problem& problem;
        const Tuning& tuning;
        int packed = -1;
    };
    struct Made {
        const Engine* engine;
        Tuning tuning;
        int packed;
        std::shared_ptr<Launch> launch;
        std::shared_ptr<const Problem> problem;
    };
    const Stored& stored(int id) const { return schedule_.stored[static_cast<std::size_t>(id)]; }
    std::uint64_t bytes_of(int id) const { return stored(id).bytes; }
    void add_operand(Step& step, int id) const;
    void build_node(const Item& item, Step& step);
    void build_pack(const Item& item, Step& step);
    void build_reorder(const Item& item, Step& step);
    /// Sets the step's engine and launch, which it may share with an earlier step of the same work.
    /// Throws EngineFailed: other engines may work.
    void find_launch(Step& step, const Work& work);
    std::unique_ptr<Launch> make_launch(const Step& step, const Work& work) const;
    bool may_share(const Launch& launch) const;

    ContextImpl& context_;
    const Graph& graph_;
    const std::vector<Choice>& choices_;
    const LaunchSchedule& schedule_;
    bool with_launches_;
    std::vector<EngineUse>* uses_ = nullptr;
    ProblemMap<std::vector<Made>> made_;
};

}  // namespace dlprim
