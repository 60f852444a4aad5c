// SPDX-License-Identifier: MIT
// Tuning databases: JSON files of rows. The user's database takes precedence over the shipped one.
#include "engine/database.hpp"

#include "base/classic_numbers.hpp"
#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/embedded_databases.hpp"
#include "runtime/kernel_parameters.hpp"

#include <dlprim/error.hpp>
#include <dlprim/log.hpp>
#include <dlprim/tuning.hpp>
#include <dlprim/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace dlprim {

namespace {

using nlohmann::json;

constexpr std::uintmax_t max_file_bytes = 64u << 20;

/// Locks a database against other processes while it is read, changed and written. If the file
/// system does not support locks, the last writer wins.
class FileLock {
  public:
    explicit FileLock(const std::filesystem::path& path)
        : file_(::open((path.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        if (file_ >= 0) (void)::flock(file_, LOCK_EX);
    }
    ~FileLock() {
        if (file_ >= 0) ::close(file_);
    }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int file_;
};

/// Untrusted text, made safe for a message: at most 200 bytes, without control characters.
std::string shown(std::string_view text) {
    std::string out(text.substr(0, 200));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return out;
}

/// The parser's error message, without the name of the exception and without quotations of the
/// text, which may contain anything.
std::string complaint(const json::exception& error) {
    std::string_view text = error.what();
    const std::size_t name = text.find("] ");
    if (name != std::string_view::npos) text.remove_prefix(name + 2);
    return shown(text.substr(0, text.find("; last read")));
}

/// Rejects nesting far beyond that of a database, because the parser would use unlimited memory for
/// it.
void check_nesting(std::string_view text) {
    constexpr int most = 16;
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') quoted = !quoted;
        if (c == '\\' && quoted) ++i;
        if (quoted) continue;
        if (c == '[' || c == '{') ++depth;
        if (c == ']' || c == '}') --depth;
        require(depth <= most, "it is nested deeper than ", most, " levels");
    }
}

const json& member(const json& object, const char* name) {
    require(object.is_object(), "it is not an object");
    const auto found = object.find(name);
    require(found != object.end(), "it lacks '", name, "'");
    return *found;
}

std::string text_of(const json& object, const char* name) {
    const json& value = member(object, name);
    require(value.is_string(), "'", name, "' is not a string");
    return value.get<std::string>();
}

DatabaseRow parse_row(const json& item) {
    DatabaseRow row;
    row.device = text_of(item, "device");
    row.platform = text_of(item, "platform");
    row.driver = text_of(item, "driver");
    row.problem = text_of(item, "problem");
    row.source = text_of(item, "source");
    row.row.engine = text_of(item, "engine");
    return row;
}

bool is_int64(const json& value) {
    return value.is_number_unsigned() ? value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}
                                      : value.is_number_integer();
}

/// Reads what a row says about its engine. Returns false if the layout, tuning, time or mark is
/// invalid.
bool parse_measured(const json& item, TuningRow& row) {
    const json &layout = member(item, "layout"), &tuning = member(item, "tuning"),
               &seconds = member(item, "seconds");
    if (!layout.is_string() || !tuning.is_object() || !seconds.is_number()) return false;
    row.layout = layout.get<std::string>();
    row.seconds = seconds.get<double>();
    const auto computed = item.find("computed");
    if (computed != item.end() && !computed->is_boolean()) return false;
    row.computed = computed != item.end() && computed->get<bool>();
    for (const auto& [name, value] : tuning.items()) {
        if (!is_int64(value)) return false;
        row.tuning[name] = value.get<std::int64_t>();
    }
    return row.seconds > 0;
}

/// Returns the valid rows, and the number of those for which parse_measured() returns false.
std::pair<std::vector<DatabaseRow>, std::size_t> parse_rows(const json& items) {
    require(items.is_array(), "'rows' is not a list");
    std::vector<DatabaseRow> rows;
    std::size_t left_out = 0;
    for (const json& item : items) {
        try {
            DatabaseRow row = parse_row(item);
            if (parse_measured(item, row.row))
                rows.push_back(std::move(row));
            else
                ++left_out;
        } catch (const Error& error) {
            fail(error.kind(), "row ", rows.size() + left_out + 1, ": ", error.what());
        }
    }
    return {std::move(rows), left_out};
}

void check_format(const json& root) {
    const json& format = member(root, "format");
    require(format != 1,
            "it is of format 1, whose rows name tiles and layouts by numbers that no longer mean "
            "anything; tune again (dlprim_tune)");
    require(format == 2, "its format is not 2, the one that this version of the library reads");
}

void complain(const std::string& what, std::vector<std::string>* ignored) {
    const std::string line = "tuning database: " + what;
    log(LogLevel::warning, line);
    if (ignored != nullptr) ignored->push_back(line);
}

std::optional<std::filesystem::path> user_path() {
    if (auto path = env("DLPRIM_TUNING")) return std::filesystem::path(*path);
    if (env("DLPRIM_CACHE").value_or("1") == "0") return std::nullopt;
    if (auto folder = cache_dir()) return *folder / "tuning.json";
    return std::nullopt;
}

/// Whether a row may take the place of another one on the same problem and driver.
bool may_replace(const DatabaseRow& row, const DatabaseRow& old) {
    return !row.row.computed || old.row.computed;
}

/// The rows that this process knows, by device and problem.
class Knowledge {
  public:
    static Knowledge& instance() {
        static Knowledge* knowledge = new Knowledge;
        return *knowledge;
    }

