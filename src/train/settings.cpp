// SPDX-License-Identifier: MIT
// Settings of a training configuration.
#include "train/settings.hpp"

#include "base/text.hpp"

namespace dlprim {

namespace {

void add_solver(Settings& all, const SolverOptions& o) {
    using Kind = SolverOptions::Kind;
    const auto add = [&](const char* key, double value) {
        all.emplace_back(cat("solver.", key), exact(value));
    };
    all.emplace_back("solver.type", o.kind == Kind::sgd    ? "sgd"
                                    : o.kind == Kind::adam ? "adam"
                                                           : "adamw");
    add("learning_rate", o.learning_rate);
    if (o.kind == Kind::sgd) {
        add("momentum", o.momentum);
        all.emplace_back("solver.nesterov", o.nesterov ? "true" : "false");
    } else {
        add("beta1", o.beta1);
        add("beta2", o.beta2);
        add("epsilon", o.epsilon);
    }
    add("weight_decay", o.weight_decay);
    add("clip_norm", o.clip_norm);
    add("clip_value", o.clip_value);
    add("accumulate", o.accumulate);
    add("average", o.average);
}

void add_schedule(Settings& all, const TrainConfig& config) {
    using Kind = ScheduleOptions::Kind;
    const ScheduleOptions& o = config.schedule;
    const auto add = [&](const char* key, double value) {
        all.emplace_back(cat("schedule.", key), exact(value));
    };
    constexpr const char* names[] = {"constant", "step", "cosine", "plateau"};
    all.emplace_back("schedule.type", names[static_cast<int>(o.kind)]);
    add("warmup_epochs", o.warmup_epochs);
    if (o.kind == Kind::step) add("step_epochs", o.step_epochs);
    if (o.kind == Kind::step || o.kind == Kind::plateau) add("gamma", o.gamma);
    if (o.kind == Kind::plateau) add("patience", o.patience);
    if (o.kind == Kind::cosine) {
        add("minimum", o.minimum);
        all.emplace_back("epochs", cat(config.epochs));  // they decide the rate of every epoch
    }
}

}  // namespace

Settings settings_of(const TrainConfig& config) {
    Settings all{{"batch", cat(config.batch)}, {"seed", cat(config.seed)}};
    all.emplace_back("shards", cat(config.solver.shards));
    add_solver(all, config.solver);
    add_schedule(all, config);
    return all;
}

std::string text_of(const Settings& settings) {
    std::string text;
    for (const auto& [key, value] : settings) text += cat(key, " ", value, "\n");
    return text;
}

Settings parse_settings(const std::string& text) {
    Settings all;
    for (const std::string& line : split(text, '\n')) {
        const std::size_t space = line.find(' ');
        if (space != std::string::npos)
            all.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    return all;
}

std::string value_of(const Settings& settings, const std::string& key) {
    for (const auto& [name, value] : settings)
        if (name == key) return value;
    return {};
}

std::string changes(const Settings& before, const Settings& now) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : now) {
        const std::string old = value_of(before, key);
        if (!old.empty() && old != value)
            parts.push_back(cat(key, " ", value, " instead of ", old));
    }
    return join(parts, ", ");
}

}  // namespace dlprim
