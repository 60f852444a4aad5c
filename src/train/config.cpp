// SPDX-License-Identifier: MIT
// read_train_config.
#include "train/config.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"
#include "train/language_config.hpp"
#include "train/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

/// The range of numbers that an option accepts. No number is larger than the largest float, since
/// devices would treat it as infinity.
struct Range {
    double least = 0, most = std::numeric_limits<float>::max();
    bool above = false, below = false;  ///< whether `least` and `most` themselves are excluded

    bool holds(double value) const {
        return (above ? value > least : value >= least) && (below ? value < most : value <= most);
    }
    std::string text() const {
        std::string text = cat(above ? "above " : "of at least ", least);
        if (below)
            text += cat(" and below ", most);
        else if (most < std::numeric_limits<float>::max())
            text += cat(" and at most ", most);
        return text;
    }
};

Range at_least(double least) {
    return {least};
}
constexpr Range positive{0, std::numeric_limits<float>::max(), true, false};
constexpr Range fraction{0, 1, false, true};  ///< [0, 1): its powers tend to zero

double number(const JsonView& object, std::string_view key, double otherwise, const Range& range) {
    const auto view = object.find(key);
    if (!view) return otherwise;
    const double value = view->number();
    if (!range.holds(value))
        view->fail(
            cat("is ", value, ", must be a number ", range.text(),
                value > std::numeric_limits<float>::max() ? ", which a float can hold" : ""));
    return value;
}

int integer(const JsonView& object, std::string_view key, int otherwise, int minimum) {
    constexpr std::int64_t most = 1'000'000'000;
    const auto view = object.find(key);
    if (!view) return otherwise;
    const std::int64_t value = view->integer();
    if (value < minimum || value > most)
        view->fail(
            cat("is ", value, ", must be an integer of at least ", minimum, " and at most ", most));
    return static_cast<int>(value);
}

/// Reads one of `names` and returns its position.
std::size_t choice(const JsonView& object, std::string_view key,
                   const std::vector<std::string>& names, std::size_t otherwise) {
    const auto view = object.find(key);
    if (!view) return otherwise;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == view->text()) return i;
    view->fail(cat("is '", view->text(), "', must be one of ", join(names, ", "),
                   did_you_mean(view->text(), names)));
}

class Reader {
  public:
    /// `epochs` replaces the configuration's number when it is positive.
    Reader(const JsonDocument& document, const fs::path& folder, int epochs)
        : root_(document.root()), folder_(folder), given_epochs_(epochs) {}

    TrainConfig read() {
        if (root_.is_object() && root_.find("operators"))
            root_.fail("seems to be a network, and a training configuration is expected");
        root_.object({"net",          "weights",        "data",      "batch",    "epochs",
                      "seed",         "initialization", "solver",    "schedule", "augmentation",
                      "checkpoints",  "early_stopping", "metrics",   "judge_by", "initial",
                      "tensorboard",  "on_nan",         "precision", "report",   "shards",
                      "memory_limit", "states",         "order"});
        config_.net = path(root_.at("net"));
        if (const auto view = root_.find("weights")) config_.weights = path(*view);
        config_.data = read_data_config(root_.at("data"), root_.find("augmentation"), folder_);
        const std::vector<std::string> methods{"default", "he", "xavier"};
        config_.initialization = methods[choice(root_, "initialization", methods, 0)];
        read_numbers();
        read_run();
        if (const auto view = root_.find("shards")) read_shards(*view);
        read_states();
        read_order();
        if (const auto view = root_.find("initial")) read_initial(*view);
        if (const auto view = root_.find("metrics")) read_metrics(*view);
        return config_;
    }

    LanguageTrainConfig read_language() {
        root_.object({"language_model", "text", "length", "lora", "batch", "epochs", "seed",
                      "precision", "memory_limit", "solver", "schedule", "checkpoints",
                      "early_stopping", "judge_by", "tensorboard", "on_nan", "report"});
        LanguageTrainConfig all;
        config_.net = path(root_.at("language_model"));
        const JsonView text = root_.at("text");
        text.object({"train", "test", "pack"});
        all.train = path(text.at("train"));
        if (const auto test = text.find("test")) all.test = path(*test);
        if (const auto pack = text.find("pack")) all.pack = pack->boolean();
        all.length = root_.find("length") ? integer(root_, "length", 0, 2) : 0;
        if (const auto lora = root_.find("lora")) {
            lora->object({"rank", "alpha", "dropout", "targets"});
            all.lora.rank = integer(*lora, "rank", 8, 1);
            all.lora.alpha = number(*lora, "alpha", 16, positive);
            all.lora.dropout = number(*lora, "dropout", 0, fraction);
            all.lora.targets = names(*lora, "targets");
        }
        config_.batch = 8;
        read_numbers();
        read_run();
        all.common = config_;
        return all;
    }

