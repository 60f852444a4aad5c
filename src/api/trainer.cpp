// SPDX-License-Identifier: MIT
// train(): opens net, data and folder of a task, and runs epoch after epoch.
#include <dlprim/trainer.hpp>

#include "api/checkpoint_record.hpp"
#include "api/solver_core.hpp"
#include "api/training/checkpoints.hpp"
#include "api/training/common_start.hpp"
#include "api/training/epoch.hpp"
#include "api/training/evaluator.hpp"
#include "api/training/feeder.hpp"
#include "api/training/run_folder.hpp"
#include "api/training/run_report.hpp"
#include "api/training/run_state.hpp"
#include "api/training/task.hpp"
#include "api/training/traced_steps.hpp"
#include "api/training/trainee.hpp"
#include "base/text.hpp"
#include "collective/processes/process_group.hpp"
#include "formats/event_file.hpp"
#include "train/config.hpp"

#include <dlprim/net.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

/// Thrown by planning when the run is asked to stop.
struct StoppedWhilePlanning {};

class Trainer {
  public:
    Trainer(const std::vector<Context>& contexts, const std::vector<NamedDevice>& devices,
            const TrainCall& call, TrainTask& task)
        : call_(call),
          task_(task),
          group_(group_of(call)),
          config_(task.config()),
          contexts_(contexts),
          devices_(devices),
          folder_(call.out, group_ == nullptr || group_->rank() == 0),
          from_(common_resume(call, folder_)),
          feeder_(config_, task.data()),
          state_(Schedule(config_.schedule, config_.solver.learning_rate, config_.epochs),
                 task.settings()),
          checkpoints_(config_.checkpoints, folder_, call.note) {
        require(!contexts_.empty(), "train() needs a device");
        require(group_ == nullptr || contexts_.size() == 1 || !devices_.empty(),
                "this process is one of ", call_.processes.size(), " and is given ",
                contexts_.size(), " devices: each process has one");
        if (!call.trace.empty()) trace_.emplace(call, call.processes.rank(), call.processes.size());
        open();
    }

    TrainResult run() {
        try {
            enter_folder();
            while (!is_over()) {
                if (!run_epoch()) return stopped();
            }
        } catch (const Error& error) {
            // The others are told at once, since what this process leaves now may wait for them.
            if (group_ != nullptr)
                Processes(call_.processes).failed(error.what(), exit_code_of(error));
            if (report_) report_->fail(error.what());
            finish_trace(false);
            throw;
        } catch (...) {  // of the caller's own functions
            finish_trace(false);
            throw;
        }
        finish_trace(true);
        if (report_) report_->end("finished");
        if (!by_first(checkpoints_.is_saved(state_))) checkpoints_.save(state_, solver());
        tell_after();
        if (config_.solver.average > 0 && solver().steps() > 0) solver().use_averages();
        TrainResult result = result_so_far();
        result.model = is_first() ? task_.save(net(), folder_, feeder_.preprocessing())
                                  : folder_.file("model.h5");
        return result;
    }

  private:
    void open() {
        NetOptions options;
        options.mode = Mode::training;
        options.seed = config_.seed;
        set_precision(options);
        options.progress = planning();
        open_evaluator(options);
        NetOptions limited = options;
        limited.memory_limit = call_.memory_limit > 0
                                   ? call_.memory_limit
                                   : static_cast<std::uint64_t>(config_.memory_limit * (1 << 20));
        open_trainee(limited);
        open_evaluator(options);
        const Roles roles = task_.roles(net());
        initial_notes_ = task_.set_initial_values(net(), call_.read_weights);
        task_.set_fixed_inputs(net());
        trainee_->attach(roles, trace_ ? &*trace_ : nullptr);
        feeder_.attach(net(), roles);
        if (group_ != nullptr) group_->agree(fields_of(feeder_));
        state_.batches = feeder_.batches();
        state_.history.metrics = task_.metrics(roles, feeder_.data().target_kind());
        state_.history.tested = feeder_.has_test();
        state_.sums.judges = Judges(state_.history.metrics);
        judging_.emplace(config_, state_.history.metrics);
        if (evaluator_) {
            task_.set_fixed_inputs(evaluator_->net());
            evaluator_->attach(net(), roles, state_.history.metrics, config_.report.mistakes);
        }
        if (!is_first()) return;
        report_.emplace(RunReport::Parts{contexts_, config_, call_, folder_, state_, feeder_,
                                         evaluator_ ? &*evaluator_ : nullptr},
                        net());
    }

