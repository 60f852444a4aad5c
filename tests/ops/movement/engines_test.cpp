// SPDX-License-Identifier: MIT
// Engines and gradient rules of data movement, pooling and interpolation over their tables of
// cases.
#include "ops/movement/graph_check.hpp"
#include "support/catch.hpp"
#include "support/json_cases.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

using namespace dlprim;

namespace {

using Json = nlohmann::json;

void check_table(const std::string& table) {
    std::ifstream file(CASES_DIR "/" + table + ".json");
    REQUIRE(file);
    for (const Json& entry : Json::parse(file)) {
        if (entry.value("speed", false) || testing::has_narrow_inputs(entry)) continue;
        // These become Pointwise nodes, or are gradients themselves.
        const Json& options = entry.at("options");
        if (entry.at("type") == "GlobalPooling" || options.value("global", false) ||
            !entry.value("gradient", true))
            continue;
        INFO(table << ": " << entry.at("name").get<std::string>());
        std::mt19937 random(1);
        std::vector<HostArray> inputs;
        for (const Json& input : entry.at("inputs"))
            inputs.push_back(random_array(Shape(input.at("shape").get<Ints>()),
                                          input.value("fill", "normal"), random,
                                          parse_dtype(input.value("dtype", "float"))));
        check_operator(entry.at("type").get<std::string>(),
                       testing::attrs_of(entry.value("options", Json::object())), inputs);
    }
}

}  // namespace

TEST_CASE("views") {
    for (const char* table : {"reshape", "flatten", "squeeze"}) check_table(table);
}
TEST_CASE("Concat") {
    check_table("concat");
}
TEST_CASE("Slice") {
    check_table("slice");
}
TEST_CASE("Transpose") {
    check_table("transpose");
}
TEST_CASE("Pad") {
    check_table("pad");
}
TEST_CASE("Pooling") {
    check_table("pooling");
}
TEST_CASE("Interpolation") {
    check_table("interpolation");
}
