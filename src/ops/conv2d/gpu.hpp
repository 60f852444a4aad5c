// SPDX-License-Identifier: MIT
// What convolution engines on GPUs share: which problems they take, and how they pose them to
// engine/matrix.
#pragma once

#include "engine/engine.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/float_tile.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/parts.hpp"
#include "engine/storage.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/options.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::conv2d {

/// No, with the reason, unless all operands are float and every index that kernels count in 32
/// bits fits.
Verdict index_verdict(const Problem& problem);
/// The same, where images (not weights, bias, filter gradients) may be f16 and bf16, too.
Verdict narrow_index_verdict(const Problem& problem);
/// That, and the smallest tile fits the device.
Verdict implicit_gemm_verdict(const Traits& device, const Problem& problem);

/// No unless all is float, but images and epilogue operands, which may be f16 and bf16, too.
Verdict image_verdict(const Problem& problem);
/// Compiler options of a kernel that reads and writes the problem's images, A being its first
/// input, B the second of a filter gradient; C the output, or the parts of a split sum: those are
/// float.
std::string image_options(const Problem& problem, bool split);

/// Bytes of the output as float: parts of split sums are.
double output_bytes(const Problem& problem);
/// Bytes of the workspace for the parts of a split sum.
std::uint64_t split_bytes(const Problem& problem, std::int64_t splits);
/// Seconds of a launch for each job, `of_job(job)`, and of the sum of `splits` parts. They are at
/// least those of moving all operands at a share of the device's bandwidth.
template <typename OfJob>
double jobs_seconds(const Traits& device, const Problem& problem, std::int64_t splits, double share,
                    OfJob&& of_job) {
    double seconds = 0;
    for (const DenseJob& job : jobs_of(problem)) seconds += of_job(job) + device.launch_us * 1e-6;
    seconds += parts_seconds(device, output_bytes(problem), splits);
    return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, share));
}
/// The size, `size_of(job)`, of the job with the most work, which decides about tunings.
template <typename SizeOf>
auto largest_size(const Problem& problem, SizeOf&& size_of) {
    const auto work = [](const auto& s) {
        if constexpr (requires { s.steps; })
            return static_cast<double>(s.rows * s.columns) * static_cast<double>(s.steps);
        else
            return static_cast<double>(s.rows * s.columns) *
                   static_cast<double>(s.depth * s.batches);
    };
    std::vector<decltype(size_of(DenseJob()))> sizes;
    for (const DenseJob& job : jobs_of(problem)) sizes.push_back(size_of(job));
    return *std::max_element(sizes.begin(), sizes.end(),
                             [&](const auto& a, const auto& b) { return work(a) < work(b); });
}

/// Adds the call that makes the problem's plain output from `splits` parts in the workspace, from
/// byte `parts_at` of it on, with bias and epilogue: from pixel `first_pixel` of all images on.
void add_split_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   std::int64_t splits, std::uint64_t parts_at = 0, std::int64_t first_pixel = 0);

/// Binds the sizes of a filter gradient on tensor cores, whose sum has `steps` steps, `part` of
/// them in each part.
void bind_filter(KernelCall& call, const Geometry& g, std::int64_t steps, std::int64_t part,
                 std::int64_t tiles_m, std::int64_t tiles_n);

/// Whether no tap reaches the outputs of a job: a phase of a data gradient whose stride exceeds the
/// kernel.
inline bool is_empty(const DenseJob& job) {
    return job.kernel_h * job.kernel_w == 0;
}
bool has_empty_phase(const std::vector<DenseJob>& jobs);
/// Adds the call that makes all of the output what it is where no tap reaches
/// (kernels/conv2d/phase_fill.cl). Jobs that are not empty come after it.
void add_phase_fill(KernelLaunch& launch, ContextImpl& context, const Problem& problem);
constexpr const char* phase_fill_source = "conv2d/phase_fill.cl";

/// Images, the result and what an epilogue adds to it have their channels last. Weights and bias
/// are plain.
LayoutChoice channels_last_choice(const Problem& problem);
/// The forward geometry; images of a 1x1 convolution are one row.
Geometry flattened(const Problem& problem);

/// `items` work-items in groups of `group`, or of what the device allows.
NDRange rounded_range(const Traits& device, std::int64_t items, std::size_t group = 256);

}  // namespace dlprim::conv2d