    void open_trainee(const NetOptions& options) {
        const bool is_placed = !devices_.empty();
        if (is_placed) check_placed(call_, config_);
        trainee_.emplace(is_placed ? std::vector{devices_.front().context} : contexts_, call_,
                         config_, group_, is_placed, [&](const Context& context, int rank) {
                             NetOptions own = options;
                             if (rank > 0) own.progress = {};  // the first one tells of all
                             return is_placed ? open_placed(own) : task_.open_net(context, own);
                         });
    }

    Net open_placed(const NetOptions& options) {
        PlacementOptions placement = call_.placement;
        placement.solver = config_.solver;
        PlacedNet net = open_placed_net(devices_, config_, options, placement);
        if (call_.memory_of_devices) call_.memory_of_devices(net, net.plan_memory(&config_.solver));
        return net;
    }

    /// On one device before the net that is trained, and else on the devices of its operators.
    void open_evaluator(NetOptions options) {
        if (!feeder_.has_test() || !is_first() || evaluator_) return;
        options.mode = Mode::inference;
        if (devices_.empty())
            evaluator_.emplace(task_.open_net(contexts_[0], options), feeder_);
        else if (trainee_)
            evaluator_.emplace(open_placed_net(devices_, config_, options, {},
                                               core_of(net()).devices_of_operators()),
                               feeder_);
    }

    /// Whether this is the process that writes results.
    bool is_first() const { return group_ == nullptr || group_->rank() == 0; }

    Net& net() { return trainee_->net(); }
    Solver& solver() { return trainee_->solver(); }

    /// Sets the precisions. The command line takes precedence over the checkpoint's record, and
    /// that over the configuration.
    void set_precision(NetOptions& options) const {
        CheckpointRecord made;
        if (!from_.path.empty()) made = read_record(Hdf5Reader(from_.path));
        const Precision otherwise = config_.precision.value_or(options.precision);
        options.precision = call_.precision.value_or(made.precision.value_or(otherwise));
        options.precisions.assign(made.precisions.begin(), made.precisions.end());
        options.precisions.insert(options.precisions.end(), call_.precisions.begin(),
                                  call_.precisions.end());
    }

    std::function<void(std::string_view, int, int)> planning() {
        if (!call_.request) return call_.planning;
        return [this](std::string_view what, int done, int total) {
            if (call_.planning) call_.planning(what, done, total);
            if (is_stopped()) throw StoppedWhilePlanning{};
        };
    }

    bool is_stopped() {
        if (!stopped_) stopped_ = call_.request && call_.request() == TrainRequest::stop;
        return stopped_;
    }

    /// Whether to pause before the next step, for a checkpoint or for ever. Of several processes
    /// any may be asked to stop, and the first one's clock says when to save.
    bool pauses(std::int64_t batches_done) {
        const bool due = checkpoints_.is_due(state_, batches_done);
        if (group_ == nullptr) {
            stops_ = is_stopped();
            return stops_ || due;
        }
        struct Wish {
            std::uint8_t stops, saves;
        } const own{is_stopped(), due};
        std::vector<Wish> all(group_->size());
        group_->allgather(&own, sizeof(own), all.data(), "whether to go on");
        for (const Wish& wish : all) stops_ = stops_ || wish.stops != 0;
        return stops_ || all[0].saves != 0;
    }

    /// What the first process finds, where all must do the same: a checkpoint may consist of parts
    /// that each of them has.
    bool by_first(bool own) const {
        if (group_ == nullptr || !config_.sharded_states) return own;
        return group_->share(own ? "1" : "0", "whether to save") == "1";
    }

    /// Judges the net by the test set. Nothing if the run is to stop before the end of that.
    std::optional<Evaluator::Result> judge() {
        std::optional<Evaluator::Result> result;
        // All processes put them together where each has a part.
        const std::map<std::string, Tensor> averages =
            core_of(solver()).averages(SolverCore::Receivers::first);
        if (is_first()) result = evaluator_->run(net(), averages, [this] { return is_stopped(); });
        if (group_ == nullptr) return result;
        std::vector<double> values;
        if (result) {
            values.push_back(result->loss);
            values.insert(values.end(), result->metrics.begin(), result->metrics.end());
        }
        values = group_->share(values, "what the test set says");
        if (values.empty()) return std::nullopt;
        return Evaluator::Result{values[0], {values.begin() + 1, values.end()}};
    }

