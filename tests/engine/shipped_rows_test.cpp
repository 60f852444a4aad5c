// SPDX-License-Identifier: MIT
// Checks that every row that the library ships names a layout and a tuning that its engine has on
// the row's device. No such device is needed: problems are parsed from the rows' keys, and the
// traits are those that the device's driver reports.
#include "engine/shipped_row.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace dlprim;

namespace {

/// Why a row would be skipped on its device; empty if it counts.
std::string wrong_with(const DatabaseRow& row) {
    const auto device = row_devices.find(row.device);
    if (device == row_devices.end()) return "this test has no traits of the device";
    const Problem problem = problem_of(row.problem);
    const Engine* engine = EngineRegistry::instance().find(row.row.engine);
    if (engine == nullptr) return "there is no such engine";
    if (const Verdict verdict = engine->is_applicable(device->second, problem); !verdict)
        return verdict.reason;
    if (const auto laid = laid_problem(*engine, device->second, row))
        return offers(*engine, device->second, *laid, row.row.tuning).reason;
    return "there is no such layout";
}

}  // namespace

TEST_CASE("Engines offer what rows shipped with the library name") {
    OperatorRegistry::instance();  // registers the engines, too
    const std::vector<DatabaseRow>& rows = shipped_database();
    CHECK(rows.size() > 1000);
    std::size_t tiles = 0;
    for (const DatabaseRow& row : rows) {
        tiles += row.row.tuning.count("rows");
        const std::string wrong = wrong_with(row);
        if (wrong.empty()) continue;
        INFO(row.row.engine << " for " << row.problem << ": " << wrong);
        CHECK(false);
    }
    CHECK(tiles > 1000);
    // Check that the test can fail: with a value that no tile has, with an invalid pair, and with
    // an invalid layout.
    const auto tiled = std::find_if(rows.begin(), rows.end(), [](const DatabaseRow& row) {
        return row.row.engine == "matmul.tiled" && row.row.tuning.at("rows") == 32;
    });
    REQUIRE(tiled != rows.end());
    DatabaseRow row = *tiled;
    CHECK(wrong_with(row).empty());
    row.row.tuning["rows"] = 1'000'000'000'000'000'000;
    CHECK_FALSE(wrong_with(row).empty());
    row.row.tuning["rows"] = 64;  // with 32 columns
    CHECK_FALSE(wrong_with(row).empty());
    row = *tiled;
    row.row.layout = "nhwc -> nhwc";
    CHECK_FALSE(wrong_with(row).empty());
}
