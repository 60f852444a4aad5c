// SPDX-License-Identifier: MIT
// conv2d.blocked and conv2d_backward_data.blocked: direct convolution and its data gradient on
// CPUs, with blocked activations and packed weights (kernels/conv2d/blocked.cl). In grouped
// convolutions whose groups do not fill whole blocks, blocks read the channels of all groups that
// they have channels of, with weights of zero between different groups (reach.hpp).
#include "ops/conv2d/blocked/blocked.hpp"
#include "base/text.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

class Blocked : public ConvolutionEngine {
  public:
    explicit Blocked(const char* op) : ConvolutionEngine(op, "blocked") {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked.cl", "conv2d/blocked_pack.cl", "conv2d/blocked_pack_across.cl",
                "conv2d/blocked_subsample.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = blocked_verdict(device, problem); !verdict) return verdict;
        return groups_verdict(lying_geometry(problem));
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem, Layout::blocked(device.vector_width));
        const std::vector<DenseJob> all = jobs(problem);
        std::uint64_t bytes = 0;
        for (const DenseJob& job : all) bytes += packed_bytes(device, job);
        choice.inputs[1] = Layout::packed(pack_tag(device, all), std::max<std::uint64_t>(bytes, 4));
        if (!backward_ && has_bias(problem)) choice.inputs[2] = Layout::plain();
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = lying_geometry(problem);
        if (!subsampled(g)) return 0;
        return static_cast<std::uint64_t>(subsample_bytes(device, g));
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Geometry g = lying_geometry(problem);
        if (reaches_across(device, g.groups, g.group_in(), g.group_out()))
            return roofline_seconds(device, problem, g.flops() * waste(device, problem), 0.6);
        const auto whole = [&](std::int64_t channels) {
            const auto v = static_cast<double>(device.vector_width);
            return static_cast<double>(ceil_div(channels, device.vector_width)) * v /
                   static_cast<double>(channels);
        };
        return roofline_seconds(device, problem,
                                g.flops() * whole(g.group_in()) * whole(g.group_out()), 0.7);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const int bias = !backward_ && has_bias(problem) ? 2 : -1;
        std::uint64_t weight = 0;
        const int y = static_cast<int>(problem.inputs.size());
        const bool subsample = subsampled(lying_geometry(problem));
        if (subsample) add_subsampling(*launch, context, lying_geometry(problem), y + 1, 0);
        for (const DenseJob& job : jobs(problem)) {
            add_job(*launch, context, problem, job, {subsample ? y + 1 : 0, 1, weight, bias, y});
            weight += packed_bytes(context.traits(), job);
        }
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_jobs(context, jobs(problem));
    }

  private:
    std::vector<DenseJob> jobs(const Problem& problem) const {
        const Geometry g = lying_geometry(problem);
        if (backward_) return backward_data_jobs(g);
        DenseJob job = forward_job(subsampled(g) ? without_stride(g) : g);
        job.rounds_less = problem.by_itself;
        return {job};
    }

    // The products that are computed across groups, relative to those that the convolution needs.
    double waste(const Traits& device, const Problem& problem) const {
        const std::vector<DenseJob> all = jobs(problem);
        if (all.empty()) return 1;
        const DenseJob& job = all.front();
        const int v = group_lanes(device, job.groups, job.group_in, job.group_out);
        const auto lanes = static_cast<double>(job_tile(device, job).vectors * v *
                                               job_reach(device, job).all_lanes);
        return lanes / static_cast<double>(job.groups * job.group_in * job.group_out);
    }

    bool subsampled(const Geometry& g) const { return !backward_ && reads_subsample(g); }
};

}  // namespace

void add_blocked_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<Blocked>(op));
}

}  // namespace dlprim::conv2d
