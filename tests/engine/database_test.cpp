// SPDX-License-Identifier: MIT
// Tuning databases: files that are kept, damaged, or shared by processes, and rows that are stale.
#include "engine/database.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "plan/trust/trust_store.hpp"
#include "runtime/access.hpp"
#include "runtime/program.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/tuning.hpp>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

using namespace dlprim;

namespace {

std::filesystem::path fresh_file(const std::string& name) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("dlprim_database_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::filesystem::remove(folder / name);
    return folder / name;
}

const Engine& some_engine() {
    OperatorRegistry::instance();  // registers the engines, too
    return *EngineRegistry::instance().of("MatMul", true).at(0);
}

DatabaseRow row(const std::string& problem, double seconds) {
    return {"device",
            "platform",
            "driver",
            problem,
            source_hash(some_engine()),
            {std::string(some_engine().name()), "nchw", {{"rows", 4}}, seconds, false}};
}

}  // namespace

TEST_CASE("A database keeps rows that others wrote and replaces its own") {
    const auto path = fresh_file("rows.json");
    CHECK(load_database(path).empty());
    update_database(path, {row("a", 1), row("b", 2)});
    update_database(path, {row("b", 3)});
    const auto rows = load_database(path);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].problem == "a");
    CHECK(rows[1].row.seconds == 3);
    CHECK(rows[1].row.layout == "nchw");
    CHECK(rows[1].row.tuning == Tuning{{"rows", 4}});
    CHECK(parse_database(print_database(rows), "text").size() == 2);
}

TEST_CASE("A damaged database is ignored and replaced") {
    const auto path = fresh_file("damaged.json");
    for (const char* text :
         {"", "{", "[]", "{\"format\": 3, \"rows\": []}", "{\"format\": 1, \"rows\": []}",
          "{\"format\": 2, \"rows\": [7]}", "{\"format\": 2, \"rows\": [{\"device\": 3}]}"}) {
        INFO(text);
        std::ofstream(path) << text;
        CHECK(load_database(path).empty());
        CHECK_THROWS_AS(parse_database(text, "text"), Error);
    }
    update_database(path, {row("a", 1)});
    CHECK(load_database(path).size() == 1);
}

TEST_CASE("Rows whose layout, tuning or time is none are left out, and others count") {
    const std::string good = print_database({row("a", 1)});
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
        const std::string other =
            text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1);
        text = good;
        return text.insert(text.rfind(']'), "," + other);
    };
    const std::string rows = R"("rows":4)";
    for (const char* value :
         {R"("rows":"three")", R"("rows":4.5)", R"("rows":1e300)", R"("rows":18446744073709551615)",
          R"("rows":null)", R"("rows":[4])", R"("rows":{"rows":4})", R"("rows":true)"}) {
        INFO(value);
        CHECK(parse_database(with(rows, value), "text").size() == 1);
    }
    for (const char* value : {"[]", "3", "null", R"("rows")"}) {
        INFO(value);
        CHECK(parse_database(with(R"({"rows":4})", value), "text").size() == 1);
    }
    for (const char* value : {R"("layout":0)", R"("layout":null)"})
        CHECK(parse_database(with(R"("layout":"nchw")", value), "text").size() == 1);
    for (const char* value : {"-1", "0", "null", R"("fast")"})
        CHECK(parse_database(with("\"seconds\":1.0", cat("\"seconds\":", value)), "text").size() ==
              1);
    // Rows that no engine supports are read. The planner skips them.
    std::vector<std::string> ignored;
    parse_database(with(rows, R"("rows":null)"), "text", &ignored);
    REQUIRE(ignored.size() == 1);
    CHECK_THAT(ignored[0], ContainsSubstring("text: 1 row is left out"));
    for (const char* value : {R"("rows":-4)", R"("rows":1000000000000000000)"})
        CHECK(parse_database(with(rows, value), "text").size() == 2);
}

