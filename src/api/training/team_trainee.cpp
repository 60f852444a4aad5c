// SPDX-License-Identifier: MIT
// train_by_team(): the devices of a Team train, which may be only one.
#include "api/net_impl.hpp"
#include "api/solver_impl.hpp"
#include "api/training/train_ranks.hpp"
#include "api/training/trainee.hpp"
#include "collective/processes/process_group.hpp"

#include <dlprim/team.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

namespace dlprim {

namespace {

class TeamTrainee : public Trainee {
  public:
    TeamTrainee(const std::vector<Context>& contexts, const TrainCall& call,
                const TrainConfig& config, ProcessGroup* group,
                const std::function<Net(const Context&, int rank)>& open)
        : config_(config), group_(group), ranks_(contexts, call, config, group, open) {
        const auto open_first = [&](const Context& context, int rank) {
            Net net = open(context, rank);
            if (rank == 0 && call.memory) call.memory(ranks_.memory_of_first(net));
            return net;
        };
        SolverOptions solver = config.solver;
        solver.guard_loss = true;  // losses are read after the next step has started
        team_.emplace(ranks_.contexts(), open_first, solver, ranks_.team_options());
    }

    TrainedNet net() override { return team_->net(0); }
    TrainedSolver solver() override { return team_->solver(0); }
    Net& whole() override { return team_->net(0); }
    bool is_whole() const override { return true; }
    int shards() const override { return config_.solver.shards; }

    void attach(const Roles& roles, TracedSteps* trace) override {
        for (int rank = 0; rank < team_->size(); ++rank)
            steppers_.emplace_back(team_->net(rank), roles, team_->first_shard(rank),
                                   team_->shards(rank));
        if (trace != nullptr) trace->attach(*team_, ranks_.contexts(), ranks_.first());
    }
    void share_state() override { team_->share_state(); }
    std::vector<std::string> notes() override {
        std::vector<std::string> all = team_->notes();
        if (!ranks_.note().empty()) all.insert(all.begin(), ranks_.note());
        return all;
    }

    void set_learning_rate(double rate) override { team_->set_learning_rate(rate); }
    void step(Feeder& feeder, bool has_examples, StepTrace* trace) override {
        team_->step(
            [&](int rank, int shard) {
                TracePhases phases(trace, static_cast<std::size_t>(rank), TraceRow::host);
                phases.next(TraceKind::move, "upload input");
                if (has_examples) feeder.upload(team_->net(rank), shard, shards());
            },
            [&](int rank, int shard) { steppers_[static_cast<std::size_t>(rank)].keep(shard); });
    }
    Stepper::Outcome take() override {
        Stepper::Outcome whole = steppers_.front().take();  // every rank has the mean of losses
        for (std::size_t rank = 1; rank < steppers_.size(); ++rank) {
            const Stepper::Outcome part = steppers_[rank].take();
            whole.scores.insert(whole.scores.end(), part.scores.begin(), part.scores.end());
        }
        if (group_ == nullptr || whole.scores.empty()) return whole;
        std::string own(whole.scores.size() * sizeof(float), '\0');
        std::memcpy(own.data(), whole.scores.data(), own.size());
        whole.scores.clear();
        for (const std::string& part : group_->gather(own, "the outputs of a batch")) {
            const std::size_t before = whole.scores.size();
            whole.scores.resize(before + part.size() / sizeof(float));
            std::memcpy(whole.scores.data() + before, part.data(), part.size());
        }
        return whole;
    }
    Shape scores_shape() const override {
        Shape shape = steppers_.front().scores_shape();
        std::int64_t rows = 0;
        for (const Stepper& stepper : steppers_) rows += stepper.scores_shape()[0];
        int own = team_->shards(0);  // shards of this process
        for (int rank = 1; rank < team_->size(); ++rank) own += team_->shards(rank);
        if (group_ != nullptr && rows > 0) rows = rows / std::max(own, 1) * shards();
        return steppers_.size() == 1 && group_ == nullptr ? shape : shape.with(0, rows);
    }
    void call_off(int steps) override { team_->call_off(steps); }
    std::string first_nan(Feeder& feeder) override {
        for (int shard = 0; shard < shards(); ++shard) {
            feeder.upload(team_->net(0), shard, shards());
            Access::impl(team_->solver(0)).repeat_shard(shard);
            std::string origin = team_->net(0).first_nan();
            if (!origin.empty()) return origin;
        }
        return {};
    }

  private:
    const TrainConfig& config_;
    ProcessGroup* const group_;  ///< null for one process
    TrainRanks ranks_;
    std::optional<Team> team_;
    std::vector<Stepper> steppers_;  ///< by rank
};

}  // namespace

std::unique_ptr<Trainee> train_by_team(const std::vector<Context>& contexts, const TrainCall& call,
                                       const TrainConfig& config, ProcessGroup* group,
                                       const std::function<Net(const Context&, int rank)>& open) {
    return std::make_unique<TeamTrainee>(contexts, call, config, group, open);
}

}  // namespace dlprim