    /// Whether there are rows of the device for any problem.
    bool has(const DeviceInfo& device) {
        const std::lock_guard lock(mutex_);
        load();
        const std::string first = key(device.name, "");
        const auto has = [&](const Index& index) {
            const auto found = index.lower_bound(first);
            return found != index.end() && found->first.starts_with(first);
        };
        return has(user_) || has(shipped_);
    }

    /// The rows of each source, in the order in which sources are consulted.
    std::vector<std::vector<TuningRow>> find(const DeviceInfo& device, const std::string& problem) {
        const std::lock_guard lock(mutex_);
        load();
        std::vector<std::vector<TuningRow>> sources;
        for (const bool computed : {false, true})
            for (const bool hint : {false, true})
                for (const Index* index : {&user_, &shipped_})
                    sources.push_back(select(*index, device, problem, hint, computed));
        return sources;
    }

    /// Counts the rows of the device by operator.
    std::vector<KnownRows> count(const DeviceInfo& device) {
        const std::lock_guard lock(mutex_);
        load();
        std::map<std::string, KnownRows> counts;
        for (const Index* index : {&user_, &shipped_})
            for (auto at = index->lower_bound(key(device.name, ""));
                 at != index->end() && at->first.starts_with(key(device.name, "")); ++at)
                for (const DatabaseRow& row : at->second)
                    if (row.platform == device.platform) count(row, counts);
        std::vector<KnownRows> all;
        for (auto& [type, rows] : counts) all.push_back(std::move(rows));
        return all;
    }

    std::vector<std::string> ignored() {
        const std::lock_guard lock(mutex_);
        load();
        return ignored_;
    }

    void add(const std::vector<DatabaseRow>& rows) {
        const std::lock_guard lock(mutex_);
        load();
        for (const DatabaseRow& row : rows) {
            auto& known = user_[key(row.device, row.problem)];
            std::erase_if(known, [&](const DatabaseRow& old) {
                return old.platform == row.platform && old.driver == row.driver &&
                       may_replace(row, old);
            });
        }
        insert(user_, rows);
    }

  private:
    using Index = std::map<std::string, std::vector<DatabaseRow>>;

    static std::string key(const std::string& device, const std::string& problem) {
        return device + '\n' + problem;
    }

    static void insert(Index& index, const std::vector<DatabaseRow>& rows) {
        for (const DatabaseRow& row : rows) index[key(row.device, row.problem)].push_back(row);
    }

    void load() {
        if (loaded_) return;
        loaded_ = true;
        insert(shipped_, shipped_database());
        if (const auto path = user_path()) insert(user_, load_database(*path, &ignored_));
    }

    /// Hashes can be cached, because a process's kernels do not change while it runs.
    bool is_fresh(const DatabaseRow& row) {
        auto found = hashes_.find(row.row.engine);
        if (found == hashes_.end()) {
            const Engine* engine = EngineRegistry::instance().find(row.row.engine);
            found = hashes_
                        .emplace(row.row.engine,
                                 engine == nullptr ? std::string() : source_hash(*engine))
                        .first;
        }
        return !found->second.empty() && found->second == row.source;
    }

    void count(const DatabaseRow& row, std::map<std::string, KnownRows>& counts) {
        const std::string type = row.problem.substr(0, row.problem.find(' '));
        KnownRows& rows = counts[type];
        rows.type = type;
        if (!is_fresh(row))
            ++rows.outdated;
        else if (row.row.computed)
            ++rows.computed;
        else
            ++rows.measured;
    }

