// SPDX-License-Identifier: MIT
// train_placed(): the operators of one network train on several devices.
#include "api/placement/placed_solver_impl.hpp"
#include "api/training/initial.hpp"
#include "api/training/trainee.hpp"
#include "base/text.hpp"

#include <optional>

namespace dlprim {

namespace {

void check(const TrainCall& call, const TrainConfig& config) {
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

class PlacedTrainee : public Trainee {
  public:
    PlacedTrainee(const std::vector<NamedDevice>& devices, const TrainCall& call,
                  const TrainConfig& config, const NetOptions& options)
        : shards_(config.solver.shards),
          net_(open(devices, call, config, options)),
          solver_(net_, guarded(config.solver)),
          whole_(open_training_net(devices.front().context, config, options)) {}

    TrainedNet net() override { return net_; }
    TrainedSolver solver() override { return solver_; }
    Net& whole() override { return whole_; }
    bool is_whole() const override { return false; }
    int shards() const override { return shards_; }

    void attach(const Roles& roles, TracedSteps* trace) override {
        if (trace != nullptr) trace->attach(net_);
        stepper_.emplace(net_, solver_, roles);
    }
    void share_state() override {}
    std::vector<std::string> notes() override { return {}; }

    void set_learning_rate(double rate) override { solver_.set_learning_rate(rate); }
    void step(Feeder& feeder, bool has_examples, StepTrace* trace) override {
        for (int shard = 0; shard < shards_; ++shard) {
            {
                TracePhases phases(trace, 0, TraceRow::host);
                phases.next(TraceKind::move, shards_ > 1 ? "take input" : "upload input");
                if (has_examples) feeder.upload(net_, shard, shards_);
            }
            solver_.step();
        }
        stepper_->keep(0);
    }
    Stepper::Outcome take() override { return stepper_->take(); }
    Shape scores_shape() const override { return stepper_->scores_shape(); }
    void call_off(int steps) override { solver_.call_off(steps); }
    std::string first_nan(Feeder& feeder) override {
        for (int shard = 0; shard < shards_; ++shard) {
            feeder.upload(net_, shard, shards_);
            std::string origin = Access::impl(solver_).first_nan_of_shard(shard);
            if (!origin.empty()) return origin;
        }
        return {};
    }

  private:
    /// Losses are read after the next step has started.
    static SolverOptions guarded(SolverOptions options) {
        options.guard_loss = true;
        return options;
    }
    static PlacedNet open(const std::vector<NamedDevice>& devices, const TrainCall& call,
                          const TrainConfig& config, const NetOptions& options) {
        check(call, config);
        PlacementOptions placement = call.placement;
        placement.solver = config.solver;
        PlacedNet net = open_placed_net(devices, config, options, placement);
        if (call.memory_of_devices) call.memory_of_devices(net, net.plan_memory(&config.solver));
        return net;
    }

    const int shards_;
    PlacedNet net_;
    PlacedSolver solver_;
    Net whole_;  ///< is never planned
    std::optional<Stepper> stepper_;
};

}  // namespace

std::unique_ptr<Trainee> train_placed(const std::vector<NamedDevice>& devices,
                                      const TrainCall& call, const TrainConfig& config,
                                      const NetOptions& options) {
    return std::make_unique<PlacedTrainee>(devices, call, config, options);
}

}  // namespace dlprim