    void note(const std::string& text) const {
        if (call_.note) call_.note(text);
    }

    /// Makes the folder, goes on from the checkpoint if there is one, and removes what the run
    /// replaces.
    void enter_folder() {
        folder_.make();
        for (const std::string& text : from_.notes) note(text);
        if (!from_.path.empty()) {
            const std::string changed = load_run(from_.path, call_.out, state_, solver());
            checkpoints_.resumed_from(from_, state_);
            if (report_) report_->go_on();
            if (!changed.empty()) note(changed);
        }
        if (from_.path.empty())
            for (const std::string& text : initial_notes_) note(text);
        if (group_ != nullptr) group_->barrier("the checkpoint to be read by all");
        checkpoints_.clear_way(from_, state_);
        trainee_->share_state();
        for (const std::string& text : trainee_->notes()) note(text);
        for (const std::string& text : feeder_.notes_before()) note(text);
        if (evaluator_ && &evaluator_->feeder().data() != &feeder_.data())
            for (const std::string& text : evaluator_->feeder().notes_before()) note(text);
        for (const std::string& text : net().notes()) note(text);
        const Precision precision = net().options().precision;
        if (!call_.precision && config_.precision.value_or(precision) != precision)
            note(cat("'", from_.path, "' continues in ", name_of(precision),
                     ", in which it was trained, although the configuration says ",
                     name_of(*config_.precision)));
    }

    void tell_after() const {
        for (const std::string& text : feeder_.notes_after()) note(text);
        if (!evaluator_) return;
        for (const std::string& text : evaluator_->feeder().notes_after()) note(text);
    }

    bool is_over() const {
        return state_.epochs_done >= config_.epochs || judging_->is_enough(state_);
    }

    /// Runs what is left of an epoch. Returns false if the run was asked to stop before its end.
    bool run_epoch() {
        const auto begin = std::chrono::steady_clock::now();
        const double before = state_.sums.seconds;
        const auto count_seconds = [&] {
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
            state_.sums.seconds = before + passed.count();
        };
        Epoch epoch({*trainee_, feeder_, trace_ ? &*trace_ : nullptr}, config_, state_);
        const auto tell = [&](const TrainProgress& progress) {
            if (report_) report_->progress(progress);
            if (call_.progress) call_.progress(progress);
        };
        const auto pause = [&](std::int64_t batches_done) { return pauses(batches_done); };
        while (epoch.run(tell, pause)) {
            if (trace_) trace_->interrupt();
            count_seconds();
            if (stops_) return false;
            checkpoints_.save(state_, solver());
        }
        if (trace_) trace_->interrupt();
        EpochMetrics metrics = epoch.metrics();
        if (const std::int64_t skipped = state_.batches - state_.sums.counted; skipped > 0)
            note(cat("epoch ", state_.epochs_done + 1, ": ", skipped, " of ", state_.batches,
                     skipped == 1 ? " batches was" : " batches were",
                     " skipped, since the loss was not finite"));
        if (state_.history.tested) {
            const auto test = judge();
            count_seconds();
            if (!test) return false;
            metrics.test_loss = test->loss;
            metrics.test = test->metrics;
        }
        count_seconds();
        metrics.seconds = state_.sums.seconds;
        finish_epoch(metrics);
        if (call_.progress) call_.progress(epoch.done(metrics));
        return true;
    }

    void finish_epoch(const EpochMetrics& metrics) {
        state_.history.epochs.push_back(metrics);
        ++state_.epochs_done;
        state_.batches_done = 0;
        state_.sums.restart();
        state_.schedule.report(state_.history.tested ? metrics.test_loss : metrics.train_loss);
        const bool best = judging_->take(metrics, state_);
        if (is_first()) write_results();
        if (by_first(checkpoints_.is_due_after_epoch(state_) || is_over()))
            checkpoints_.save(state_, solver());
        if (best && config_.checkpoints.keep_best) checkpoints_.save_best(state_, solver());
        if (judging_->is_enough(state_)) note(judging_->reason(state_));
    }

