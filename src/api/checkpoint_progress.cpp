// SPDX-License-Identifier: MIT
// CheckpointProgress.
#include "api/checkpoint_progress.hpp"

#include "base/text.hpp"

#include <variant>

namespace dlprim {

namespace {

std::map<std::string, double> read_extra(const Hdf5Reader& file) {
    std::map<std::string, double> extra;
    const auto names = file.attribute("", "extra_names");
    if (!names || !std::holds_alternative<std::string>(*names)) return extra;
    for (const std::string& name : split(std::get<std::string>(*names), ',')) {
        const auto value = file.attribute("", "extra_" + name);
        if (value && std::holds_alternative<double>(*value)) extra[name] = std::get<double>(*value);
    }
    return extra;
}

}  // namespace

void write_progress(Hdf5Writer& file, const CheckpointProgress& progress) {
    file.attribute("", "solver_updates", static_cast<std::int64_t>(progress.updates));
    file.attribute("", "solver_batches", static_cast<std::int64_t>(progress.batches));
    if (progress.shards > 1)
        file.attribute("", "shards", static_cast<std::int64_t>(progress.shards));
    file.attribute("", "random_step", static_cast<std::int64_t>(progress.random_step));
    if (progress.seed) file.attribute("", "random_seed", static_cast<std::int64_t>(*progress.seed));
    if (progress.rate) file.attribute("", "learning_rate", *progress.rate);
    Strings names;
    Doubles values;
    for (const auto& [name, value] : progress.extra) {
        require(!name.empty() && name.find(',') == std::string::npos,
                "a checkpoint's number cannot be called '", name,
                "': names are not empty and hold no comma");
        names.push_back(name);
        values.push_back(value);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        file.attribute("", "extra_" + names[i], values[i]);
    if (!names.empty()) file.attribute("", "extra_names", join(names, ","));
}

CheckpointProgress read_progress(const Hdf5Reader& file) {
    const auto integer = [&](const char* name) {
        const auto value = file.attribute("", name);
        const auto* found = value ? std::get_if<std::int64_t>(&*value) : nullptr;
        if (found == nullptr || *found < 0)
            fail(ErrorKind::format, "'", file.path(),
                 "' is not a checkpoint: it has no attribute '", name,
                 "'; weights alone are loaded with load_weights()");
        return static_cast<std::uint64_t>(*found);
    };
    CheckpointProgress progress;
    progress.updates = integer("solver_updates");
    progress.batches = integer("solver_batches");
    progress.random_step = integer("random_step");
    const auto seed = file.attribute("", "random_seed"), rate = file.attribute("", "learning_rate"),
               shards = file.attribute("", "shards");
    if (shards && std::holds_alternative<std::int64_t>(*shards))
        progress.shards = static_cast<int>(std::get<std::int64_t>(*shards));
    if (seed && std::holds_alternative<std::int64_t>(*seed))
        progress.seed = static_cast<std::uint64_t>(std::get<std::int64_t>(*seed));
    if (rate && std::holds_alternative<double>(*rate)) progress.rate = std::get<double>(*rate);
    progress.extra = read_extra(file);
    return progress;
}

void check_shards(const Hdf5Reader& file, const CheckpointProgress& made, int shards) {
    if (made.shards != shards)
        fail(ErrorKind::invalid_argument, "'", file.path(), "' was made with shards ", made.shards,
             ", and this solver has shards ", shards,
             ": go on with the same number, or begin anew with its weights");
}

}  // namespace dlprim