TEST_CASE("A database of format 1 says that it is to be tuned again") {
    CHECK_THROWS_WITH(parse_database("{\"format\": 1, \"rows\": []}", "text"),
                      ContainsSubstring("format 1") && ContainsSubstring("dlprim_tune"));
}

TEST_CASE("Stored rows are found, by this device, driver and problem alone") {
    const auto path = fresh_file("user.json");
    setenv("DLPRIM_TUNING", path.c_str(), 1);
    const Context context("cpu");
    const Engine& engine = some_engine();
    Problem problem;
    problem.op = "MatMul";
    const auto by_other = [&](const std::string& driver, const std::string& name,
                              const std::string& source) {
        DatabaseRow other = row(problem.key(false), 0.25);
        other.device = name;
        other.platform = context.info().platform;
        other.driver = driver;
        other.source = source;
        return other;
    };
    Problem hinted = problem;
    hinted.epilogue.resize(1);
    DatabaseRow hint = by_other("another driver", context.info().name, source_hash(engine));
    hint.problem = hinted.key(false);
    // If one row of a problem is out of date, none of its rows counts.
    Problem partly = problem;
    partly.phase = Phase::training;
    DatabaseRow fresh = by_other(context.info().driver, context.info().name, source_hash(engine));
    DatabaseRow stale = by_other(context.info().driver, context.info().name, "another source");
    fresh.problem = stale.problem = partly.key(false);
    stale.row.layout = "nhwc";
    update_database(path, {by_other(context.info().driver, context.info().name, "another source"),
                           by_other(context.info().driver, "another device", source_hash(engine)),
                           hint, fresh, stale});
    CHECK(lookup_tunings(Access::impl(context), problem).empty());
    CHECK(lookup_tunings(Access::impl(context), partly).empty());
    REQUIRE(lookup_tunings(Access::impl(context), hinted).size() == 1);
    CHECK(lookup_tunings(Access::impl(context), hinted)[0].hint);
    CHECK(lookup_tunings(Access::impl(context), hinted, [](const TuningRow&) {
              return false;
          }).empty());

    store_tunings(Access::impl(context), hinted,
                  {{std::string(engine.name()), "nchw", {{"rows", 8}}, 0.5, false}});
    const std::vector<TuningRow> found = lookup_tunings(Access::impl(context), hinted);
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found[0].hint);
    CHECK(found[0].tuning == Tuning{{"rows", 8}});

    // If no row of this driver counts, the rows of other drivers are consulted.
    const auto of_four_rows = [](const TuningRow& one) {
        return one.tuning == Tuning{{"rows", 4}};
    };
    REQUIRE(lookup_tunings(Access::impl(context), hinted, of_four_rows).size() == 1);
    CHECK(lookup_tunings(Access::impl(context), hinted, of_four_rows)[0].hint);

    // Each layout of an engine has its own row.
    store_tunings(Access::impl(context), hinted,
                  {{std::string(engine.name()), "nchw", {}, 0.5, false},
                   {std::string(engine.name()), "nhwc", {}, 0.25, false}});
    const std::vector<TuningRow> both = lookup_tunings(Access::impl(context), hinted);
    REQUIRE(both.size() == 2);
    CHECK(both[0].layout == "nhwc");
    CHECK(both[1].layout == "nchw");
    CHECK(load_database(path).size() == 7);
}