  private:
    void read_numbers() {
        config_.batch = integer(root_, "batch", static_cast<int>(config_.batch), 1);
        config_.epochs = integer(root_, "epochs", 10, 1);
        if (given_epochs_ > 0) config_.epochs = given_epochs_;
        config_.seed = static_cast<std::uint64_t>(integer(root_, "seed", 1, 0));
        const std::vector<std::string> precisions{"fp32", "tf32", "fp16", "bf16"};
        if (root_.find("precision"))
            config_.precision =
                parse_precision(precisions[choice(root_, "precision", precisions, 0)]);
        config_.memory_limit = number(root_, "memory_limit", 0, {1, 1e9});
    }

    void read_run() {
        if (const auto view = root_.find("solver")) read_solver(*view);
        if (const auto view = root_.find("schedule")) read_schedule(*view);
        if (const auto view = root_.find("checkpoints")) read_checkpoints(*view);
        config_.continue_on_nan = choice(root_, "on_nan", {"stop", "continue"}, 0) == 1;
        if (const auto view = root_.find("early_stopping")) {
            view->object({"patience", "minimum_change"});
            config_.early_stopping.patience = integer(*view, "patience", 5, 1);
            config_.early_stopping.minimum_change = number(*view, "minimum_change", 0, at_least(0));
        }
        if (const auto view = root_.find("report")) read_report(*view);
        if (const auto view = root_.find("tensorboard")) config_.events = view->boolean();
        if (const auto view = root_.find("judge_by")) config_.judge_by = view->text();
    }

    void read_report(const JsonView& view) {
        view.object({"profile", "mistakes"});
        if (const auto profile = view.find("profile")) config_.report.profile = profile->boolean();
        config_.report.mistakes = integer(view, "mistakes", 24, 0);
        if (config_.report.mistakes > 200)
            view.at("mistakes")
                .fail(cat("is ", config_.report.mistakes,
                          ", must be at most 200: pages with more are slow"));
    }

    std::string path(const JsonView& view) const { return (folder_ / view.name()).string(); }

    void read_solver(const JsonView& view) {
        view.object({"type", "learning_rate", "momentum", "nesterov", "beta1", "beta2", "epsilon",
                     "weight_decay", "clip_norm", "clip_value", "accumulate", "loss_scale",
                     "loss_scale_steps", "average"});
        SolverOptions& o = config_.solver;
        o.kind =
            static_cast<SolverOptions::Kind>(choice(view, "type", {"sgd", "adam", "adamw"}, 1));
        o.learning_rate = number(view, "learning_rate", o.learning_rate, positive);
        o.momentum = number(view, "momentum", 0, fraction);
        if (const auto nesterov = view.find("nesterov")) o.nesterov = nesterov->boolean();
        o.beta1 = number(view, "beta1", o.beta1, fraction);
        o.beta2 = number(view, "beta2", o.beta2, fraction);
        // A smaller number is zero as a float, and a parameter without a gradient would become 0 /
        // 0.
        o.epsilon = number(view, "epsilon", o.epsilon, at_least(std::numeric_limits<float>::min()));
        o.weight_decay = number(view, "weight_decay", 0, at_least(0));
        o.clip_norm = number(view, "clip_norm", 0, at_least(0));
        o.clip_value = number(view, "clip_value", 0, at_least(0));
        o.accumulate = integer(view, "accumulate", 1, 1);
        o.loss_scale = number(view, "loss_scale", o.loss_scale, at_least(0));
        o.average = number(view, "average", 0, fraction);
        o.loss_scale_steps = integer(view, "loss_scale_steps", o.loss_scale_steps, 1);
    }

    void read_shards(const JsonView& view) {
        const int shards = integer(root_, "shards", 1, 1);
        const auto batch = config_.batch;
        if (shards > batch)
            view.fail(cat("is ", shards, ", more than the ", batch,
                          " examples of a batch: a shard has at least one"));
        if (batch % shards != 0)
            view.fail(cat("is ", shards, ", which does not divide the batch of ", batch,
                          ": shards are of the same size"));
        if (shards > 1 && config_.solver.accumulate > 1)
            view.fail(cat("is ", shards, ", and solver.accumulate is ", config_.solver.accumulate,
                          ": only one of them can be above 1; more shards in a larger batch do "
                          "what both would"));
        config_.solver.shards = shards;
    }

    void read_checkpoints(const JsonView& view) {
        view.object({"every_epochs", "every_steps", "every_minutes", "keep", "keep_best"});
        TrainConfig::Checkpoints& c = config_.checkpoints;
        c.every_epochs = integer(view, "every_epochs", 1, 0);
        c.every_steps = integer(view, "every_steps", 0, 0);
        c.every_minutes = number(view, "every_minutes", 0, at_least(0));
        c.keep = integer(view, "keep", 1, 1);
        if (const auto best = view.find("keep_best")) c.keep_best = best->boolean();
    }

    static std::vector<std::string> names(const JsonView& object, std::string_view key) {
        std::vector<std::string> all;
        if (const auto list = object.find(key))
            for (const JsonView& name : list->array()) all.push_back(name.name());
        return all;
    }

