// SPDX-License-Identifier: MIT
// measure_peaks(): multiply-adds, copies, launches and waits, each for some tens of milliseconds.
#include "base/text.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/diagnosis.hpp>

#include <algorithm>
#include <chrono>
#include <functional>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int peak_chains = 8, peak_steps = 1024;

double seconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Least seconds of one call of `work`, of runs that take about 50 ms together.
double least_seconds(const std::function<void()>& work) {
    double least = seconds_of(work);  // the first call may also make threads and pages
    const auto start = Clock::now();
    do {
        least = std::min(least, seconds_of(work));
    } while (Clock::now() - start < std::chrono::milliseconds(50));
    return least;
}

/// The host's own multiply-adds, on all threads.
double host_seconds(ContextImpl& context, std::int64_t items) {
    constexpr int lanes = 16;
    std::vector<float> y(static_cast<std::size_t>(items));
    const auto item = [&](std::int64_t i) {
        float sums[peak_chains][lanes];
        const float step = 1e-3f * static_cast<float>(i % 7);
        for (int c = 0; c < peak_chains; ++c)
            for (float& sum : sums[c]) sum = static_cast<float>(c);
        for (int s = 0; s < peak_steps; ++s)
            for (auto& chain : sums)
                for (float& sum : chain) sum = sum * 0.999f + step;
        float all = 0;
        for (const auto& chain : sums)
            for (const float sum : chain) all += sum;
        y[static_cast<std::size_t>(i)] = all;
    };
    return least_seconds([&] {
               context.pool().parallel_for(items, 1, [&](std::int64_t from, std::int64_t to) {
                   for (std::int64_t i = from; i < to; ++i) item(i);
               });
           }) /
           lanes;
}

/// Multiply-adds, and the costs of launches and waits.
void measure_kernels(ContextImpl& context, Peaks& peaks) {
    const Traits& device = context.traits();
    const int lanes = device.wide_vectors ? 16 : 1;
    const std::size_t local =
        std::min<std::uint64_t>(device.max_work_group, device.wide_vectors ? 1 : 256);
    const std::size_t items =
        static_cast<std::size_t>(device.compute_units) * (device.wide_vectors ? 16 : 32 * local);
    const auto buffer = context.allocate(items * sizeof(float));
    const auto kernel_of = [&](int count) {
        const auto program =
            context.build({"probe/peak.cl", kernel_source("probe/peak.cl"),
                           cat("-DLANES=", lanes, " -DCHAINS=", peak_chains, " -DSTEPS=", count)});
        auto kernel = program->kernel("probe");
        const std::uint64_t offset = 0;
        kernel->set(kernel->index_of("y"), *buffer);
        kernel->set(kernel->index_of("y_offset"), &offset, sizeof(offset));
        return kernel;
    };
    Queue& queue = context.queue();
    NDRange range;
    range.global[0] = items;
    range.local = {local, 1, 1};
    const auto work = kernel_of(peak_steps);
    const double seconds = least_seconds([&] {
        queue.launch(*work, range);
        queue.finish();
    });
    peaks.gflops = 2e-9 * static_cast<double>(items) * lanes * peak_chains * peak_steps /
                   std::max(seconds, 1e-9);
    const auto nothing = kernel_of(1);
    range.global[0] = local;
    peaks.wait_us = 1e6 * least_seconds([&] {
                        queue.launch(*nothing, range);
                        queue.finish();
                    });
    constexpr int launches = 64;
    peaks.launch_us = 1e6 / launches * least_seconds([&] {
                          for (int i = 0; i < launches; ++i) queue.launch(*nothing, range);
                          queue.finish();
                      });
}

}  // namespace

Peaks measure_peaks(const Context& handle) {
    ContextImpl& context = Access::impl(handle);
    const Traits& device = context.traits();
    Peaks peaks;
    if (device.host) {
        const std::int64_t items = 64 * std::int64_t{device.compute_units};
        peaks.gflops = 2e-9 * static_cast<double>(items * peak_chains * peak_steps) /
                       std::max(host_seconds(context, items), 1e-9);
    } else {
        measure_kernels(context, peaks);
    }
    // More than the last-level cache holds, where memory allows it.
    const std::uint64_t bytes =
        std::min<std::uint64_t>({std::max<std::uint64_t>(64u << 20, 2 * device.cache_bytes),
                                 512u << 20, device.max_alloc_bytes / 4, device.global_bytes / 8});
    const auto from = context.allocate(bytes), to = context.allocate(bytes);
    const float one = 1;
    context.queue().fill({from.get(), 0}, bytes / 4 * 4, &one, sizeof(one));
    const double seconds = least_seconds([&] {
        context.queue().copy({from.get(), 0}, {to.get(), 0}, bytes);
        context.queue().finish();
    });
    peaks.gbytes_per_s = 2e-9 * static_cast<double>(bytes) / std::max(seconds, 1e-9);
    return peaks;
}

}  // namespace dlprim
