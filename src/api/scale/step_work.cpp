// SPDX-License-Identifier: MIT
// StepWork.
#include "api/scale/step_work.hpp"

#include "api/net_impl.hpp"
#include "api/placement/operator_times.hpp"
#include "api/shard_sums.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/solver.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace dlprim {

namespace {

/// Seconds of each step of the plan on a device with these peaks, at least.
std::vector<double> least_seconds(const Plan& plan, double gflops, double gbytes_per_s) {
    std::vector<double> seconds;
    for (const Step& step : plan.steps)
        seconds.push_back(std::max(step.flops / (gflops * 1e9), step.bytes / (gbytes_per_s * 1e9)));
    return seconds;
}

void scale_part(const Plan& plan, std::vector<double>& seconds, Part part, double want) {
    double have = 0;
    std::size_t steps = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        if (plan.steps[i].part != part) continue;
        have += seconds[i];
        ++steps;
    }
    for (std::size_t i = 0; i < seconds.size(); ++i)
        if (plan.steps[i].part == part)
            seconds[i] = have > 0 ? seconds[i] * want / have : want / static_cast<double>(steps);
}

double sum_of(const Plan& plan, const std::vector<double>& seconds, Part part) {
    double sum = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i)
        if (plan.steps[i].part == part) sum += seconds[i];
    return sum;
}

double loss_bytes(const NetImpl& net) {
    const Graph& graph = net.base_graph();
    double bytes = 0;
    for (const auto& [loss, weight] : graph.losses)
        bytes += static_cast<double>(graph.spec(loss).shape.numel()) *
                 static_cast<double>(size_of(graph.spec(loss).dtype));
    return bytes;
}

void add_parts(StepWork& work, NetImpl& net, const Plan& plan, const std::vector<double>& seconds,
               std::uint64_t range_bytes) {
    std::vector<double> end(plan.steps.size());  // since backward began
    double now = 0, first = -1;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        if (plan.steps[i].part == Part::backward) now += seconds[i];
        if (plan.steps[i].part == Part::backward && first < 0) first = now;
        end[i] = now;
    }
    work.parts.push_back({loss_bytes(net) + static_cast<double>(ShardSums::statistics_bytes(plan)),
                          std::max(first, 0.0)});
    for (const ShardSums::Range& range : ShardSums::ranges_of(plan, range_bytes))
        work.parts.push_back({static_cast<double>(range.end - range.begin) * sizeof(float),
                              end.at(range.last_step)});
}

}  // namespace

double StepWork::bytes() const {
    double all = 0;
    for (const Part& part : parts) all += part.bytes;
    return all;
}

StepWork work_of_step(Net& net, const Cluster& cluster, const ScaleOptions& options, int shards) {
    NetImpl& impl = Access::impl(net);
    SolverOptions how = options.solver;
    how.shards = shards;
    StepWork work;
    work.memory = cluster.gbytes_per_s * 1e9;
    std::unique_ptr<Plan> planned;
    std::unique_ptr<Solver> solver;
    const Plan* plan = nullptr;
    std::vector<double> seconds;
    if (options.measure) {
        solver = std::make_unique<Solver>(net, how);
        net.initialize();
        for (const NodeReport& node : fastest_profile(net, true)) seconds.push_back(node.ms * 1e-3);
        plan = &impl.built().executor->plan();
        work.source = cat("measured on ", net.context().info().str());
        work.memory = net.context().traits().gbytes_per_s * 1e9;
    } else {
        planned = impl.plan_step(&how);
        plan = planned.get();
        const Traits& host = net.context().traits();
        const bool peaks = cluster.gflops > 0;
        seconds = peaks ? least_seconds(*plan, cluster.gflops, cluster.gbytes_per_s)
                        : least_seconds(*plan, std::max(1.0, host.gflops),
                                        std::max(1.0, host.gbytes_per_s));
        work.source = cat(peaks ? "least times of " : "measured times of ", cluster.device);
        if (!peaks) {
            scale_part(*plan, seconds, Part::forward, cluster.forward_ms * 1e-3);
            scale_part(*plan, seconds, Part::backward, cluster.backward_ms * 1e-3);
            scale_part(*plan, seconds, Part::update, cluster.update_ms * 1e-3);
        }
    }
    require(!plan->gradient_marks.empty(),
            "the network has no gradients that devices could add up: none of its parameters is "
            "trained");
    work.forward = sum_of(*plan, seconds, Part::forward);
    work.backward = sum_of(*plan, seconds, Part::backward);
    work.update = sum_of(*plan, seconds, Part::update);
    add_parts(work, impl, *plan, seconds, options.range_bytes);
    return work;
}

}  // namespace dlprim
