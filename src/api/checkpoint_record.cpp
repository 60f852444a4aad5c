// SPDX-License-Identifier: MIT
// CheckpointRecord: made of a net, written, read and compared.
#include "api/checkpoint_record.hpp"

#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "graph/passes/run_again.hpp"

#include <dlprim/error.hpp>

#include <utility>

namespace dlprim {

namespace {

constexpr const char* precision_attribute = "precision";
constexpr const char* precisions_dataset = "solver/precisions";
constexpr const char* engines_dataset = "solver/engines";

std::string escaped(const std::string& name) {
    std::string text;
    for (const char c : name) {
        if (c == '%')
            text += "%25";
        else if (c == '\n')
            text += "%0A";
        else
            text += c;
    }
    return text;
}

std::string unescaped(const std::string& text) {
    std::string name;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string code = text.substr(i, 3);
        const bool percent = code == "%25", line = code == "%0A";
        name += percent ? '%' : line ? '\n' : text[i];
        if (percent || line) i += 2;
    }
    return name;
}

void write_lines(Hdf5Writer& file, const char* dataset, const std::string& lines) {
    if (!lines.empty())
        file.write(dataset, Shape{static_cast<std::int64_t>(lines.size())}, DType::u8,
                   lines.data());
}

/// The name on each line, and the text before it.
std::vector<std::pair<std::string, std::string>> read_lines(const Hdf5Reader& file,
                                                            const char* name) {
    std::vector<std::pair<std::string, std::string>> all;
    if (!file.has(name)) return all;
    const Hdf5Dataset& dataset = file.info(name);
    constexpr std::uint64_t most = 64 << 20;
    const auto refuse = [&](const char* why) {
        fail(ErrorKind::format, "'", name, "' in '", file.path(), "' ", why);
    };
    if (dataset.dtype != DType::u8 || dataset.bytes() > most)
        refuse("is not the text of a checkpoint record");
    const std::vector<std::byte> bytes = file.read(name);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const std::string& line : split(text, '\n')) {
        if (line.empty()) continue;
        const std::size_t space = line.find(' ');
        if (space == std::string::npos) refuse("has a line without a name");
        all.emplace_back(unescaped(line.substr(space + 1)), line.substr(0, space));
    }
    return all;
}

Precision read_precision(const Hdf5Reader& file, const std::string& text) {
    try {
        return parse_precision(text);
    } catch (const Error& error) {
        fail(ErrorKind::format, "'", file.path(), "': ", error.what());
    }
}

}  // namespace

CheckpointRecord record_of(NetImpl& net) {
    CheckpointRecord record;
    record.precision = net.options().precision;
    for (const auto& [name, precision] : net.precisions())
        if (precision != *record.precision) record.precisions[name] = precision;
    // What runs again has the engine of the node that it repeats.
    const auto repeats = [](const Step& step) {
        return step.part == Part::backward && step.name.ends_with(again_suffix);
    };
    for (const Step& step : net.built().executor->plan().steps)
        if (step.engine != nullptr && step.type != "Reorder" && step.type != "Pack" &&
            !repeats(step))
            record.engines[step.name] = step.engine->name();
    return record;
}

void write_record(Hdf5Writer& file, const CheckpointRecord& record) {
    if (record.precision)
        file.attribute("", precision_attribute, std::string(name_of(*record.precision)));
    std::string lines;
    for (const auto& [name, precision] : record.precisions)
        lines += cat(name_of(precision), " ", escaped(name), "\n");
    write_lines(file, precisions_dataset, lines);
    lines.clear();
    for (const auto& [name, engine] : record.engines)
        lines += cat(engine, " ", escaped(name), "\n");
    write_lines(file, engines_dataset, lines);
}

CheckpointRecord read_record(const Hdf5Reader& file) {
    CheckpointRecord record;
    if (const auto precision = file.attribute("", precision_attribute);
        precision && std::holds_alternative<std::string>(*precision))
        record.precision = read_precision(file, std::get<std::string>(*precision));
    for (const auto& [name, precision] : read_lines(file, precisions_dataset))
        record.precisions[name] = read_precision(file, precision);
    for (const auto& [name, engine] : read_lines(file, engines_dataset))
        record.engines[name] = engine;
    return record;
}

void check_precision(const std::string& path, const CheckpointRecord& made,
                     const CheckpointRecord& now) {
    if (!made.precision) return;
    constexpr const char* instead =
        "; to change it, begin anew from the checkpoint's parameters, which load as weights";
    require(*made.precision == *now.precision, "'", path, "' was trained in ",
            name_of(*made.precision), ", and this net computes in ", name_of(*now.precision),
            ": go on with the precision ", name_of(*made.precision),
            ", or by the command for training without one", instead);
    std::map<std::string, Precision> names = made.precisions;
    names.insert(now.precisions.begin(), now.precisions.end());
    for (const auto& [name, unused] : names) {
        const auto of = [&name = name](const CheckpointRecord& record) {
            const auto found = record.precisions.find(name);
            return found == record.precisions.end() ? *record.precision : found->second;
        };
        require(of(made) == of(now), "'", path, "' was trained with operator '", name, "' in ",
                name_of(of(made)), ", and this net computes it in ", name_of(of(now)),
                ": go on with the precision ", name, "=", name_of(of(made)), instead);
    }
}

std::vector<std::string> other_engines(const std::string& path, const CheckpointRecord& made,
                                       const CheckpointRecord& now) {
    if (made.engines.empty()) return {};
    std::map<std::string, std::string> nodes = made.engines;
    nodes.insert(now.engines.begin(), now.engines.end());
    std::string first;
    int more = 0;
    for (const auto& [name, unused] : nodes) {
        const auto by = [&name = name](const CheckpointRecord& record) -> std::string {
            const auto found = record.engines.find(name);
            return found == record.engines.end() ? "no launch of its own" : found->second;
        };
        if (by(made) == by(now)) continue;
        if (!first.empty())
            ++more;
        else
            first = cat("'", name, "' by ", by(made), ", now by ", by(now));
    }
    if (first.empty()) return {};
    return {cat("'", path, "' was made by other engines: ", first,
                more > 0 ? cat(", and ", more, more == 1 ? " node" : " nodes", " more") : "",
                "; results may differ from those of the interrupted run in their last bits")};
}

}  // namespace dlprim
