// SPDX-License-Identifier: MIT
// train(): epochs over an image set, evaluation, checkpoints, report.
#include <dlprim/trainer.hpp>

#include "api/checkpoint_record.hpp"
#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "train/config.hpp"
#include "train/image_data.hpp"
#include "train/report.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

/// Which tensors of a net are images, labels, class scores and losses.
struct Roles {
    std::string images, labels, scores, loss;
};

Roles roles_of(Net& net) {
    Roles roles;
    for (const std::string& name : net.input_names())
        (net.label_classes(name) > 0 ? roles.labels : roles.images) = name;
    require(!roles.images.empty() && !roles.labels.empty() && net.input_names().size() == 2,
            "training on labelled images needs a network of two inputs: images, and labels that a "
            "loss reads");
    const std::vector<std::string> losses = net.loss_names();
    require(!losses.empty(),
            "the network has no loss: name an output 'loss...', or give one a loss_weight");
    roles.loss = losses.front();
    for (const std::string& name : net.output_names())
        if (std::find(losses.begin(), losses.end(), name) == losses.end() && roles.scores.empty())
            roles.scores = name;
    return roles;
}

/// An output of a net, which is read back while later steps run.
class LateOutput {
  public:
    explicit LateOutput(const Tensor& tensor)
        : tensor_(tensor),
          readback_(Access::impl(tensor.context()).make_readback(tensor.bytes())) {}
    /// Enqueues a read of the output after all work enqueued so far.
    void read() { readback_->read({Access::buffer(tensor_).get(), tensor_.byte_offset()}); }
    /// Waits for the oldest read and returns its values.
    std::vector<float> take() {
        std::vector<float> values(static_cast<std::size_t>(tensor_.shape().numel()));
        convert(readback_->take(), tensor_.dtype(), values.data(), DType::f32, values.size());
        return values;
    }

  private:
    Tensor tensor_;
    std::unique_ptr<Readback> readback_;
};

/// The name of the configuration in messages.
std::string name_of_config(const TrainCall& call) {
    return call.config.empty() ? "configuration" : call.config;
}

TrainConfig config_of(const TrainCall& call) {
    require(call.config.empty() != call.config_text.empty(),
            "train() needs a configuration, either as a file or as a text");
    if (call.config.empty())
        return parse_train_config(call.config_text, name_of_config(call), call.epochs);
    return read_train_config(call.config, call.epochs);
}

class Trainer {
  public:
    Trainer(const Context& context, const TrainCall& call)
        : call_(call),
          config_(config_of(call)),
          context_(context),
          train_(config_.train.images, config_.train.labels),
          schedule_(config_.schedule, config_.solver.learning_rate, config_.epochs) {
        if (!config_.test.images.empty()) test_.emplace(config_.test.images, config_.test.labels);
        augmentation_ = {config_.mean, config_.std, config_.flip, config_.crop_pad};
        open();
    }

