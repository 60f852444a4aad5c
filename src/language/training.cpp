// SPDX-License-Identifier: MIT
// train_language_model(): trains an adapter, epoch after epoch.
#include <dlprim/language_training.hpp>

#include "api/net_impl.hpp"
#include "api/training/checkpoints.hpp"
#include "api/training/run_folder.hpp"
#include "api/training/run_state.hpp"
#include "base/philox.hpp"
#include "base/text.hpp"
#include "language/adapter.hpp"
#include "language/model_weights.hpp"
#include "language/network.hpp"
#include "language/text_rows.hpp"
#include "runtime/access.hpp"
#include "runtime/devices.hpp"
#include "train/language_config.hpp"

#include <dlprim/language.hpp>
#include <dlprim/solver.hpp>

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

namespace dlprim {

namespace language {

namespace {

/// The model's weights, and first values of the adapter: those of a linear layer for A, and zeros
/// for B, so that the adapter adds nothing before the first step.
class FirstWeights : public ParamSource {
  public:
    FirstWeights(std::shared_ptr<const ModelFile> model, const ModelSizes& sizes,
                 std::uint64_t seed)
        : model_(std::move(model), sizes), first_("default", seed, shared_pool()) {}

    void check(const Value& parameter) const {
        if (!is_of_adapter(parameter.name)) model_.check(parameter);
    }
    void read(const Value& parameter, std::vector<std::byte>& data) override {
        if (!is_of_adapter(parameter.name)) return model_.read(parameter, data);
        first_.read(parameter, data);
        if (is_up(parameter.name)) std::fill(data.begin(), data.end(), std::byte{0});
    }

  private:
    static bool is_up(const std::string& name) { return name == adapter_up(name_of_weight(name)); }
    /// "blk.0.attn_q.lora_b.weight" -> "blk.0.attn_q.weight"
    static std::string name_of_weight(const std::string& name) {
        const std::size_t end = name.rfind(".lora_");
        return name.substr(0, end) + ".weight";
    }

