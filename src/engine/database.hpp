// SPDX-License-Identifier: MIT
// Databases of what tuning found: how long the engines take for a problem on a device, with which
// tuning.
//
// Order of knowledge: the user's database (a JSON file: DLPRIM_TUNING, else tuning.json in the
// cache folder), then the one shipped with the library, then rows of another driver of the same
// device (a hint), else nothing (the planner then takes the lowest estimate). A plain run never
// writes. A row whose engine's source has changed since is as good as absent.
//
// A row names what it sets: its layout by LayoutChoice::name(), its tile by rows, columns and the
// like. So it outlives the tables and the models of its engine; whether the engine still offers it
// is for those to ask who use it (offers(), known_tunings() in plan/choose.hpp).
#pragma once

#include "engine/engine.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct TuningRow {
    std::string engine;
    std::string layout;  ///< LayoutChoice::name() of the layouts that it was measured with
    Tuning tuning;
    double seconds = 0;  ///< as measured when the row was made
    bool hint = false;   ///< measured with another driver
};

/// What is known of the problem (without layouts) on the context's device: the rows of all engines
/// that were measured, one a layout of theirs, the fastest first. Rows that `counts` says no to are
/// as good as absent; it is asked in that order.
std::vector<TuningRow> lookup_tunings(
    ContextImpl& context, const Problem& problem,
    const std::function<bool(const TuningRow&)>& counts = nullptr);
/// What of the user's database was ignored when this process read it, for the notes of plans.
std::vector<std::string> ignored_tunings();
/// Adds rows to the user's database in place of what it held on the problem, and writes it at once,
/// whole or not at all. Where it cannot be written the log says so, and this process knows the
/// rows.
void store_tunings(ContextImpl& context, const Problem& problem,
                   const std::vector<TuningRow>& rows);

/// A row as a file holds it.
struct DatabaseRow {
    std::string device, platform, driver;
    std::string problem;  ///< Problem::key(false)
    std::string source;   ///< source_hash() of the engine when it was measured
    TuningRow row;
};

/// Rows of a database's text: {"format": 2, "rows": [{"device", "platform", "driver", "problem",
/// "engine", "layout", "tuning", "seconds", "source"}, ...]}. Throws Error(invalid_argument) naming
/// `what`: also where the format is 1, whose rows named layouts and tiles by their places in
/// tables. Rows whose layout, tuning or time is no such thing are left out, and the log says how
/// many; so does `ignored`, if given.
std::vector<DatabaseRow> parse_database(std::string_view text, std::string_view what,
                                        std::vector<std::string>* ignored = nullptr);
std::string print_database(const std::vector<DatabaseRow>& rows);

/// Rows of the file; none where there is no such file, nor, with a line in the log and in
/// `ignored`, where it is damaged or of another format.
std::vector<DatabaseRow> load_database(const std::filesystem::path& path,
                                       std::vector<std::string>* ignored = nullptr);
/// Replaces the rows of the problems that `rows` are about, keeping what other processes have
/// written since. Throws Error(io).
void update_database(const std::filesystem::path& path, const std::vector<DatabaseRow>& rows);

/// Rows shipped with the library.
const std::vector<DatabaseRow>& shipped_database();
/// What is wrong with rows: engines that there are not, hashes that are not the source's; empty
/// when all is well. What the test of databases/ asks.
std::vector<std::string> stale_rows(const std::vector<DatabaseRow>& rows);

/// Dates an engine's rows: hash of its kernel sources, or of the library's version where it has
/// none.
std::string source_hash(const Engine& engine);

}  // namespace dlprim
