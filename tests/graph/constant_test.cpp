// SPDX-License-Identifier: MIT
// The operator Constant, which imported networks have: literals of every type, and what is wrong
// with one. It takes no tensor, so that the table of cases, whose entries are eager calls, lacks
// it.
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <string>
#include <vector>

namespace {

dlprim::Net open_constant(const std::string& options) {
    return dlprim::Net::from_json(dlprim::Context("cpu"), R"({"inputs": [], "outputs": ["y"],
        "operators": [{"name": "c", "type": "Constant", "inputs": [], "outputs": ["c"],
                       "options": {)" + options + R"(}},
                      {"name": "y", "type": "Cast", "inputs": ["c"], "outputs": ["y"],
                       "options": {"dtype": "double"}}]})");
}

/// The constant's values, cast to double.
std::vector<double> values(const std::string& options) {
    dlprim::Net net = open_constant(options);
    net.forward();
    dlprim::Tensor y = net.output("y");
    std::vector<double> result(static_cast<std::size_t>(y.shape().numel()));
    y.copy_to_host(result.data(), result.size() * sizeof(double));
    return result;
}

}  // namespace

TEST_CASE("a Constant holds values of its type, one for all or each") {
    using Values = std::vector<double>;
    CHECK(values(R"("shape": [2, 2], "values": [0.5])") == Values{0.5, 0.5, 0.5, 0.5});
    CHECK(values(R"("shape": [3], "values": [1, -2.5, 3e8])") == Values{1, -2.5, 3e8});
    CHECK(values(R"("shape": [], "values": 7)") == Values{7});
    CHECK(values(R"("shape": [2], "dtype": "int64", "integers": [-1, 4611686018427387904])") ==
          Values{-1, 4611686018427387904.0});
    CHECK(values(R"("shape": [2], "dtype": "bool", "integers": [1, 0])") == Values{1, 0});
}

TEST_CASE("a Constant whose values do not fit its shape is refused") {
    CHECK_THROWS_AS(open_constant(R"("shape": [3], "values": [1, 2])"), dlprim::Error);
    CHECK_THROWS_AS(open_constant(R"("shape": [1099511627776, 1048576], "values": [1])"),
                    dlprim::Error);
    CHECK_THROWS_AS(open_constant(R"("shape": [0], "values": [1])"), dlprim::Error);
    CHECK_THROWS_AS(open_constant(R"("shape": [1], "values": [1], "integers": [1])"),
                    dlprim::Error);
    CHECK_THROWS_AS(open_constant(R"("shape": [1])"), dlprim::Error);
}
