// SPDX-License-Identifier: MIT
// read_train_config.
#include "train/config.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"

#include <cmath>
#include <filesystem>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

double number(const JsonView& object, std::string_view key, double otherwise, double minimum) {
    const auto view = object.find(key);
    if (!view) return otherwise;
    const double value = view->number();
    if (!(value >= minimum) || !std::isfinite(value))
        view->fail(cat("must be a number of at least ", minimum));
    return value;
}

int integer(const JsonView& object, std::string_view key, int otherwise, int minimum) {
    const auto view = object.find(key);
    if (!view) return otherwise;
    const std::int64_t value = view->integer();
    if (value < minimum || value > 1'000'000'000)
        view->fail(cat("must be an integer of at least ", minimum));
    return static_cast<int>(value);
}

/// One of `names`; its position.
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
    Reader(const JsonDocument& document, const fs::path& folder)
        : root_(document.root()), folder_(folder) {}

    TrainConfig read() {
        root_.object({"net", "weights", "data", "batch", "epochs", "seed", "initialization",
                      "solver", "schedule", "augmentation", "checkpoints", "on_nan", "precision"});
        config_.net = path(root_.at("net"));
        if (const auto view = root_.find("weights")) config_.weights = path(*view);
        read_data(root_.at("data"));
        config_.batch = integer(root_, "batch", 64, 1);
        config_.epochs = integer(root_, "epochs", 10, 1);
        config_.seed = static_cast<std::uint64_t>(integer(root_, "seed", 1, 0));
        const std::vector<std::string> methods{"default", "he", "xavier"};
        config_.initialization = methods[choice(root_, "initialization", methods, 0)];
        const std::vector<std::string> precisions{"fp32", "tf32", "fp16", "bf16"};
        if (root_.find("precision"))
            config_.precision =
                parse_precision(precisions[choice(root_, "precision", precisions, 0)]);
        config_.continue_on_nan = choice(root_, "on_nan", {"stop", "continue"}, 0) == 1;
        if (const auto view = root_.find("solver")) read_solver(*view);
        if (const auto view = root_.find("schedule")) read_schedule(*view);
        if (const auto view = root_.find("augmentation")) {
            view->object({"flip", "crop_pad"});
            if (const auto flip = view->find("flip")) config_.flip = flip->boolean();
            config_.crop_pad = integer(*view, "crop_pad", 0, 0);
        }
        if (const auto view = root_.find("checkpoints")) {
            view->object({"every_epochs", "keep"});
            config_.checkpoint_every = integer(*view, "every_epochs", 1, 1);
            config_.checkpoint_keep = integer(*view, "keep", 1, 1);
        }
        return config_;
    }

  private:
    std::string path(const JsonView& view) const { return (folder_ / view.name()).string(); }

    TrainConfig::Files files(const JsonView& view) const {
        view.object({"images", "labels"});
        return {path(view.at("images")), path(view.at("labels"))};
    }

    void read_data(const JsonView& data) {
        data.object({"type", "train", "test", "mean", "std"});
        choice(data, "type", {"idx"}, 0);
        config_.train = files(data.at("train"));
        if (const auto view = data.find("test")) config_.test = files(*view);
        if (const auto view = data.find("mean")) config_.mean = view->number();
        config_.std = number(data, "std", 1, 1e-12);
    }

    void read_solver(const JsonView& view) {
        view.object({"type", "learning_rate", "momentum", "nesterov", "beta1", "beta2", "epsilon",
                     "weight_decay", "clip_norm", "clip_value", "accumulate", "loss_scale",
                     "loss_scale_steps"});
        SolverOptions& o = config_.solver;
        o.kind =
            static_cast<SolverOptions::Kind>(choice(view, "type", {"sgd", "adam", "adamw"}, 1));
        o.learning_rate = number(view, "learning_rate", o.learning_rate, 0);
        o.momentum = number(view, "momentum", 0, 0);
        if (const auto nesterov = view.find("nesterov")) o.nesterov = nesterov->boolean();
        o.beta1 = number(view, "beta1", o.beta1, 0);
        o.beta2 = number(view, "beta2", o.beta2, 0);
        o.epsilon = number(view, "epsilon", o.epsilon, 1e-300);
        o.weight_decay = number(view, "weight_decay", 0, 0);
        o.clip_norm = number(view, "clip_norm", 0, 0);
        o.clip_value = number(view, "clip_value", 0, 0);
        o.accumulate = integer(view, "accumulate", 1, 1);
        o.loss_scale = number(view, "loss_scale", o.loss_scale, 0);
        o.loss_scale_steps = integer(view, "loss_scale_steps", o.loss_scale_steps, 1);
    }

    void read_schedule(const JsonView& view) {
        view.object({"type", "warmup_epochs", "step_epochs", "gamma", "minimum", "patience"});
        ScheduleOptions& o = config_.schedule;
        o.kind = static_cast<ScheduleOptions::Kind>(
            choice(view, "type", {"constant", "step", "cosine", "plateau"}, 0));
        o.warmup_epochs = number(view, "warmup_epochs", 0, 0);
        o.step_epochs = number(view, "step_epochs", o.step_epochs, 1e-9);
        o.gamma = number(view, "gamma", o.gamma, 0);
        o.minimum = number(view, "minimum", 0, 0);
        o.patience = integer(view, "patience", o.patience, 0);
    }

    JsonView root_;
    fs::path folder_;
    TrainConfig config_;
};

}  // namespace

TrainConfig read_train_config(const std::string& path) {
    const JsonDocument document(read_file(path), path);
    return Reader(document, fs::path(path).parent_path()).read();
}

}  // namespace dlprim
