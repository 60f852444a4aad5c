// SPDX-License-Identifier: MIT
// Predicted steps through the public header; tests/commands/scale_test.py works out their times.
#include "net/support.hpp"

#include <dlprim/scale.hpp>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const scaled_json = R"({
  "inputs": [{"name": "data", "shape": [4, 256]}, {"name": "label", "shape": [4], "dtype": "int"}],
  "outputs": ["loss"],
  "operators": [
    {"name": "a", "type": "InnerProduct", "inputs": ["data"], "outputs": ["x"],
     "options": {"outputs": 256}},
    {"name": "b", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
     "options": {"outputs": 256}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["y", "label"], "outputs": ["loss"]}]})";

Net open_scaled(Mode mode = Mode::training) {
    NetOptions options{.mode = mode};
    return Net::from_json(Context("host"), scaled_json, options);
}

Cluster pair_of_devices() {
    Cluster cluster;
    cluster.forward_ms = 1;
    cluster.backward_ms = 2;
    cluster.update_ms = 1;
    cluster.levels = {{"wire", 2, 1e-3, 0}};
    return cluster;
}

}  // namespace

TEST_CASE("ranges of gradients leave beside backward", "[scale]") {
    Net net = open_scaled();
    const Cluster cluster = pair_of_devices();
    ScaleOptions options;
    const ScaleReport whole = predict_step(net, cluster, options);
    options.range_bytes = 64 << 10;
    const ScaleReport cut = predict_step(net, cluster, options);
    CHECK(whole.parts.size() == 2);  // the loss, and all gradients
    CHECK(cut.parts.size() > 8);
    CHECK(whole.gradient_bytes == cut.gradient_bytes);
    CHECK(whole.gradient_bytes >= 4.0 * 2 * (256 * 256 + 256));
    REQUIRE(cut.points.size() == 2);
    CHECK(cut.points[1].bound == "link of wire");
    // The gradient of "b" is complete before that of "a".
    CHECK(cut.points[1].step_ms < whole.points[1].step_ms - 0.1);
    CHECK(cut.points[1].exchange_ms == Approx(whole.points[1].exchange_ms));
    CHECK(cut.points[1].step_ms ==
          Approx(cut.points[1].compute_ms + cut.points[1].wait_ms).epsilon(1e-9));
}

TEST_CASE("a step that is measured leaves a net that runs", "[scale]") {
    Net net = open_scaled();
    ScaleOptions options;
    options.measure = true;
    options.shards = 2;
    Cluster cluster;
    cluster.levels = {{"wire", 2, 10, 1}};
    const ScaleReport report = predict_step(net, cluster, options);
    CHECK(report.forward_ms > 0);
    CHECK(report.backward_ms > 0);
    CHECK(report.update_ms > 0);
    for (const std::string& name : net.input_names()) net.input(name).fill(0);
    net.forward();
    CHECK(net.output("loss").to_floats().at(0) > 0);
}

TEST_CASE("clusters and numbers that are wrong are refused", "[scale]") {
    Net net = open_scaled();
    const auto refuse = [&](const Cluster& cluster, const ScaleOptions& options,
                            const std::string& words) {
        CHECK_THROWS_WITH(predict_step(net, cluster, options), ContainsSubstring(words));
    };
    Cluster cluster = pair_of_devices();
    cluster.levels[0].gbytes_per_s = 0;
    refuse(cluster, {}, "level 'wire'");
    cluster = pair_of_devices();
    cluster.levels.assign(4, {"wire", 60000, 1, 0});
    refuse(cluster, {}, "more than 65536 devices");
    cluster = pair_of_devices();
    cluster.levels.push_back({"net", 2, 1, 0, ClusterLevel::Way::peer});
    refuse(cluster, {}, "level 'net' of the cluster exchanges through memory");
    cluster = pair_of_devices();
    cluster.wake_us = -1;
    refuse(cluster, {}, "wake_us");
    cluster = pair_of_devices();
    cluster.gflops = 1;
    refuse(cluster, {}, "in the place of gflops");
    cluster = Cluster{};
    refuse(cluster, {}, "nothing says what a device of the cluster computes");
    cluster.gflops = 1;
    refuse(cluster, {}, "must both be above 0");
    ScaleOptions options;
    options.devices = {3};
    refuse(pair_of_devices(), options, "a step on 3");
    Net inference = open_scaled(Mode::inference);
    CHECK_THROWS_WITH(predict_step(inference, pair_of_devices()),
                      ContainsSubstring("opened for training"));
    CHECK_THROWS_WITH(parse_cluster(R"({"level": []})", "here"), ContainsSubstring("'levels'"));
}
