// SPDX-License-Identifier: MIT
// Epoch.
#include "api/training/epoch.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dlprim {

namespace {

std::vector<std::pair<std::string, double>> named(const std::vector<std::string>& names,
                                                  const std::vector<double>& values) {
    std::vector<std::pair<std::string, double>> pairs;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i)
        pairs.emplace_back(names[i], values[i]);
    return pairs;
}

}  // namespace

double accuracy_in(const std::vector<std::string>& names, const std::vector<double>& values) {
    const auto at = std::find(names.begin(), names.end(), "accuracy") - names.begin();
    return static_cast<std::size_t>(at) < values.size() ? values[static_cast<std::size_t>(at)] : -1;
}

Epoch::Epoch(const Parts& parts, const TrainConfig& config, RunState& state)
    : parts_(parts), config_(config), state_(state), first_(state.batches_done) {
    parts_.feeder.start(state.epochs_done, first_);
}

Epoch::Batch Epoch::start(std::int64_t number) {
    Batch batch;
    batch.number = number;
    if (parts_.trace != nullptr)
        parts_.trace->begin_step(static_cast<std::int64_t>(parts_.trainee.solver().steps()) + 1);
    StepTrace* const trace = parts_.trace != nullptr ? parts_.trace->recorder() : nullptr;
    {
        TracePhases phases(trace, 0, TraceRow::host);
        phases.next(TraceKind::wait, "wait for data");
        batch.targets = parts_.feeder.take();
    }
    batch.learning_rate = state_.schedule.rate(
        state_.epochs_done + static_cast<double>(number) / static_cast<double>(state_.batches));
    parts_.trainee.set_learning_rate(batch.learning_rate);
    parts_.trainee.step(parts_.feeder, batch.targets.examples > 0, trace);
    return batch;
}

Stepper::Outcome Epoch::take() {
    TracePhases phases(parts_.trace != nullptr ? parts_.trace->recorder() : nullptr, 0,
                       TraceRow::host);
    phases.next(TraceKind::wait, "wait for the loss");
    return parts_.trainee.take();
}

bool Epoch::settle(const Batch& batch, std::optional<Batch>& next) {
    EpochSums& sums = state_.sums;
    const Stepper::Outcome outcome = take();
    sums.learning_rate = batch.learning_rate;
    if (!outcome.finite) {
        if (next) take();
        parts_.trainee.call_off(next ? 2 : 1);
        next.reset();
        if (!config_.continue_on_nan) stop_on_nan(batch.number, outcome.loss);
        state_.batches_done = batch.number + 1;
        parts_.feeder.start(state_.epochs_done, state_.batches_done);
        return false;
    }
    sums.loss += outcome.loss;
    if (!outcome.scores.empty())
        sums.judges.add(outcome.scores, parts_.trainee.scores_shape(), batch.targets);
    ++sums.counted;
    state_.batches_done = batch.number + 1;
    return true;
}

bool Epoch::run(const std::function<void(const TrainProgress&)>& tell,
                const std::function<bool(std::int64_t)>& pauses) {
    std::optional<Batch> done, next;
    bool paused = false;
    for (;;) {
        const std::int64_t number = state_.batches_done + (done ? 1 : 0);
        if (number < state_.batches && !paused) {
            if (pauses(number))
                paused = true;
            else
                next = start(number);
        }
        if (!done && !next) return paused;
        if (done && settle(*done, next) && tell) tell(progress());
        done = std::exchange(next, {});
    }
}

void Epoch::stop_on_nan(std::int64_t batch, double loss) {
    parts_.feeder.start(state_.epochs_done, batch);
    parts_.feeder.take();
    const std::string origin = parts_.trainee.first_nan(parts_.feeder);
    // Print NaN without its sign, which differs among devices and means nothing.
    fail(ErrorKind::numeric, "the loss is ", std::isnan(loss) ? std::abs(loss) : loss, " in epoch ",
         state_.epochs_done + 1, ", batch ", batch + 1,
         origin.empty() ? ""
                        : cat("; the first operator whose output is not finite is '", origin, "'"),
         "; a lower learning rate or gradient clipping may help; \"on_nan\": \"continue\" "
         "skips such batches");
}

double Epoch::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

TrainProgress Epoch::progress() {
    const EpochSums& sums = state_.sums;
    TrainProgress progress;
    progress.epoch = state_.epochs_done + 1;
    progress.epochs = config_.epochs;
    progress.batch = state_.batches_done;
    progress.batches = state_.batches;
    progress.loss = sums.loss / static_cast<double>(sums.counted);
    const std::vector<double> values = sums.judges.values(progress.loss);
    progress.metrics = named(state_.history.metrics, values);
    progress.accuracy = accuracy_in(state_.history.metrics, values);
    progress.learning_rate = sums.learning_rate;
    images_per_second_ =
        static_cast<double>((state_.batches_done - first_) * config_.batch) / seconds();
    progress.images_per_second = images_per_second_;
    return progress;
}

EpochMetrics Epoch::metrics() const {
    const EpochSums& sums = state_.sums;
    require(sums.counted > 0, "epoch ", state_.epochs_done + 1, " had no batch with a finite loss");
    EpochMetrics metrics;
    metrics.epoch = state_.epochs_done + 1;
    metrics.learning_rate = sums.learning_rate;
    metrics.train_loss = sums.loss / static_cast<double>(sums.counted);
    metrics.train = sums.judges.values(metrics.train_loss);
    return metrics;
}

TrainProgress Epoch::done(const EpochMetrics& metrics) const {
    TrainProgress progress;
    progress.epoch = metrics.epoch;
    progress.epochs = config_.epochs;
    progress.batch = progress.batches = state_.batches;
    progress.loss = metrics.train_loss;
    progress.metrics = named(state_.history.metrics, metrics.train);
    progress.accuracy = accuracy_in(state_.history.metrics, metrics.train);
    progress.learning_rate = metrics.learning_rate;
    progress.images_per_second = images_per_second_;
    progress.epoch_done = true;
    if (!state_.history.tested) return progress;
    progress.test_loss = metrics.test_loss;
    progress.test_metrics = named(state_.history.metrics, metrics.test);
    progress.test_accuracy = accuracy_in(state_.history.metrics, metrics.test);
    return progress;
}

}  // namespace dlprim
