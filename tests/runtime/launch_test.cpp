// SPDX-License-Identifier: MIT
// Builds, binds and runs a kernel, and runs host work, on every device of the machine.
#include "engine/launch.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"

#include <dlprim/tensor.hpp>

using namespace dlprim;

namespace {

const char* const axpy = R"(
#define UNUSED kernel void not_this(int x)
/* kernel void nor_this(int x) */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void axpy(int n, float a,  // a factor, not a name
    global const float* restrict x, ulong x_offset, __global float* y, ulong y_offset)
{
    int i = get_global_id(0);
    if (i < n) y[y_offset + i] += a * x[x_offset + i];
}
)";

}  // namespace

TEST_CASE("a kernel runs on operands with offsets") {
    for (const DeviceInfo& info : Context::devices()) {
        if (info.kind == DeviceKind::host) continue;
        INFO(info.name);
        const Context context(info.id);
        const Tensor x(context, {6}, {0, 1, 2, 3, 4, 5});
        const Tensor y(context, {4}, {10, 20, 30, 40});
        NDRange range;
        range.global[0] = 4;
        range.local[0] = 1;
        KernelLaunch launch;
        launch.add(KernelCall(Access::impl(context).build({"axpy", axpy, ""}), "axpy", range)
                       .scalar("n", 4)
                       .scalar("a", 2.0f)
                       .tensor("x", 0)
                       .tensor("y", 1));
        const Tensor part = x.slice(0, 2, 6);
        const BufferRef operands[] = {{Access::buffer(part).get(), part.byte_offset()},
                                      {Access::buffer(y).get(), 0}};
        const Counters before = context.counters();
        launch.enqueue(Access::impl(context).queue(), operands);
        CHECK(y.to_floats() == std::vector<float>{14, 26, 38, 50});
        CHECK(context.counters().launches == before.launches + 1);
        CHECK(context.counters().waits == before.waits + 1);
    }
}

TEST_CASE("host work runs in order") {
    const Context context("cpu");
    const Tensor x(context, {1000}, std::vector<float>(1000, 2.0f));
    HostLaunch launch([](HostPool& pool, std::span<const BufferRef> operands) {
        auto* data = reinterpret_cast<float*>(operands[0].host());
        pool.parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) data[i] += static_cast<float>(i);
        });
    });
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    launch.enqueue(Access::impl(context).queue(), operands);
    const std::vector<float> values = x.to_floats();
    for (int i = 0; i < 1000; ++i)
        REQUIRE(values[static_cast<std::size_t>(i)] == 2.0f + static_cast<float>(i));
}
