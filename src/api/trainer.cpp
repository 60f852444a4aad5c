// SPDX-License-Identifier: MIT
// train(): epochs over a training set, evaluation, checkpoints, report.
#include <dlprim/trainer.hpp>

#include "api/checkpoint_record.hpp"
#include "api/net_impl.hpp"
#include "api/training/evaluator.hpp"
#include "api/training/feeder.hpp"
#include "api/training/roles.hpp"
#include "api/training/run_state.hpp"
#include "api/training/stepper.hpp"
#include "base/text.hpp"
#include "train/config.hpp"
#include "train/report.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

TrainConfig config_of(const TrainCall& call) {
    require(call.config.empty() != call.config_text.empty(),
            "train() needs a configuration, either as a file or as a text");
    if (call.config.empty())
        return parse_train_config(call.config_text, "configuration", call.epochs);
    return read_train_config(call.config, call.epochs);
}

class Trainer {
  public:
    Trainer(const Context& context, const TrainCall& call)
        : call_(call),
          config_(config_of(call)),
          context_(context),
          feeder_(config_),
          state_{0, Schedule(config_.schedule, config_.solver.learning_rate, config_.epochs), {}} {
        open();
    }

    TrainResult run() {
        make_folder();
        if (!call_.resume.empty()) load_run(call_.resume, call_.out, state_, *solver_);
        tell_notes();
        while (state_.epochs_done < config_.epochs) {
            const EpochMetrics metrics = run_epoch(state_.epochs_done);
            state_.history.push_back(metrics);
            ++state_.epochs_done;
            state_.schedule.report(evaluator_ ? metrics.test_loss : metrics.train_loss);
            write_metrics(call_.out, state_.history);
            write_report(call_.out, config_.net, context_.info().str(), state_.history);
            if (state_.epochs_done % config_.checkpoint_every == 0 ||
                state_.epochs_done == config_.epochs)
                checkpoint();
            tell_epoch(metrics);
        }
        const std::string model = (fs::path(call_.out) / "model.h5").string();
        net_->save_weights(model);
        const EpochMetrics last = state_.history.empty() ? EpochMetrics{} : state_.history.back();
        return {config_.epochs,
                last.train_loss,
                last.train_accuracy,
                last.test_loss,
                evaluator_ ? last.test_accuracy : -1,
                model};
    }

  private:
    void open() {
        NetOptions options;
        options.mode = Mode::training;
        options.batch = config_.batch;
        options.seed = config_.seed;
        set_precision(options);
        options.progress = call_.planning;
        if (feeder_.has_test()) evaluator_.emplace(context_, config_, options, feeder_);
        net_.emplace(Net::from_json_file(context_, config_.net, options));
        config_.solver.guard_loss = true;  // losses are read after the next step has started
        solver_.emplace(*net_, config_.solver);
        const Roles roles = roles_of(*net_);
        net_->initialize(config_.initialization);
        if (!config_.weights.empty()) net_->load_weights(config_.weights);
        stepper_.emplace(*net_, *solver_, roles);
        has_scores_ = !roles.scores.empty();
        feeder_.attach(*net_, roles);
        if (evaluator_) evaluator_->attach(*net_, roles);
    }

    /// Sets the precisions. The command line takes precedence over the checkpoint's record, and
    /// that over the configuration.
    void set_precision(NetOptions& options) const {
        CheckpointRecord made;
        if (!call_.resume.empty()) made = read_record(Hdf5Reader(call_.resume));
        const Precision otherwise = config_.precision.value_or(options.precision);
        options.precision = call_.precision.value_or(made.precision.value_or(otherwise));
        options.precisions.assign(made.precisions.begin(), made.precisions.end());
        options.precisions.insert(options.precisions.end(), call_.precisions.begin(),
                                  call_.precisions.end());
    }

    void tell_notes() {
        if (!call_.note) return;
        for (const std::string& note : net_->notes()) call_.note(note);
        const Precision precision = Access::impl(*net_).options().precision;
        if (!call_.precision && config_.precision.value_or(precision) != precision)
            call_.note(cat("'", call_.resume, "' continues in ", name_of(precision),
                           ", in which it was trained, although the configuration says ",
                           name_of(*config_.precision)));
    }

    void make_folder() const {
        std::error_code error;
        fs::create_directories(call_.out, error);
        if (error)
            fail(ErrorKind::io, "folder '", call_.out, "' cannot be made: ", error.message());
    }

    /// A training batch whose step has been enqueued.
    struct Batch {
        std::int64_t number = 0;
        double learning_rate = 0;
        Targets targets;
    };

