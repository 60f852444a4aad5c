// SPDX-License-Identifier: MIT
// Times of launches and moves.
#include "api/placement/operator_times.hpp"

#include "api/placement/placed_net_impl.hpp"

#include <dlprim/solver.hpp>
#include <dlprim/tensor.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

namespace dlprim {

namespace {

constexpr int runs = 4;  // in the first of which drivers may still compile

/// The shortest of some copies between the devices.
double seconds_of_copy(const Context& from, const Context& to, std::int64_t floats) {
    Tensor source(from, Shape{floats}), target(to, Shape{floats});
    source.fill(0);
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < runs; ++i) {
        from.finish();
        to.finish();
        const auto begin = std::chrono::steady_clock::now();
        source.copy_to(target);
        to.finish();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        best = std::min(best, passed.count());
    }
    return best;
}

}  // namespace

LaunchTimes planned_times(const Plan& plan, const Context& context) {
    const double launch = context.traits().launch_us * 1e-6;
    LaunchTimes times;
    for (const Step& step : plan.steps) times.emplace_back(step.name, step.bound_seconds + launch);
    return times;
}

std::vector<NodeReport> fastest_profile(Net& net, bool backward) {
    std::vector<NodeReport> best;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < runs; ++i) {
        std::vector<NodeReport> nodes = net.profile(backward);
        double all = 0;
        for (const NodeReport& node : nodes) all += node.ms;
        if (all < least) best = std::move(nodes);
        least = std::min(least, all);
    }
    return best;
}

LaunchTimes measured_times(PlacedNetImpl& net, int part, const SolverOptions* solver) {
    Net own = Access::handle<Net>(net.shared_stage(part));
    std::unique_ptr<Solver> trains;
    if (solver != nullptr) {
        SolverOptions how = *solver;
        how.shards = 1;
        trains = std::make_unique<Solver>(own, how);
    }
    own.initialize();
    const double launch = own.context().traits().launch_us * 1e-6;
    LaunchTimes times;
    for (const NodeReport& node :
         fastest_profile(own, net.cut().parts[static_cast<std::size_t>(part)].backward))
        times.emplace_back(node.name, node.ms * 1e-3 + launch);
    return times;
}

std::optional<LinkTimes> measured_link(const std::vector<Context>& contexts) {
    constexpr std::int64_t few = 16, many = 2 << 20;
    std::optional<LinkTimes> link;
    for (const Context& from : contexts)
        for (const Context& to : contexts) {
            if (from == to) continue;
            const double small = seconds_of_copy(from, to, few);
            const double large = std::max(seconds_of_copy(from, to, many) - small, 1e-9);
            const double rate = static_cast<double>(many) * sizeof(float) / large;
            if (!link) link = LinkTimes{small, rate};
            link->seconds = std::max(link->seconds, small);
            link->bytes_per_second = std::min(link->bytes_per_second, rate);
        }
    return link;
}

}  // namespace dlprim
