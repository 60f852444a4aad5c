// SPDX-License-Identifier: MIT
// The first samples of a value share its memory. No launch copies them, and no reader sees writes
// that replace the whole value.
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "net/support.hpp"
#include "plan/make_plan.hpp"

#include <algorithm>
#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr std::size_t samples = 4, sample = 3 * 5 * 7;

/// The difference is the last reader of x and may be computed in place.
const char* const shared_json = R"({
  "inputs": [{"name": "data", "shape": [4, 3, 5, 7]}],
  "outputs": ["y"],
  "operators": [
    {"name": "x", "type": "Activation", "inputs": ["data"], "outputs": ["x"],
     "options": {"activation": "tanh"}},
    {"name": "first", "type": "Slice", "inputs": ["x"], "outputs": ["first"],
     "options": {"dim": 0, "begin": 0, "end": 1}},
    {"name": "y", "type": "Pointwise", "inputs": ["x", "first"], "outputs": ["y"],
     "options": {"code": "y0 = x0 - x1"}}]})";

}  // namespace

TEST_CASE("first samples cost no launch", "[shared_memory]") {
    ON_EVERY_DEVICE(device) {
        PlanOptions options{.build = false};
        Graph graph = build_graph(parse_net_json(shared_json, "test"), {}, 0, false);
        const std::unique_ptr<Plan> plan = make_plan(device, graph, options);
        CHECK(std::none_of(plan->steps.begin(), plan->steps.end(),
                           [](const Step& step) { return step.type == "Slice"; }));
        CHECK(plan->steps.size() == 2);
    }
}

TEST_CASE("first samples are not overwritten while they are read", "[shared_memory]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, shared_json, with_mode(Mode::inference));
        const std::vector<float> data = random_floats(samples * sample, 3);
        set_floats(net, "data", data);
        net.forward();
        std::vector<double> expected;
        for (std::size_t i = 0; i < data.size(); ++i)
            expected.push_back(std::tanh(static_cast<double>(data[i])) -
                               std::tanh(static_cast<double>(data[i % sample])));
        check_close(net.output("y").to_floats(), expected, 1e-6);
    }
}

// The result has as many bytes as the sums, but two elements in the place of each.
TEST_CASE("a result of a shorter type does not overwrite what it still reads", "[shared_memory]") {
    const char* const mixed_network = R"json({
      "inputs": [{"name": "x", "shape": [3, 2048]}, {"name": "h", "shape": [2, 2048], "dtype": "half"}],
      "outputs": ["z"],
      "operators": [
        {"name": "sums", "type": "Pointwise", "inputs": ["x"], "outputs": ["s"],
         "options": {"code": "y0 = sum[0](x0)", "keep_dim": true}},
        {"name": "added", "type": "Pointwise", "inputs": ["s", "h"], "outputs": ["y"],
         "options": {"code": "y0 = x0 + x1", "dtypes": ["half"]}},
        {"name": "turned", "type": "Transpose", "inputs": ["y"], "outputs": ["z"],
         "options": {"dims": [1, 0]}}
      ]
    })json";
    ON_EVERY_DEVICE(device) {
        NetOptions options{.fuse = false};
        Net net = make_net(device, mixed_network, options);
        constexpr std::size_t columns = 2048;
        std::vector<float> x, h, wanted;
        for (std::size_t i = 0; i < 3 * columns; ++i) x.push_back(static_cast<float>(i % 8));
        for (std::size_t i = 0; i < 2 * columns; ++i) h.push_back(static_cast<float>(i % 5));
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t i = 0; i < 2; ++i)
                wanted.push_back(3 * static_cast<float>(j % 8) + h[i * columns + j]);
        net.prepare();
        net.input("x").copy_from(x);
        net.input("h").copy_from(h);
        net.forward();
        CHECK(net.output("z").to_floats() == wanted);
    }
}