    Batch start(int epoch, std::int64_t number) {
        Batch batch;
        batch.number = number;
        batch.targets = feeder_.feed(*net_);
        batch.learning_rate = state_.schedule.rate(
            epoch + static_cast<double>(number) / static_cast<double>(feeder_.batches()));
        stepper_->start(batch.learning_rate);
        return batch;
    }

    /// Runs batch after batch. Results of a batch are examined after the next step has been
    /// enqueued, so no step waits for the host. If a loss is not finite, that next step, which
    /// changes nothing, is undone.
    EpochMetrics run_epoch(int epoch) {
        const auto start_time = std::chrono::steady_clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_time)
                .count();
        };
        const std::int64_t batches = feeder_.batches();
        double loss_sum = 0;
        std::int64_t right = 0, counted = 0;
        TrainProgress progress;
        progress.epoch = epoch + 1;
        progress.epochs = config_.epochs;
        progress.batches = batches;
        feeder_.start(epoch, 0);
        std::optional<Batch> done, next;
        for (std::int64_t b = 0; b < batches || done; done = std::exchange(next, {})) {
            if (b < batches) next = start(epoch, b++);
            if (!done) continue;
            const Stepper::Outcome outcome = stepper_->take();
            progress.learning_rate = done->learning_rate;
            if (!outcome.finite) {
                if (next) stepper_->take();
                solver_->call_off(next ? 2 : 1);
                next.reset();
                b = done->number + 1;
                if (!config_.continue_on_nan) stop_on_nan(epoch, done->number, outcome.loss);
                feeder_.start(epoch, b);
                continue;
            }
            loss_sum += outcome.loss;
            if (has_scores_) right += count_right(outcome.scores, done->targets.classes);
            ++counted;
            progress.batch = done->number + 1;
            progress.loss = loss_sum / static_cast<double>(counted);
            progress.accuracy =
                static_cast<double>(right) / static_cast<double>(counted * config_.batch);
            progress.images_per_second =
                static_cast<double>((done->number + 1) * config_.batch) / seconds();
            if (call_.progress) call_.progress(progress);
        }
        require(counted > 0, "epoch ", epoch + 1, " had no batch with a finite loss");
        EpochMetrics metrics;
        metrics.epoch = epoch + 1;
        metrics.learning_rate = progress.learning_rate;
        metrics.train_loss = progress.loss;
        metrics.train_accuracy = progress.accuracy;
        metrics.test_accuracy = -1;
        if (evaluator_) {
            const Evaluator::Result test = evaluator_->run(*net_);
            metrics.test_loss = test.loss;
            metrics.test_accuracy = test.accuracy;
        }
        metrics.seconds = seconds();
        last_progress_ = progress;
        return metrics;
    }

    void tell_epoch(const EpochMetrics& metrics) {
        if (!call_.progress) return;
        TrainProgress progress = last_progress_;
        progress.epoch_done = true;
        progress.test_loss = metrics.test_loss;
        progress.test_accuracy = metrics.test_accuracy;
        call_.progress(progress);
    }

    /// `batch` and all that followed it must be called off.
    [[noreturn]] void stop_on_nan(int epoch, std::int64_t batch, double loss) {
        feeder_.start(epoch, batch);
        feeder_.feed(*net_);
        const std::string origin = net_->first_nan();
        // Print NaN without its sign, which differs among devices and means nothing.
        fail(ErrorKind::numeric, "the loss is ", std::isnan(loss) ? std::abs(loss) : loss,
             " in epoch ", epoch + 1, ", batch ", batch + 1,
             origin.empty()
                 ? ""
                 : cat("; the first operator whose output is not finite is '", origin, "'"),
             "; a lower learning rate or gradient clipping may help; \"on_nan\": \"continue\" "
             "skips such batches");
    }

    void checkpoint() {
        const fs::path file = fs::path(call_.out) / cat("checkpoint_", state_.epochs_done, ".h5");
        save_run(file.string(), state_, *solver_);
        saved_.push_back(file);
        while (static_cast<int>(saved_.size()) > config_.checkpoint_keep) {
            std::error_code ignored;
            fs::remove(saved_.front(), ignored);
            saved_.erase(saved_.begin());
        }
    }

    const TrainCall& call_;
    TrainConfig config_;
    Context context_;
    Feeder feeder_;
    RunState state_;
    std::optional<Net> net_;
    std::optional<Solver> solver_;
    std::optional<Stepper> stepper_;
    std::optional<Evaluator> evaluator_;  ///< if there is a test set
    bool has_scores_ = false;
    std::vector<fs::path> saved_;
    TrainProgress last_progress_;
};

}  // namespace

TrainResult train(const Context& context, const TrainCall& call) {
    return Trainer(context, call).run();
}

}  // namespace dlprim
