// SPDX-License-Identifier: MIT
// StepBuilder: converts scheduled items to steps, with their launches.
#pragma once

#include "plan/choose.hpp"
#include "plan/plan.hpp"
#include "plan/schedule.hpp"
#include "plan/trust/trust.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace dlprim {

class StepBuilder {
  public:
    /// Keeps references to its arguments. Without `with_launches`, steps get no launch
    /// (PlanOptions::build).
    StepBuilder(ContextImpl& context, const Graph& graph, const std::vector<Choice>& choices,
                const Schedule& schedule, bool with_launches)
        : context_(context),
          graph_(graph),
          choices_(choices),
          schedule_(schedule),
          with_launches_(with_launches) {}

    /// Adds the engines that steps use, without their programs, to `uses`.
    void note_uses(std::vector<EngineUse>* uses) { uses_ = uses; }

    /// Requests the step's programs. While a NotedBuilds exists, they are not compiled yet. Throws
    /// EngineFailed if the item's engine cannot make its launch.
    Step build(const Item& item) const;

  private:
    const Stored& stored(int id) const { return schedule_.stored[static_cast<std::size_t>(id)]; }
    std::uint64_t bytes_of(int id) const { return stored(id).bytes; }
    void add_operand(Step& step, int id) const;
    void build_node(const Item& item, Step& step) const;
    void build_pack(const Item& item, Step& step) const;
    void build_reorder(const Item& item, Step& step) const;
    /// Makes the launch by step.engine. If that fails, other engines may work.
    void note_use(const Step& step, const Problem& problem, const Tuning& tuning) const;
    void build_launch(Step& step, const Problem& problem,
                      const std::function<std::unique_ptr<Launch>()>& build) const;

    ContextImpl& context_;
    const Graph& graph_;
    const std::vector<Choice>& choices_;
    const Schedule& schedule_;
    bool with_launches_;
    std::vector<EngineUse>* uses_ = nullptr;
};

}  // namespace dlprim