    std::vector<TuningRow> select(const Index& index, const DeviceInfo& device,
                                  const std::string& problem, bool hint, bool computed) {
        std::vector<TuningRow> rows;
        const auto found = index.find(key(device.name, problem));
        if (found == index.end()) return rows;
        for (const DatabaseRow& row : found->second) {
            if ((row.driver == device.driver) == hint || row.platform != device.platform ||
                row.row.computed != computed)
                continue;
            // The outdated row may belong to the engine that is now the fastest, so no row counts.
            if (!is_fresh(row)) return {};
            const auto same = std::find_if(rows.begin(), rows.end(), [&](const TuningRow& other) {
                return other.engine == row.row.engine && other.layout == row.row.layout;
            });
            if (same != rows.end()) {  // hints of several drivers: keep the fastest
                if (row.row.seconds < same->seconds) *same = row.row;
            } else {
                rows.push_back(row.row);
            }
        }
        for (TuningRow& row : rows) row.hint = hint;
        std::sort(rows.begin(), rows.end(), [](const TuningRow& a, const TuningRow& b) {
            return std::tie(a.seconds, a.engine) < std::tie(b.seconds, b.engine);
        });
        return rows;
    }

    std::mutex mutex_;
    bool loaded_ = false;
    std::vector<std::string> ignored_;
    Index user_, shipped_;
    std::map<std::string, std::string> hashes_;  ///< by engine
};

/// Whether the device has its real traits. With DLPRIM_TRAITS it counts as another device, and no
/// rows are read or written.
bool is_as_itself() {
    return !env("DLPRIM_TRAITS");
}

}  // namespace

std::vector<TuningRow> lookup_tunings(ContextImpl& context, const Problem& problem,
                                      const std::function<bool(const TuningRow&)>& counts) {
    // The key of a problem takes longer than the look at whether anything is known of the device.
    if (!is_as_itself() || !Knowledge::instance().has(context.info())) return {};
    for (auto& rows : Knowledge::instance().find(context.info(), problem.key(false))) {
        if (counts) std::erase_if(rows, [&](const TuningRow& row) { return !counts(row); });
        if (!rows.empty()) return std::move(rows);
    }
    return {};
}

std::vector<std::string> ignored_tunings() {
    return is_as_itself() ? Knowledge::instance().ignored() : std::vector<std::string>();
}

void store_tunings(ContextImpl& context, const Problem& problem,
                   const std::vector<TuningRow>& rows) {
    if (!is_as_itself()) return;
    std::vector<DatabaseRow> all;
    for (const TuningRow& row : rows) {
        const Engine* engine = EngineRegistry::instance().find(row.engine);
        require(engine != nullptr, "there is no engine '", row.engine, "'");
        const DeviceInfo& device = context.info();
        all.push_back({device.name, device.platform, device.driver, problem.key(false),
                       source_hash(*engine), row});
    }
    Knowledge::instance().add(all);
    const auto path = user_path();
    if (!path) return;
    try {
        update_database(*path, all);
    } catch (const Error& error) {
        log(LogLevel::warning, cat("tuning database: ", error.what()));
    }
}

std::vector<DatabaseRow> parse_database(std::string_view text, std::string_view what,
                                        std::vector<std::string>* ignored) {
    const auto refuse = [&](std::string_view why) {
        fail(ErrorKind::invalid_argument, what, " is not a tuning database: ", why);
    };
    try {
        check_nesting(text);
        const ClassicNumbers classic;
        const json root = json::parse(text);
        check_format(root);
        auto [rows, left_out] = parse_rows(member(root, "rows"));
        if (left_out > 0)
            complain(cat(what, ": ", left_out, left_out == 1 ? " row is" : " rows are",
                         " left out: a layout is not a text, a tuning is not of whole numbers, a "
                         "time is not above 0, or \"computed\" is neither true nor false"),
                     ignored);
        return std::move(rows);
    } catch (const json::exception& error) {
        refuse(complaint(error));
    } catch (const Error& error) {
        refuse(error.what());
    }
    return {};
}

