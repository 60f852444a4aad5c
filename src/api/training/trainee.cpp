// SPDX-License-Identifier: MIT
// Trainee.
#include "api/training/trainee.hpp"

#include "api/solver_core.hpp"
#include "base/text.hpp"
#include "collective/processes/process_group.hpp"

#include <algorithm>

namespace dlprim {

void check_placed(const TrainCall& call, const TrainConfig& config) {
    require(call.processes.size() <= 1,
            "a network whose operators are on several devices is trained by one process, and ",
            call.processes.size(),
            " were started: start one, which takes all devices of its host, or leave the names of "
            "devices out, so that each process trains the whole network on a device of its own");
    require(call.shards_of_devices.empty() && !call.measure_shards,
            "devices of a placed network have operators, and not shards of their own: leave "
            "out how many shards each device has");
    if (config.sharded_states)
        fail(ErrorKind::format, config.name,
             ": \"states\": \"sharded\" is for devices that each train the whole network, and the "
             "operators of this one are on several: leave it out, since each device has the "
             "solver's state of its operators alone");
}

Trainee::Trainee(const std::vector<Context>& contexts, const TrainCall& call,
                 const TrainConfig& config, ProcessGroup* group, bool is_placed,
                 const std::function<Net(const Context&, int rank)>& open)
    : config_(config), group_(group), ranks_(contexts, call, config, group, is_placed, open) {
    const auto open_first = [&](const Context& context, int rank) {
        Net net = open(context, rank);
        if (rank == 0 && !is_placed && call.memory) call.memory(ranks_.memory_of_first(net));
        return net;
    };
    SolverOptions solver = config.solver;
    solver.guard_loss = true;  // losses are read after the next step has started
    team_.emplace(ranks_.contexts(), open_first, solver, ranks_.team_options());
}

void Trainee::attach(const Roles& roles, TracedSteps* trace) {
    for (int rank = 0; rank < team_->size(); ++rank)
        steppers_.emplace_back(team_->net(rank), team_->solver(rank), roles,
                               team_->first_shard(rank) + team_->shards(rank) - 1);
    if (trace != nullptr) trace->attach(*team_, ranks_.contexts(), ranks_.first());
}

std::vector<std::string> Trainee::notes() {
    std::vector<std::string> all = team_->notes();
    if (!ranks_.note().empty()) all.insert(all.begin(), ranks_.note());
    return all;
}

void Trainee::step(Feeder& feeder, bool has_examples, StepTrace* trace) {
    team_->step(
        [&](int rank, int shard) {
            TracePhases phases(trace, static_cast<std::size_t>(rank), TraceRow::host);
            phases.next(TraceKind::move, "upload input");
            if (has_examples) feeder.upload(team_->net(rank), shard, shards());
        },
        [&](int rank, int shard) { steppers_[static_cast<std::size_t>(rank)].keep(shard); });
}

Stepper::Outcome Trainee::take() {
    Stepper::Outcome whole = steppers_.front().take();  // every rank has the mean of losses
    for (std::size_t rank = 1; rank < steppers_.size(); ++rank) {
        const Stepper::Outcome part = steppers_[rank].take();
        whole.scores.insert(whole.scores.end(), part.scores.begin(), part.scores.end());
    }
    if (group_ != nullptr && !whole.scores.empty())
        whole.scores = group_->gather(whole.scores, "the outputs of a batch");
    return whole;
}

Shape Trainee::scores_shape() const {
    Shape shape = steppers_.front().scores_shape();
    std::int64_t rows = 0;
    for (const Stepper& stepper : steppers_) rows += stepper.scores_shape()[0];
    int own = team_->shards(0);  // shards of this process
    for (int rank = 1; rank < team_->size(); ++rank) own += team_->shards(rank);
    if (group_ != nullptr && rows > 0) rows = rows / std::max(own, 1) * shards();
    return steppers_.size() == 1 && group_ == nullptr ? shape : shape.with(0, rows);
}

std::string Trainee::first_nan(Feeder& feeder) {
    for (int shard = 0; shard < shards(); ++shard) {
        feeder.upload(net(), shard, shards());
        std::string origin = core_of(solver()).first_nan_of_shard(shard);
        if (!origin.empty()) return origin;
    }
    return {};
}

}  // namespace dlprim
