// SPDX-License-Identifier: MIT
// Databases of tuning results: for a problem on a device, how long each engine takes and with which
// tuning.
//
// Sources are consulted in this order: the user's database (the JSON file that DLPRIM_TUNING names,
// else tuning.json in the cache folder); the database shipped with the library; rows of another
// driver of the same device, which are only hints. Rows that an offline compiler and a model have
// computed come after all that were measured. Without any row the planner uses the lowest estimate.
// Only tuning writes to a database. Rows are ignored if the source of their engine has changed
// since.
//
// A row names what it sets: the layout by LayoutChoice::name(), and the tile by rows, columns and
// so on. So it stays valid when tables and models in its engine change. Whoever uses a row must
// check whether the engine still has that tuning (offers(), and known_tunings() in
// plan/choose.hpp).
#pragma once

#include "engine/engine.hpp"

#include <dlprim/tuning.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct TuningRow {
    std::string engine;
    std::string layout;  ///< LayoutChoice::name() of the layouts it was measured with
    Tuning tuning;
    double seconds = 0;     ///< as measured when the row was made
    bool hint = false;      ///< made with another driver
    bool computed = false;  ///< made by an offline compiler and a model, not measured
};

/// Returns what is known about the problem (without layouts) on the context's device: for each
/// engine that was measured, one row per layout, the fastest first. Rows for which `counts` returns
/// false are ignored; it is called in that order.
std::vector<TuningRow> lookup_tunings(
    ContextImpl& context, const Problem& problem,
    const std::function<bool(const TuningRow&)>& counts = nullptr);
/// What was ignored in the user's database when this process read it, for the notes of plans.
std::vector<std::string> ignored_tunings();
/// Adds rows to the user's database, replaces what it held about the problem, and writes it at once
/// and atomically. If it cannot be written, a line is logged and only this process knows the rows.
void store_tunings(ContextImpl& context, const Problem& problem,
                   const std::vector<TuningRow>& rows);

/// known_rows() of a device. The engines must be registered.
std::vector<KnownRows> count_tunings(const DeviceInfo& device);

/// A row as a file stores it.
struct DatabaseRow {
    std::string device, platform, driver;
    std::string problem;  ///< Problem::key(false)
    std::string source;   ///< source_hash() of the engine when it was measured
    TuningRow row;
};

/// Parses the rows of a database: {"format": 2, "rows": [{"device", "platform", "driver",
/// "problem", "engine", "layout", "tuning", "seconds", "source"}, ...]}. A computed row also has
/// "computed": true. Other members of the file are ignored. Throws Error(invalid_argument), which
/// names `what`. That includes format 1, whose rows named layouts and tiles by their positions in
/// tables. Rows with an invalid layout, tuning, time or mark are left out. How many is logged, and
/// added to `ignored` if given.
std::vector<DatabaseRow> parse_database(std::string_view text, std::string_view what,
                                        std::vector<std::string>* ignored = nullptr);
std::string print_database(const std::vector<DatabaseRow>& rows);

/// Reads the rows of the file; empty if there is no such file. If the file is damaged or of another
/// format, it also returns no rows, and adds a line to the log and to `ignored`.
std::vector<DatabaseRow> load_database(const std::filesystem::path& path,
                                       std::vector<std::string>* ignored = nullptr);
/// Replaces the rows of the problems that `rows` cover, and keeps what other processes have written
/// in the meantime. Computed rows replace no measured ones. Throws Error(io).
void update_database(const std::filesystem::path& path, const std::vector<DatabaseRow>& rows);

/// The rows shipped with the library.
const std::vector<DatabaseRow>& shipped_database();
/// Lists what is wrong with rows: unknown engines, and hashes that differ from the source's. Empty
/// if all rows are valid. Used by the test of databases/.
std::vector<std::string> stale_rows(const std::vector<DatabaseRow>& rows);

/// The hash that identifies the version of an engine: of the tokens of its kernel sources with
/// their includes (code_of()), so that comments and layout do not count, or of the library's
/// version if it has none. It does not see what the preprocessor leaves of a kernel for one
/// problem, so renaming a macro or a parameter changes it, too: scripts/redate_rows.py proves that
/// programs are the same, and gives rows the new hash.
std::string source_hash(const Engine& engine);

}  // namespace dlprim