    TrainResult run() {
        make_folder();
        if (!call_.resume.empty()) resume();
        tell_notes();
        for (int epoch = first_epoch_; epoch < config_.epochs; ++epoch) {
            const EpochMetrics metrics = run_epoch(epoch);
            history_.push_back(metrics);
            schedule_.report(test_ ? metrics.test_loss : metrics.train_loss);
            write_metrics(call_.out, history_);
            write_report(call_.out, config_.net, context_.info().str(), history_);
            if ((epoch + 1) % config_.checkpoint_every == 0 || epoch + 1 == config_.epochs)
                checkpoint(epoch + 1);
            tell_epoch(metrics);
        }
        const std::string model = (fs::path(call_.out) / "model.h5").string();
        net_->save_weights(model);
        const EpochMetrics last = history_.empty() ? EpochMetrics{} : history_.back();
        return {config_.epochs,
                last.train_loss,
                last.train_accuracy,
                last.test_loss,
                test_ ? last.test_accuracy : -1,
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
        net_.emplace(Net::from_json_file(context_, config_.net, options));
        config_.solver.guard_loss = true;  // losses are read after the next step has started
        solver_ = std::make_unique<Solver>(*net_, config_.solver);
        roles_ = roles_of(*net_);
        net_->initialize(config_.initialization);
        if (!config_.weights.empty()) net_->load_weights(config_.weights);
        late_losses_.emplace_back(net_->output(roles_.loss));
        for (const std::string& name : net_->loss_names())
            if (name != roles_.loss) late_losses_.emplace_back(net_->output(name));
        if (!roles_.scores.empty()) late_scores_.emplace(net_->output(roles_.scores));
        check_data(train_);
        require(train_.size() >= config_.batch, "there are ", train_.size(),
                " images to train on, fewer than a batch of ", config_.batch);
        check_images(config_, name_of_config(call_), train_.size(), train_.height(),
                     train_.width());
        if (!test_) return;
        check_data(*test_);
        options.mode = Mode::inference;
        tester_.emplace(Net::from_json_file(context_, config_.net, options));
        require(test_->size() > 0, "the test set is empty");
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

    void check_data(const ImageData& data) {
        const Shape want = net_->input_shape(roles_.images);
        const std::int64_t pixels = data.channels() * data.height() * data.width();
        require(want.rank() > 0 && want.numel() == config_.batch * pixels, "images of '",
                data.images_file(), "' are ", data.channels(), "x", data.height(), "x",
                data.width(), ", input '", roles_.images, "' has shape ", want.str());
        data.check_labels(net_->label_classes(roles_.labels));
    }

    void make_folder() const {
        std::error_code error;
        fs::create_directories(call_.out, error);
        if (error)
            fail(ErrorKind::io, "folder '", call_.out, "' cannot be made: ", error.message());
    }

    /// Fills a batch with images `order[first...]`.
    void fill(Net& net, const ImageData& data, std::span<const std::int64_t> order,
              std::int64_t first, std::int64_t batch, const Augmentation& how,
              std::uint64_t epoch) {
        const std::int64_t pixels = data.channels() * data.height() * data.width();
        images_.resize(static_cast<std::size_t>(batch * pixels));
        labels_.resize(static_cast<std::size_t>(batch));
        for (std::int64_t i = 0; i < batch; ++i) {
            const std::int64_t index = order[static_cast<std::size_t>(first + i)];
            data.image(index, how, config_.seed, epoch, images_.data() + i * pixels);
            labels_[static_cast<std::size_t>(i)] = data.label(index);
        }
        upload(net, roles_.images, images_.data(), DType::f32, images_.size());
        upload(net, roles_.labels, labels_.data(), DType::i32, labels_.size());
    }

    void upload(Net& net, const std::string& name, const void* data, DType dtype,
                std::size_t count) {
        const DType want = net.input_dtype(name);
        if (want == dtype) {
            net.set_input(name, data, count * size_of(dtype));
            return;
        }
        std::vector<std::byte> converted(count * size_of(want));
        convert(data, dtype, converted.data(), want, count);
        if (dtype == DType::i32) check_kept(name, data, converted, want, count);
        net.set_input(name, converted.data(), converted.size());
    }

    /// Checks labels, because one that the network's type cannot hold would silently become
    /// another.
    static void check_kept(const std::string& name, const void* labels,
                           const std::vector<std::byte>& converted, DType want, std::size_t count) {
        std::vector<std::int32_t> given(count), kept(count);
        std::memcpy(given.data(), labels, count * sizeof(std::int32_t));
        convert(converted.data(), want, kept.data(), DType::i32, count);
        const auto [a, b] = std::mismatch(given.begin(), given.end(), kept.begin());
        if (a != given.end())
            fail(ErrorKind::invalid_argument, "label ", *a, " does not fit into input '", name,
                 "', which is ", name_of(want), "; int holds every label");
    }

    static std::int64_t count_right(const std::vector<float>& scores,
                                    const std::vector<std::int32_t>& labels) {
        const std::size_t classes = scores.size() / labels.size();
        std::int64_t right = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            const float* row = scores.data() + i * classes;
            right += std::max_element(row, row + classes) - row == labels[i];
        }
        return right;
    }

    /// A training batch whose step has been enqueued.
    struct Batch {
        std::int64_t number = 0;
        double learning_rate = 0;
        std::vector<std::int32_t> labels;
    };

    /// Feeds the net one batch of an epoch's `order`.
    void feed(std::span<const std::int64_t> order, int epoch, std::int64_t number) {
        fill(*net_, train_, order, number * config_.batch, config_.batch, augmentation_,
             static_cast<std::uint64_t>(epoch));
    }

    Batch start(std::span<const std::int64_t> order, int epoch, std::int64_t number) {
        const std::int64_t batches = train_.size() / config_.batch;
        feed(order, epoch, number);
        const double rate =
            schedule_.rate(epoch + static_cast<double>(number) / static_cast<double>(batches));
        solver_->set_learning_rate(rate);
        solver_->step();
        for (LateOutput& loss : late_losses_) loss.read();
        if (late_scores_) late_scores_->read();
        return {number, rate, labels_};
    }

    /// The results of the oldest step that start() enqueued.
    struct Outcome {
        double loss = 0;  ///< the first loss that is not finite, or else the first loss
        bool finite = true;
        std::int64_t right = 0;
    };
    Outcome take(const Batch& batch) {
        Outcome outcome;
        // Wait for the last read first: then all earlier ones are complete.
        if (late_scores_) outcome.right = count_right(late_scores_->take(), batch.labels);
        std::vector<std::vector<float>> losses(late_losses_.size());
        for (std::size_t i = losses.size(); i-- > 0;) losses[i] = late_losses_[i].take();
        outcome.loss = losses.at(0).at(0);
        for (const std::vector<float>& values : losses) {
            for (const float value : values) {
                if (std::isfinite(value) || !outcome.finite) continue;
                outcome.finite = false;
                outcome.loss = value;
            }
        }
        return outcome;
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
        const std::vector<std::int64_t> order =
            train_.shuffled(config_.seed, static_cast<std::uint64_t>(epoch));
        const std::int64_t batches = train_.size() / config_.batch;
        double loss_sum = 0;
        std::int64_t right = 0, counted = 0;
        TrainProgress progress;
        progress.epoch = epoch + 1;
        progress.epochs = config_.epochs;
        progress.batches = batches;
        std::optional<Batch> done, next;
        for (std::int64_t b = 0; b < batches || done; done = std::exchange(next, {})) {
            if (b < batches) next = start(order, epoch, b++);
            if (!done) continue;
            const Outcome outcome = take(*done);
            progress.learning_rate = done->learning_rate;
            if (!outcome.finite) {
                if (next) take(*next);
                solver_->call_off(next ? 2 : 1);
                next.reset();
                b = done->number + 1;
                if (config_.continue_on_nan) continue;
                feed(order, epoch, done->number);
                stop_on_nan(epoch, done->number, outcome.loss);
            }
            loss_sum += outcome.loss;
            right += outcome.right;
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
        if (test_) evaluate(metrics);
        metrics.seconds = seconds();
        last_progress_ = progress;
        return metrics;
    }

    /// Copies the parameters of the training net to the testing net.
    void copy_parameters() {
        std::vector<std::byte> data;
        for (const std::string& name : net_->param_names()) {
            const Tensor from = net_->param(name);
            Tensor to = tester_->param(name);
            data.resize(from.bytes());
            from.copy_to_host(data.data(), data.size());
            to.copy_from_host(data.data(), data.size());
        }
        tester_->params_changed();
    }

    void evaluate(EpochMetrics& metrics) {
        copy_parameters();
        std::vector<std::int64_t> order(static_cast<std::size_t>(test_->size()));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        const Augmentation plain{config_.mean, config_.std, false, 0};
        double loss_sum = 0;
        std::int64_t right = 0, seen = 0;
        for (std::int64_t first = 0; first < test_->size(); first += config_.batch) {
            // The last batch may be smaller, so that a mean over it is a mean over its images only.
            const std::int64_t batch = std::min(config_.batch, test_->size() - first);
            if (tester_->input_shape(roles_.images)[0] != batch) tester_->reshape(batch);
            fill(*tester_, *test_, order, first, batch, plain, 0);
            tester_->forward();
            loss_sum += tester_->output(roles_.loss).to_floats().at(0) * static_cast<double>(batch);
            if (!roles_.scores.empty())
                right += count_right(tester_->output(roles_.scores).to_floats(), labels_);
            seen += batch;
        }
        metrics.test_loss = loss_sum / static_cast<double>(seen);
        metrics.test_accuracy = static_cast<double>(right) / static_cast<double>(seen);
    }

    void tell_epoch(const EpochMetrics& metrics) {
        if (!call_.progress) return;
        TrainProgress progress = last_progress_;
        progress.epoch_done = true;
        progress.test_loss = metrics.test_loss;
        progress.test_accuracy = metrics.test_accuracy;
        call_.progress(progress);
    }

    [[noreturn]] void stop_on_nan(int epoch, std::int64_t batch, double loss) {
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

    void checkpoint(int epochs_done) {
        const auto file = [&](int epoch) {
            return fs::path(call_.out) / cat("checkpoint_", epoch, ".h5");
        };
        solver_->save_checkpoint(file(epochs_done).string(),
                                 {{"epochs_done", epochs_done},
                                  {"schedule_factor", schedule_.factor},
                                  {"schedule_best", schedule_.best},
                                  {"schedule_waited", schedule_.epochs_without_improvement}});
        saved_.push_back(file(epochs_done));
        while (static_cast<int>(saved_.size()) > config_.checkpoint_keep) {
            std::error_code ignored;
            fs::remove(saved_.front(), ignored);
            saved_.erase(saved_.begin());
        }
    }

    void resume() {
        const std::map<std::string, double> extra = solver_->load_checkpoint(call_.resume);
        const auto value = [&](const char* name, double otherwise) {
            const auto found = extra.find(name);
            return found == extra.end() ? otherwise : found->second;
        };
        const double epochs = value("epochs_done", 0);
        if (!(epochs >= 0 && epochs <= std::numeric_limits<int>::max()) ||
            epochs != std::floor(epochs))
            fail(ErrorKind::format, "'", call_.resume, "' is damaged: it says that ", epochs,
                 " epochs are done");
        first_epoch_ = static_cast<int>(epochs);
        schedule_.factor = value("schedule_factor", 1);
        schedule_.best = value("schedule_best", 1e300);
        schedule_.epochs_without_improvement = value("schedule_waited", 0);
        // The metrics of the first epochs are next to the checkpoint, unless it was moved.
        const std::string folder = fs::path(call_.resume).parent_path().string();
        std::vector<EpochMetrics> told = read_metrics(folder);
        if (told.empty()) told = read_metrics(call_.out);
        for (const EpochMetrics& metrics : told)
            if (metrics.epoch <= first_epoch_) history_.push_back(metrics);
    }

    const TrainCall& call_;
    TrainConfig config_;
    Context context_;
    ImageData train_;
    std::optional<ImageData> test_;
    Augmentation augmentation_;
    Schedule schedule_;
    std::optional<Net> net_, tester_;
    std::unique_ptr<Solver> solver_;
    Roles roles_;
    std::vector<LateOutput> late_losses_;  ///< the first is the loss that is reported
    std::optional<LateOutput> late_scores_;
    std::vector<float> images_;
    std::vector<std::int32_t> labels_;
    std::vector<EpochMetrics> history_;
    std::vector<fs::path> saved_;
    TrainProgress last_progress_;
    int first_epoch_ = 0;
};

}  // namespace

TrainResult train(const Context& context, const TrainCall& call) {
    return Trainer(context, call).run();
}

}  // namespace dlprim