    void write_results() {
        try {
            write_metrics(folder_.path(), state_.history);
            write_event();
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::io) throw;
            note(cat(error.what(), "; the training goes on"));
        }
        try {
            if (devices_.empty()) report_->examine(net());
        } catch (const StoppedWhilePlanning&) {
            // The epoch is saved as any other. What the callback saw, the next epoch finds.
        }
        report_->epoch_done(is_over());
    }

    /// The last epoch for TensorBoard.
    void write_event() {
        if (!config_.events) return;
        const EpochMetrics& epoch = state_.history.epochs.back();
        std::vector<std::pair<std::string, double>> values{{"loss/train", epoch.train_loss},
                                                           {"learning_rate", epoch.learning_rate}};
        const std::vector<std::string>& names = state_.history.metrics;
        for (std::size_t i = 0; i < names.size(); ++i)
            values.emplace_back(names[i] + "/train", epoch.train.at(i));
        if (state_.history.tested) {
            values.emplace_back("loss/test", epoch.test_loss);
            for (std::size_t i = 0; i < names.size(); ++i)
                values.emplace_back(names[i] + "/test", epoch.test.at(i));
        }
        const auto step = [&](int epochs) { return epochs * state_.batches; };
        if (!events_) events_.emplace(folder_.path(), step(state_.epochs_done - 1));
        events_->add(step(state_.epochs_done), values);
    }

    /// Writes the trace of a run that has ended before all steps to trace were over.
    void finish_trace(bool wait) {
        try {
            if (trace_) trace_->finish(wait);
        } catch (const Error& error) {
            note(error.what());
        }
    }

    /// Where the run is, for who asked it to stop.
    TrainResult stopped() {
        finish_trace(true);
        tell_after();
        if (report_) report_->end("stopped");
        if (!by_first(checkpoints_.is_saved(state_)) && !checkpoints_.save(state_, solver()))
            fail(ErrorKind::io, "the run was asked to stop, and its last checkpoint, ",
                 checkpoints_.last().empty() ? "of which there is none"
                                             : cat("'", checkpoints_.last(), "'"),
                 ", is not of its last step: that could not be saved");
        TrainResult result = result_so_far();
        result.finished = false;
        return result;
    }

    TrainResult result_so_far() const {
        TrainResult result;
        result.epochs = state_.epochs_done;
        result.checkpoint = checkpoints_.last();
        if (state_.history.epochs.empty()) return result;
        const EpochMetrics& last = state_.history.epochs.back();
        result.train_loss = last.train_loss;
        result.train_accuracy = accuracy_in(state_.history.metrics, last.train);
        if (!state_.history.tested) return result;
        result.test_loss = last.test_loss;
        result.test_accuracy = accuracy_in(state_.history.metrics, last.test);
        return result;
    }

    const TrainCall& call_;
    TrainTask& task_;
    ProcessGroup* const group_;  ///< null for one process
    const TrainConfig& config_;
    std::vector<Context> contexts_;
    const std::vector<NamedDevice>& devices_;
    RunFolder folder_;
    ResumeFrom from_;
    Feeder feeder_;
    RunState state_;
    Checkpoints checkpoints_;
    std::optional<Trainee> trainee_;
    std::optional<Evaluator> evaluator_;  ///< of the first process, if there is a test set
    std::optional<Judging> judging_;
    std::optional<EventFile> events_;
    std::optional<RunReport> report_;   ///< of the first process
    std::optional<TracedSteps> trace_;  ///< if it is asked for
    std::vector<std::string> initial_notes_;
    bool stopped_ = false;  ///< whether call_.request has asked for it
    bool stops_ = false;    ///< whether all processes know of it
};

}  // namespace

std::string TrainTask::save(Net& net, const RunFolder& folder,
                            const std::optional<Preprocessing>& how) {
    std::string path = folder.file("model.h5");
    core_of(net).save_weights(path, how ? &*how : nullptr);
    return path;
}

TrainResult train_task(const std::vector<Context>& contexts,
                       const std::vector<NamedDevice>& devices, const TrainCall& call,
                       TrainTask& task) {
    try {
        return Trainer(contexts, devices, call, task).run();
    } catch (const StoppedWhilePlanning&) {
        TrainResult result;
        result.finished = false;
        return result;
    }
}

TrainResult train(const Context& context, const TrainCall& call) {
    return train(std::vector<Context>{context}, call);
}

TrainResult train(const std::vector<Context>& contexts, const TrainCall& call) {
    TrainTask task(common_config(call));
    return train_task(contexts, {}, call, task);
}

TrainResult train(const std::vector<NamedDevice>& devices, const TrainCall& call) {
    std::vector<Context> contexts;
    for (const NamedDevice& device : devices)
        if (std::find(contexts.begin(), contexts.end(), device.context) == contexts.end())
            contexts.push_back(device.context);
    TrainTask task(common_config(call));
    return train_task(contexts, devices, call, task);
}

}  // namespace dlprim