std::string print_database(const std::vector<DatabaseRow>& rows) {
    // Each row is on a line of its own, so that two versions of a shipped file can be compared.
    std::string text = "{\"format\": 2, \"rows\": [";
    const char* separator = "\n";
    for (const DatabaseRow& row : rows) {
        json item = {{"device", row.device},          {"platform", row.platform},
                     {"driver", row.driver},          {"problem", row.problem},
                     {"engine", row.row.engine},      {"layout", row.row.layout},
                     {"seconds", row.row.seconds},    {"source", row.source},
                     {"tuning", json(row.row.tuning)}};
        if (row.row.computed) item["computed"] = true;
        text += separator + item.dump(-1, ' ', false, json::error_handler_t::replace);
        separator = ",\n";
    }
    return text + "\n]}\n";
}

std::vector<DatabaseRow> load_database(const std::filesystem::path& path,
                                       std::vector<std::string>* ignored) {
    std::error_code code;
    if (!std::filesystem::exists(path, code)) return {};
    try {
        return parse_database(read_file(path, max_file_bytes), cat("'", path.string(), "'"),
                              ignored);
    } catch (const Error& error) {
        complain(cat(error.what(), "; it is ignored"), ignored);
        return {};
    }
}

void update_database(const std::filesystem::path& path, const std::vector<DatabaseRow>& rows) {
    std::error_code code;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), code);
    const FileLock lock(path);
    std::vector<DatabaseRow> all = load_database(path);
    const auto place = [](const DatabaseRow& row) {
        return std::tie(row.device, row.platform, row.driver, row.problem);
    };
    std::erase_if(all, [&](const DatabaseRow& old) {
        return std::any_of(rows.begin(), rows.end(), [&](const DatabaseRow& row) {
            return place(row) == place(old) && may_replace(row, old);
        });
    });
    all.insert(all.end(), rows.begin(), rows.end());
    std::sort(all.begin(), all.end(), [&](const DatabaseRow& a, const DatabaseRow& b) {
        return std::tuple_cat(place(a), std::tie(a.row.engine)) <
               std::tuple_cat(place(b), std::tie(b.row.engine));
    });
    write_file_atomically(path, print_database(all));
}

const std::vector<DatabaseRow>& shipped_database() {
    static const std::vector<DatabaseRow>* rows = [] {
        auto* all = new std::vector<DatabaseRow>;
        for (const EmbeddedDatabase* entry = embedded_databases; entry->path != nullptr; ++entry)
            for (DatabaseRow& row : parse_database(entry->text, cat("databases/", entry->path)))
                all->push_back(std::move(row));
        return all;
    }();
    return *rows;
}

std::vector<std::string> stale_rows(const std::vector<DatabaseRow>& rows) {
    std::vector<std::string> wrong;
    for (const DatabaseRow& row : rows) {
        const Engine* engine = EngineRegistry::instance().find(row.row.engine);
        if (engine == nullptr)
            wrong.push_back(cat(row.problem, ": there is no engine '", row.row.engine, "'"));
        else if (const std::string hash = source_hash(*engine); hash != row.source)
            wrong.push_back(cat(row.problem, ": ", row.row.engine, " was measured with source ",
                                row.source, "; it is ", hash, " now. Tune again"));
    }
    return wrong;
}

std::string source_hash(const Engine& engine) {
    std::string text;
    for (const std::string& path : engine.sources()) text += code_of(kernel_source(path));
    if (text.empty()) text = cat(engine.name(), " of ", DLPRIM_VERSION, engine.version());
    return hash_hex(text);
}

std::size_t export_tunings(const Context& context, const std::string& path) {
    const DeviceInfo& device = context.info();
    std::vector<DatabaseRow> rows;
    if (const auto user = user_path()) rows = load_database(*user);
    std::erase_if(rows, [&](const DatabaseRow& row) {
        return row.device != device.name || row.platform != device.platform;
    });
    if (rows.empty())
        fail(ErrorKind::not_found, "the tuning database has no rows for ", device.name,
             " yet; dlprim_tune measures engines and adds rows");
    write_file_atomically(path, print_database(rows));
    return rows.size();
}

std::vector<KnownRows> count_tunings(const DeviceInfo& device) {
    return is_as_itself() ? Knowledge::instance().count(device) : std::vector<KnownRows>();
}

std::size_t import_tunings(const std::string& path) {
    const auto user = user_path();
    if (!user)
        fail(ErrorKind::unsupported,
             "there is no place for a tuning database: caches are disabled and DLPRIM_TUNING is "
             "not set");
    const std::vector<DatabaseRow> rows =
        parse_database(read_file(path, max_file_bytes), cat("'", path, "'"));
    update_database(*user, rows);
    Knowledge::instance().add(rows);
    return rows.size();
}

}  // namespace dlprim
