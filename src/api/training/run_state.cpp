// SPDX-License-Identifier: MIT
// RunState in checkpoints. Numbers are attributes. In the group "run" are the sums of the metrics,
// the history as a table of doubles, and, as uint8 text, the table's columns and the settings.
#include "api/training/run_state.hpp"

#include "api/solver_impl.hpp"
#include "base/text.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

namespace dlprim {

namespace {

constexpr const char* settings_dataset = "run/settings";
constexpr const char* columns_dataset = "run/columns";
constexpr const char* history_dataset = "run/history";
constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

std::string sums_dataset(const Metric& metric) {
    return cat("run/sums_", metric.name());
}

void write_text(Hdf5Writer& file, const char* name, const std::string& text) {
    file.write(name, Shape{static_cast<std::int64_t>(text.size())}, DType::u8, text.data());
}

/// Without the last column, the seconds: the same state gives the same bytes, however long it took.
void write_history(Hdf5Writer& file, const RunHistory& history) {
    std::vector<std::string> columns = history.columns();
    columns.pop_back();
    std::vector<double> table;
    for (const EpochMetrics& epoch : history.epochs) {
        const std::vector<double> row = history.row(epoch);
        table.insert(table.end(), row.begin(), row.end() - 1);
    }
    write_text(file, columns_dataset, join(columns, ","));
    file.write(history_dataset,
               Shape{static_cast<std::int64_t>(history.epochs.size()),
                     static_cast<std::int64_t>(columns.size())},
               DType::f64, table.data());
}

/// A dataset of doubles or text that a run wrote; empty if there is none.
std::vector<std::byte> read_small(const Hdf5Reader& file, const std::string& name, DType dtype) {
    if (!file.has(name)) return {};
    const Hdf5Dataset& dataset = file.info(name);
    if (dataset.dtype != dtype || dataset.bytes() > most_bytes)
        fail(ErrorKind::format, "'", name, "' in '", file.path(), "' is not what a run wrote");
    return file.read(name);
}

std::string read_text(const Hdf5Reader& file, const std::string& name) {
    const std::vector<std::byte> bytes = read_small(file, name, DType::u8);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<double> read_doubles(const Hdf5Reader& file, const std::string& name) {
    const std::vector<std::byte> bytes = read_small(file, name, DType::f64);
    std::vector<double> values(bytes.size() / sizeof(double));
    convert(bytes.data(), DType::f64, values.data(), DType::f64, values.size());
    return values;
}

void read_history(const Hdf5Reader& file, RunHistory& history) {
    const std::vector<std::string> columns = split(read_text(file, columns_dataset), ',');
    const std::vector<double> table = read_doubles(file, history_dataset);
    for (std::size_t at = 0; at + columns.size() <= table.size(); at += columns.size())
        history.epochs.push_back(history.epoch_of(
            columns, {table.begin() + static_cast<std::ptrdiff_t>(at),
                      table.begin() + static_cast<std::ptrdiff_t>(at + columns.size())}));
}

/// The history of a checkpoint. The seconds, and all of it for old checkpoints, come from
/// metrics.csv next to it, unless it was moved, or in the run's folder.
void load_history(const Hdf5Reader& file, const std::string& folder, RunState& state) {
    RunHistory saved = state.history, told = state.history;
    read_history(file, saved);
    read_metrics(std::filesystem::path(file.path()).parent_path().string(), told);
    if (told.epochs.empty()) read_metrics(folder, told);
    if (saved.epochs.empty()) saved = told;
    for (EpochMetrics& epoch : saved.epochs) {
        if (epoch.epoch > state.epochs_done) continue;
        epoch.seconds = 0;
        for (const EpochMetrics& other : told.epochs)
            if (other.epoch == epoch.epoch) epoch.seconds = other.seconds;
        state.history.epochs.push_back(epoch);
    }
}

/// The numbers that a checkpoint holds, with what is said about those that make no sense.
class Numbers {
  public:
    Numbers(const std::string& path, const std::map<std::string, double>& values)
        : path_(path), values_(values) {}

    double number(const char* name, double otherwise) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    std::int64_t count(const char* name, const char* what, double most) const {
        const double value = number(name, 0);
        if (!(value >= 0 && value <= most) || value != std::floor(value))
            fail(ErrorKind::format, "'", path_, "' is damaged: it says that ", value, what);
        return static_cast<std::int64_t>(value);
    }

  private:
    const std::string& path_;
    const std::map<std::string, double>& values_;
};

/// Position and sums in an epoch that had begun.
void read_position(const Hdf5Reader& file, const Numbers& saved, const std::string& changed,
                   RunState& state) {
    constexpr double most = 9007199254740992;  // 2^53: doubles hold all integers up to it
    state.batches_done = saved.count("batches_done", " batches are done", most);
    if (state.batches_done == 0) return;
    const std::int64_t batches = saved.count("batches", " batches are an epoch", most);
    if (batches != state.batches)
        fail(
            ErrorKind::invalid_argument, "'", file.path(), "' stopped after ", state.batches_done,
            " of ", batches, " batches of an epoch, and an epoch now has ", state.batches,
            changed.empty() ? "" : cat(" (", changed, ")"),
            ": go on with the data and batch of that run, or from the checkpoint of a whole epoch");
    if (state.batches_done > batches)
        fail(ErrorKind::format, "'", file.path(), "' is damaged: it says that ", state.batches_done,
             " of ", batches, " batches are done");
    EpochSums& sums = state.sums;
    sums.loss = saved.number("loss_sum", 0);
    sums.counted = saved.count("batches_counted", " batches count", most);
    sums.learning_rate = saved.number("last_learning_rate", 0);
    sums.seconds = saved.number("seconds", 0);
    for (const auto& metric : sums.judges.metrics())
        metric->restore(read_doubles(file, sums_dataset(*metric)));
}

}  // namespace

void save_run(const std::string& path, const RunState& state, Solver& solver) {
    Hdf5Writer file(path);
    std::map<std::string, double> numbers{
        {"epochs_done", state.epochs_done},
        {"schedule_factor", state.schedule.factor},
        {"schedule_best", state.schedule.best},
        {"schedule_waited", state.schedule.epochs_without_improvement},
        {"best_epoch", state.best_epoch},
        {"epochs_without_improvement", state.epochs_without_improvement}};
    if (state.best) numbers["best"] = *state.best;
    if (state.reference) numbers["reference"] = *state.reference;
    if (state.batches_done > 0) {
        numbers["batches_done"] = static_cast<double>(state.batches_done);
        numbers["batches"] = static_cast<double>(state.batches);
        numbers["loss_sum"] = state.sums.loss;
        numbers["batches_counted"] = static_cast<double>(state.sums.counted);
        numbers["last_learning_rate"] = state.sums.learning_rate;
        numbers["seconds"] = state.sums.seconds;
    }
    core_of(solver).write_checkpoint(file, numbers);
    write_text(file, settings_dataset, text_of(state.settings));
    write_history(file, state.history);
    if (state.batches_done > 0) {
        for (const auto& metric : state.sums.judges.metrics())
            file.write(sums_dataset(*metric),
                       Shape{static_cast<std::int64_t>(metric->sums().size())}, DType::f64,
                       metric->sums().data());
    }
    file.commit();
}

std::string load_run(const std::string& path, const std::string& folder, RunState& state,
                     Solver& solver) {
    const Hdf5Reader file(path);
    const Settings before = parse_settings(read_text(file, settings_dataset));
    const std::string changed = changes(before, state.settings);
    std::map<std::string, double> numbers;
    try {
        numbers = core_of(solver).read_checkpoint(file);
    } catch (const Error& error) {
        if (changed.empty()) throw;
        throw Error(error.kind(), cat(error.what(), "; this run has ", changed));
    }
    const Numbers saved(path, numbers);
    state.epochs_done = static_cast<int>(
        saved.count("epochs_done", " epochs are done", std::numeric_limits<int>::max()));
    read_position(file, saved, changed, state);
    state.schedule.factor = saved.number("schedule_factor", 1);
    state.schedule.best = saved.number("schedule_best", 1e300);
    state.schedule.epochs_without_improvement = saved.number("schedule_waited", 0);
    if (numbers.count("best")) state.best = numbers["best"];
    if (numbers.count("reference")) state.reference = numbers["reference"];
    constexpr double most = std::numeric_limits<int>::max();
    state.best_epoch = static_cast<int>(saved.count("best_epoch", " is the best epoch", most));
    state.epochs_without_improvement = static_cast<int>(
        saved.count("epochs_without_improvement", " epochs have brought no improvement", most));
    load_history(file, folder, state);
    if (changed.empty()) return {};
    return cat("'", path, "' goes on with other settings than it was made with: ", changed);
}

}  // namespace dlprim