    ModelWeights model_;
    InitialValues first_;
};

/// The inputs of a batch of rows. Places that no row has get no label.
struct Batch {
    std::vector<std::int32_t> tokens, labels;
    std::int64_t count = 0;  ///< labels
};

Batch batch_of(const std::vector<TextRow>& rows, std::span<const std::size_t> chosen,
               std::int64_t batch, std::int64_t length) {
    Batch made;
    const auto columns = static_cast<std::size_t>(length);
    made.tokens.assign(static_cast<std::size_t>(batch) * columns, 0);
    made.labels.assign(made.tokens.size(), no_label);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const TextRow& row = rows[chosen[i]];
        for (std::size_t j = 0; j < row.tokens.size(); ++j) {
            made.tokens[i * columns + j] = row.tokens[j];
            if (j == 0 || !row.counts[j]) continue;
            made.labels[i * columns + j - 1] = row.tokens[j];
            ++made.count;
        }
    }
    return made;
}

/// The order of an epoch's rows (Fisher and Yates), by the seed and the epoch alone.
std::vector<std::size_t> order_of(std::size_t rows, std::uint64_t seed, int epoch) {
    std::vector<std::size_t> order(rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = rows; i > 1; --i) {
        const auto words = philox(
            {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(epoch), 0x74657874, 0},
            {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
        std::swap(order[i - 1], order[(std::uint64_t{words[0]} << 32 | words[1]) % i]);
    }
    return order;
}

constexpr std::int64_t usual_length = 512;

class Training {
  public:
    Training(const Context& context, const TrainCall& call)
        : call_(call),
          config_(read_language_train_config(call.config, call.epochs)),
          common_(config_.common),
          folder_(call.out),
          from_(resolve_resume(call, folder_)),
          model_(open_model(config_.model)),
          sizes_(model_->sizes()),
          most_(config_.length > 0 ? config_.length : std::min(usual_length, sizes_.context)),
          adapter_(Adapter::of(*model_, {config_.lora.rank, config_.lora.alpha,
                                         config_.lora.dropout, config_.lora.targets})),
          adapted_(with_adapter(model_, adapter_)),
          state_(Schedule(common_.schedule, common_.solver.learning_rate, common_.epochs),
                 settings()),
          checkpoints_(common_.checkpoints, folder_, call.note) {
        read_texts(context);
        const NetOptions options = net_options();
        net_ = open_net(context, options, Mode::training, config_.lora.dropout);
        solver_.emplace(*net_, common_.solver);
        set_places(*net_);
        if (!config_.test.empty()) {
            test_net_ = open_net(context, options, Mode::inference, 0);
            set_places(*test_net_);
        }
        state_.history.metrics = {"perplexity"};
        state_.history.tested = !config_.test.empty();
    }

    TrainResult run() {
        enter_folder();
        while (state_.epochs_done < common_.epochs)
            if (!run_epoch()) return stopped();
        if (!checkpoints_.is_saved(state_)) checkpoints_.save(state_, *solver_);
        if (common_.solver.average > 0 && solver_->steps() > 0) solver_->use_averages();
        TrainResult result = result_so_far();
        result.model = folder_.file("adapter");
        write_adapter(result.model);
        return result;
    }

  private:
    Settings settings() const {
        Settings all = settings_of(common_);
        all.emplace_back("length", cat(most_));
        all.emplace_back("lora.rank", cat(config_.lora.rank));
        all.emplace_back("lora.alpha", exact(config_.lora.alpha));
        all.emplace_back("lora.dropout", exact(config_.lora.dropout));
        return all;
    }
    void note(const std::string& text) const {
        if (call_.note) call_.note(text);
    }

    void read_texts(const Context& context) {
        require(most_ <= sizes_.context, "rows of ", most_, " tokens were asked for; the model '",
                config_.model, "' reads at most ", sizes_.context);
        const LanguageModel reader(context, config_.model);
        train_ = read_text_rows(reader, config_.train, most_, config_.pack);
        if (!config_.test.empty())
            test_ = read_text_rows(reader, config_.test, most_, config_.pack);
        // Rows are no longer than the longest text needs.
        constexpr std::size_t step = 16;
        const std::size_t longest = std::max(train_.longest(), test_.longest());
        length_ = std::min(static_cast<std::int64_t>((longest + step - 1) / step * step), most_);
        state_.batches = (std::ssize(train_.rows) + common_.batch - 1) / common_.batch;
        if (common_.solver.accumulate > state_.batches * common_.epochs)
            fail(ErrorKind::format, common_.name, ": solver.accumulate is ",
                 common_.solver.accumulate, ", but the run has ", state_.batches * common_.epochs,
                 " batches: parameters would never change");
    }

    NetOptions net_options() const {
        NetOptions options;
        options.seed = common_.seed;
        options.precision = call_.precision.value_or(common_.precision.value_or(Precision::fp32));
        options.memory_limit = call_.memory_limit > 0
                                   ? call_.memory_limit
                                   : static_cast<std::uint64_t>(common_.memory_limit * (1 << 20));
        options.progress = call_.planning;
        return options;
    }

    std::optional<Net> open_net(const Context& context, NetOptions options, Mode mode,
                                double dropout) const {
        options.mode = mode;
        const StepSizes step{.batch = common_.batch,
                             .count = length_,
                             .positions = length_,
                             .training = true,
                             .dropout = dropout};
        const auto impl = std::make_shared<NetImpl>(
            context,
            make_network(find_architecture(model_->architecture()), *adapted_, sizes_, step),
            options);
        const auto weights = std::make_shared<FirstWeights>(adapted_, sizes_, common_.seed);
        for (const auto& [name, parameter] : impl->params()) weights->check(parameter.value);
        impl->set_source(weights);
        return Access::handle<Net>(impl);
    }

    /// What is the same for all batches: each row is read from its first place on, and all logits
    /// are wanted.
    void set_places(Net& net) const {
        std::vector<std::int32_t> places(static_cast<std::size_t>(2 * common_.batch), 0),
            last(static_cast<std::size_t>(common_.batch * length_));
        std::iota(last.begin(), last.end(), 0);
        net.set_input("places", places.data(), places.size() * sizeof places[0]);
        net.set_input("last", last.data(), last.size() * sizeof last[0]);
    }

    std::int64_t set_batch(Net& net, const std::vector<TextRow>& rows,
                           std::span<const std::size_t> chosen) const {
        const Batch batch = batch_of(rows, chosen, common_.batch, length_);
        net.set_input("tokens", batch.tokens.data(), batch.tokens.size() * sizeof(std::int32_t));
        net.set_input("labels", batch.labels.data(), batch.labels.size() * sizeof(std::int32_t));
        return batch.count;
    }

    static double loss_of(Net& net) { return net.output("loss").to_floats().at(0); }

    void enter_folder() {
        folder_.make();
        for (const std::string& text : from_.notes) note(text);
        if (!from_.path.empty()) {
            const std::string changed = load_run(from_.path, call_.out, state_, *solver_);
            checkpoints_.resumed_from(from_, state_);
            if (!changed.empty()) note(changed);
        }
        checkpoints_.clear_way(from_, state_);
        tell_texts(config_.train, train_);
        if (!config_.test.empty()) tell_texts(config_.test, test_);
        for (const std::string& text : net_->notes()) note(text);
    }

    void tell_texts(const std::string& path, const TextRows& texts) const {
        std::string more;
        if (texts.cut > 0) more += cat("; ", texts.cut, " of them were cut to ", most_);
        if (texts.left > 0)
            more += cat("; ", texts.left, " without a token that counts are left out");
        note(cat("'", path, "': ", texts.rows.size(), " rows of up to ", texts.longest(),
                 " tokens, ", texts.labels(), " of which count", more));
    }

    /// Runs what is left of an epoch. Returns false if the run was asked to stop before its end.
    bool run_epoch() {
        const auto begin = std::chrono::steady_clock::now();
        const double before = state_.sums.seconds;
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        const std::vector<std::size_t> order =
            order_of(train_.rows.size(), common_.seed, state_.epochs_done);
        const std::int64_t first = state_.batches_done;
        TrainProgress progress;
        progress.epoch = state_.epochs_done + 1;
        progress.epochs = common_.epochs;
        progress.batches = state_.batches;
        while (state_.batches_done < state_.batches) {
            state_.sums.seconds = before + seconds();
            if (call_.request && call_.request() == TrainRequest::stop) return false;
            if (checkpoints_.is_due(state_, state_.batches_done))
                checkpoints_.save(state_, *solver_);
            step(order);
            progress.batch = state_.batches_done;
            progress.loss = state_.sums.loss / static_cast<double>(state_.sums.counted);
            progress.learning_rate = state_.sums.learning_rate;
            progress.metrics = {{"perplexity", std::exp(progress.loss)}};
            progress.images_per_second =
                static_cast<double>((state_.batches_done - first) * common_.batch) / seconds();
            if (call_.progress) call_.progress(progress);
        }
        EpochMetrics metrics;
        metrics.epoch = progress.epoch;
        metrics.learning_rate = state_.sums.learning_rate;
        metrics.train_loss = state_.sums.loss / static_cast<double>(state_.sums.counted);
        metrics.train = {std::exp(metrics.train_loss)};
        if (test_net_) {
            metrics.test_loss = test();
            metrics.test = {std::exp(metrics.test_loss)};
        }
        metrics.seconds = before + seconds();
        finish_epoch(metrics);
        progress.epoch_done = true;
        progress.test_loss = metrics.test_loss;
        if (test_net_) progress.test_metrics = {{"perplexity", metrics.test[0]}};
        if (call_.progress) call_.progress(progress);
        return true;
    }

    void step(const std::vector<std::size_t>& order) {
        const auto batch = static_cast<std::size_t>(common_.batch);
        const std::size_t at = static_cast<std::size_t>(state_.batches_done) * batch;
        set_batch(*net_, train_.rows,
                  std::span(order).subspan(at, std::min(batch, order.size() - at)));
        const double rate =
            state_.schedule.rate(state_.epochs_done + static_cast<double>(state_.batches_done) /
                                                          static_cast<double>(state_.batches));
        solver_->set_learning_rate(rate);
        double loss = 0;
        const bool finite = solver_->step_if([&] {
            loss = loss_of(*net_);
            return std::isfinite(loss);
        });
        if (!finite)
            fail(ErrorKind::numeric, "the loss is not finite in epoch ", state_.epochs_done + 1,
                 ", batch ", state_.batches_done + 1,
                 "; a lower learning rate or gradient clipping may help");
        state_.sums.loss += loss;
        ++state_.sums.counted;
        state_.sums.learning_rate = rate;
        ++state_.batches_done;
    }

    /// The mean loss of the tokens of the test set that count.
    double test() {
        std::vector<std::byte> data;
        for (const std::string& name : net_->param_names()) {
            if (!is_of_adapter(name)) continue;
            const HostTensor values = net_->read_param(name);
            test_net_->param(name).copy_from_host(values.data.data(), values.data.size());
        }
        test_net_->params_changed();
        std::vector<std::size_t> order(test_.rows.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        double sum = 0;
        std::int64_t count = 0;
        const auto batch = static_cast<std::size_t>(common_.batch);
        for (std::size_t at = 0; at < order.size(); at += batch) {
            const std::int64_t labels =
                set_batch(*test_net_, test_.rows,
                          std::span(order).subspan(at, std::min(batch, order.size() - at)));
            test_net_->forward();
            sum += loss_of(*test_net_) * static_cast<double>(labels);
            count += labels;
        }
        return sum / static_cast<double>(count);
    }

    void finish_epoch(const EpochMetrics& metrics) {
        state_.history.epochs.push_back(metrics);
        ++state_.epochs_done;
        state_.batches_done = 0;
        state_.sums.restart();
        state_.schedule.report(state_.history.tested ? metrics.test_loss : metrics.train_loss);
        try {
            write_metrics(folder_.path(), state_.history);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::io) throw;
            note(cat(error.what(), "; the training goes on"));
        }
        if (checkpoints_.is_due_after_epoch(state_)) checkpoints_.save(state_, *solver_);
    }

    void write_adapter(const std::string& folder) {
        const auto values_of = [&](const std::string& name) {
            const HostTensor tensor = net_->read_param(name);
            std::vector<float> values(tensor.data.size() / sizeof(float));
            std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
            return values;
        };
        for (auto& [weight, matrices] : adapter_.products) {
            matrices.down_values = values_of(adapter_down(weight));
            matrices.up_values = values_of(adapter_up(weight));
        }
        adapter_.write(folder, *model_, config_.model);
    }

    TrainResult stopped() {
        if (!checkpoints_.is_saved(state_) && !checkpoints_.save(state_, *solver_))
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
        result.train_loss = state_.history.epochs.back().train_loss;
        result.test_loss = state_.history.epochs.back().test_loss;
        return result;
    }

    const TrainCall& call_;
    const LanguageTrainConfig config_;
    const TrainConfig& common_;
    RunFolder folder_;
    const ResumeFrom from_;
    const std::shared_ptr<const ModelFile> model_;
    const ModelSizes sizes_;
    const std::int64_t most_;  ///< tokens of a row
    Adapter adapter_;
    const std::shared_ptr<const ModelFile> adapted_;
    TextRows train_, test_;
    std::int64_t length_ = 0;  ///< of rows
    RunState state_;
    Checkpoints checkpoints_;
    std::optional<Net> net_, test_net_;
    std::optional<Solver> solver_;
};

}  // namespace

}  // namespace language

bool is_language_training(const std::string& config) {
    return is_language_train_config(config);
}

TrainResult train_language_model(const Context& context, const TrainCall& call) {
    return language::Training(context, call).run();
}

}  // namespace dlprim