TEST_CASE("Computed rows count below measured ones, and replace none") {
    const auto path = fresh_file("computed.json");
    setenv("DLPRIM_TUNING", path.c_str(), 1);
    const Context context("cpu");
    ContextImpl& device = Access::impl(context);
    Problem problem;
    problem.op = "MatMul";
    problem.precision = Precision::tf32;
    const auto made = [&](const std::string& driver, double seconds, bool computed) {
        DatabaseRow one = row(problem.key(false), seconds);
        one.device = context.info().name;
        one.platform = context.info().platform;
        one.driver = driver;
        one.row.computed = computed;
        return one;
    };
    const DatabaseRow computed = made(context.info().driver, 0.125, true);
    const auto read = parse_database(print_database({computed, made("x", 1, false)}), "text");
    REQUIRE(read.size() == 2);
    CHECK(read[0].row.computed);
    CHECK_FALSE(read[1].row.computed);
    const std::string text = print_database({computed});
    std::string spoilt = text;
    spoilt.replace(spoilt.find("true"), 4, "1234");
    CHECK(parse_database(spoilt, "text").empty());

    const auto import = [&](const std::vector<DatabaseRow>& rows) {
        const auto file = fresh_file("import.json");
        std::ofstream(file) << print_database(rows);
        import_tunings(file.string());
        return lookup_tunings(device, problem);
    };
    auto found = import({computed});
    REQUIRE(found.size() == 1);
    CHECK(found[0].computed);
    // A slower row that another driver's device has measured is closer to the truth.
    found = import({made("another driver", 1, false)});
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found[0].computed);
    CHECK(found[0].hint);
    store_tunings(device, problem, {made("", 2, false).row});
    found = import({computed});
    REQUIRE(found.size() == 1);
    CHECK(found[0].seconds == 2);
    CHECK_FALSE(found[0].computed);

    DatabaseRow old = made(context.info().driver, 1, false);
    old.source = "another source";
    old.problem = "Softmax inference";
    import({old});
    for (const KnownRows& rows : known_rows(context)) {
        if (rows.type == "Softmax") CHECK(rows.outdated == 1);
        if (rows.type == "MatMul") {
            CHECK(rows.measured >= 2);
            CHECK(rows.computed == 1);
        }
    }
    CHECK(known_rows(context).size() >= 2);
}

TEST_CASE("Threads store and find rows and what checks of engines found") {
    const auto path = fresh_file("threads.json");
    setenv("DLPRIM_TUNING", path.c_str(), 1);
    constexpr int threads = 4, rounds = 6;
    const std::string engine(some_engine().name());
    std::atomic<int> lost{0};
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
        running.emplace_back([&, thread] {
            const Context context("cpu");
            ContextImpl& device = Access::impl(context);
            TrustStore& trust = TrustStore::of(device);
            for (int round = 0; round < rounds; ++round) {
                Problem problem;  // each thread's own, and one of all
                problem.op = round % 2 == 0 ? "MatMul" : cat("MatMul", thread);
                problem.precision = Precision::bf16;
                store_tunings(device, problem, {{engine, "nchw", {{"rows", 8}}, 0.5, false}});
                lost += lookup_tunings(device, problem).size() != 1;
                ignored_tunings();
                const std::string key = cat(std::string(30, 'e'), thread, round % 10);
                trust.add(key, {Trust::Kind::unknown, engine, "a test of threads"});
                lost += !trust.find(key).has_value() || trust.all().empty();
            }
        });
    for (std::thread& thread : running) thread.join();
    CHECK(lost == 0);
    CHECK(parse_database(read_file(path), "text").size() >= 2);
}

TEST_CASE("Rows shipped with the library are of today's sources") {
    OperatorRegistry::instance();  // registers the engines, too
    for (const std::string& line : stale_rows(shipped_database())) {
        INFO(line);
        CHECK(false);
    }
    // Check that the test can fail.
    DatabaseRow stale = row("a", 1);
    stale.source[0] = stale.source[0] == '0' ? '1' : '0';
    CHECK(stale_rows({row("a", 1)}).empty());
    CHECK(stale_rows({stale}).size() == 1);
    stale.row.engine = "none.such";
    CHECK(stale_rows({stale}).size() == 1);
}