    void read_initial(const JsonView& view) {
        view.object({"weights", "include", "exclude", "rename", "freeze"});
        TrainConfig::Initial& how = config_.initial;
        if (const auto file = view.find("weights")) {
            if (!config_.weights.empty())
                file->fail("is given, and \"weights\" too: only one of them can count");
            how.weights = path(*file);
        }
        how.include = names(view, "include");
        how.exclude = names(view, "exclude");
        how.freeze = names(view, "freeze");
        if (const auto rename = view.find("rename"))
            for (const auto& [from, to] : rename->object())
                how.rename.emplace_back(from, to.text());
    }

    void read_metrics(const JsonView& view) {
        config_.metrics.emplace();
        for (const JsonView& name : view.array()) {
            try {
                make_metric(name.text());
            } catch (const Error& error) {
                name.fail(cat("is '", name.text(), "': ", error.what()));
            }
            for (const std::string& other : *config_.metrics)
                if (other == name.text()) name.fail(cat("is '", other, "' for a second time"));
            config_.metrics->push_back(name.text());
        }
    }

    void read_order() {
        config_.any_order = choice(root_, "order", {"tree", "any"}, 0) == 1;
        if (config_.any_order && config_.solver.shards == 1)
            root_.at("order").fail(
                "is 'any', the order in which sums over the shards of a batch are added, and there "
                "is one shard: set \"shards\" to 2 or more");
    }

    void read_states() {
        config_.sharded_states = choice(root_, "states", {"whole", "sharded"}, 0) == 1;
        if (config_.sharded_states && config_.solver.shards == 1)
            root_.at("states").fail(
                "is 'sharded', which spreads the solver's state over the devices that compute the "
                "shards of a batch, and there is one shard: set \"shards\" to 2 or more");
    }

    void read_schedule(const JsonView& view) {
        view.object({"type", "warmup_epochs", "step_epochs", "gamma", "minimum", "patience"});
        using Kind = ScheduleOptions::Kind;
        ScheduleOptions& o = config_.schedule;
        o.kind =
            static_cast<Kind>(choice(view, "type", {"constant", "step", "cosine", "plateau"}, 0));
        o.warmup_epochs = number(view, "warmup_epochs", 0, at_least(0));
        o.step_epochs = number(view, "step_epochs", o.step_epochs, positive);
        // With a plateau schedule the rate falls. With a step schedule it may rise, which helps to
        // find out which rates a network tolerates.
        o.gamma = number(view, "gamma", o.gamma,
                         o.kind == Kind::plateau ? Range{0, 1, true, true} : positive);
        o.minimum = number(view, "minimum", 0, at_least(0));
        o.patience = integer(view, "patience", o.patience, 0);
        const std::string run = cat("the run has ", config_.epochs, " epochs",
                                    given_epochs_ > 0 ? ", as the command says" : "");
        if (o.warmup_epochs > config_.epochs)
            view.at("warmup_epochs")
                .fail(cat("is ", o.warmup_epochs, ", but ", run,
                          ": the learning rate would never be reached"));
        if (o.kind == Kind::cosine && o.minimum > config_.solver.learning_rate)
            view.at("minimum").fail(cat("is ", o.minimum, ", more than the learning rate of ",
                                        config_.solver.learning_rate,
                                        ": the cosine schedule decreases to it"));
        // This checks the file's own number of epochs: a run that the command line shortens may end
        // before the first step.
        if (given_epochs_ > 0) return;
        if (o.kind == Kind::step && view.find("step_epochs") && o.step_epochs >= config_.epochs)
            view.at("step_epochs")
                .fail(cat("is ", o.step_epochs, ", but ", run, ": there would be no step"));
        if (o.kind == Kind::plateau && view.find("patience") && o.patience >= config_.epochs)
            view.at("patience")
                .fail(cat("is ", o.patience, ", but ", run, ": the rate would never fall"));
    }

    JsonView root_;
    fs::path folder_;
    int given_epochs_;
    TrainConfig config_;
};

}  // namespace

TrainConfig read_train_config(const std::string& path, int epochs) {
    const JsonDocument document(read_file(path), path);
    TrainConfig config = Reader(document, fs::path(path).parent_path(), epochs).read();
    config.name = path;
    return config;
}

TrainConfig parse_train_config(std::string_view text, const std::string& name, int epochs) {
    const JsonDocument document(text, name);
    TrainConfig config = Reader(document, fs::path(), epochs).read();
    config.name = name;
    return config;
}

bool is_language_train_config(const std::string& path) {
    const JsonDocument document(read_file(path), path);
    return document.root().is_object() && document.root().find("language_model");
}

LanguageTrainConfig read_language_train_config(const std::string& path, int epochs) {
    const JsonDocument document(read_file(path), path);
    LanguageTrainConfig config =
        Reader(document, fs::path(path).parent_path(), epochs).read_language();
    config.common.name = path;
    return config;
}

}  // namespace dlprim
