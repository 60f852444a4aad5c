// SPDX-License-Identifier: MIT
// dlprim_flops: operations, bytes and parameters of a network by node, and the lower bound on the
// time that a device's arithmetic and bandwidth imply. Runs nothing.
#include "common.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace dlprim;

namespace {

struct Options {
    std::string device, net;
    bool backward = false;
    NetOptions how;
    tools::EngineOptions engines;
};

Net open(const Context& context, const Options& options) {
    NetOptions how = options.how;
    options.engines.set(how);
    how.progress = tools::terminal_progress();
    if (!options.backward) return tools::open_net(context, options.net, how);
    how.mode = Mode::training;
    how.output_gradients = !tools::open_net(context, options.net, how).has_loss();
    return tools::open_net(context, options.net, how);
}

void report(const Options& options) {
    const Context context(options.device);
    Net net = open(context, options);
    const std::vector<NodeReport> nodes = net.nodes();
    double gflop = 0, gbytes = 0, bound = 0;
    std::printf("%-44s %-26s %12s %10s %11s %10s\n", "node", "type", "GFLOP", "MB", "parameters",
                "bound ms");
    for (const NodeReport& node : nodes) {
        std::printf("%-44.44s %-26.26s %12.6f %10.3f %11lld %10.4f\n", node.name.c_str(),
                    node.type.c_str(), node.gflop, node.gbytes * 1e3,
                    static_cast<long long>(node.params), node.bound_ms);
        gflop += node.gflop;
        gbytes += node.gbytes;
        bound += node.bound_ms;
    }
    std::int64_t parameters = 0, trained = 0;
    for (const std::string& name : net.param_names()) {
        const std::int64_t count = net.param_shape(name).numel();
        parameters += count;
        if (net.is_trainable(name)) trained += count;
    }
    std::printf("work         %12.4f GFLOP (2 a multiply-add, convolutions and matrix products)\n",
                gflop);
    std::printf("bytes        %12.4f GB, operands read and written once\n", gbytes);
    std::printf("parameters   %12lld, %lld of them trained\n", static_cast<long long>(parameters),
                static_cast<long long>(trained));
    std::printf("planned peak %12.1f MiB\n",
                static_cast<double>(net.planned_peak_bytes()) / (1 << 20));
    std::printf("bound        %12.4f ms on %s: %.0f GFLOP/s, %.0f GB/s, estimated\n", bound,
                context.info().str().c_str(), context.traits().gflops,
                context.traits().gbytes_per_s);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Operations, bytes and parameters of a network, by node.", "dlprim_flops");
    app.add_option("NET", options.net, "network, JSON or ONNX")->required();
    tools::add_device_option(app, options.device);
    app.add_flag("-b", options.backward, "forward and backward");
    app.add_option("-B", options.how.batch, "batch size")->check(CLI::Range(1, 1 << 20));
    tools::add_precision_option(app, options.engines);
    return tools::run_command(app, argc, argv, [&] { report(options); });
}