TEST_CASE("Engines list the files that they compile, and no file that these include") {
    OperatorRegistry::instance();  // registers the engines, too
    for (const std::string& name : EngineRegistry::instance().names())
        for (const std::string& source : EngineRegistry::instance().find(name)->sources()) {
            INFO(name << " lists " << source);
            CHECK(source.ends_with(".cl"));
            CHECK_FALSE(kernel_source(source).empty());
        }
}

TEST_CASE("A file that is no database is refused with a sentence of ours") {
    const std::string row =
        R"("device": "d", "platform": "p", "driver": "v", "problem": "k", "source": "s", )";
    const auto with = [&](const std::string& rest) {
        return "{\"format\": 2, \"rows\": [{" + row + rest + "}]}";
    };
    const std::string good =
        R"("engine": "e", "layout": "nchw", "seconds": 1, "tuning": {"a": -3})";
    REQUIRE(parse_database(with(good), "text").size() == 1);
    const std::string open(100000, '['), deep_objects = [] {
        std::string text;
        for (int i = 0; i < 100000; ++i) text += "{\"a\":";
        return text;
    }();
    // Brackets inside strings are text.
    CHECK(parse_database(
              with(R"("engine": "\"[[[[[[[[[[[[[[[[[[", "layout": "", "seconds": 1, "tuning": {})"),
              "text")
              .size() == 1);
    struct {
        std::string text, words;
    } const bad[] = {
        {"", "unexpected end of input"},
        {"[1", "unexpected end of input"},
        {"\x89HDF\r\n", "invalid literal"},
        {"{\"\xff\": 1}", "UTF-8"},
        {"\"" + std::string(1 << 20, 'x'), "missing closing quote"},
        {"1e999", "number overflow"},
        {open, "nested deeper than 16 levels"},
        {open + std::string(100000, ']'), "nested deeper"},
        {deep_objects, "nested deeper"},
        {"null", "it is not an object"},
        {"[]", "it is not an object"},
        {"{}", "it lacks 'format'"},
        {R"({"format": "1", "rows": []})", "its format is not 2"},
        {R"({"format": 1.5, "rows": []})", "its format is not 2"},
        {R"({"format": 4294967297, "rows": []})", "its format is not 2"},
        {R"({"format": 18446744073709551615, "rows": []})", "its format is not 2"},
        {R"({"format": 2})", "it lacks 'rows'"},
        {R"({"format": 2, "rows": {}})", "'rows' is not a list"},
        {R"({"format": 2, "rows": "x"})", "'rows' is not a list"},
        {R"({"format": 2, "rows": [7]})", "row 1: it is not an object"},
        {R"({"format": 2, "rows": [{"device": 3}]})", "row 1: 'device' is not a string"},
        {R"({"format": 2, "rows": [{"device": null}]})", "row 1: 'device' is not a string"},
        {with(R"("engine": "e", "layout": "", "seconds": 1)"), "it lacks 'tuning'"},
        {with(R"("engine": "e", "seconds": 1, "tuning": {})"), "it lacks 'layout'"},
        {with(R"("engine": ["e"], "seconds": 1, "tuning": {})"), "'engine' is not a string"},
        {with(R"("engine": "e", "layout": "", "seconds": 1e400, "tuning": {})"), "number overflow"},
    };
    for (const auto& [text, words] : bad) {
        INFO(text.substr(0, 200));
        const std::string what = testing::message_of([&] { parse_database(text, "'f.json'"); });
        CHECK_THAT(what, ContainsSubstring("'f.json' is not a tuning database: ") &&
                             ContainsSubstring(words) && !ContainsSubstring("json.exception"));
        CHECK(what.size() < 300);
        CHECK(what.find('\n') == std::string::npos);
    }
}

TEST_CASE("A database that is no file is ignored, or refused where it was asked for") {
    const auto path = fresh_file("fifo.json");
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    ::alarm(60);
    CHECK(load_database(path).empty());
    CHECK_THROWS_AS(import_tunings(path.string()), Error);
    ::alarm(0);
}
