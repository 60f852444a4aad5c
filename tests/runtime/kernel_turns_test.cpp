// SPDX-License-Identifier: MIT
// On PoCL before version 7, launches of a kernel by several queues take turns where their ranges
// differ.
#include "runtime/kernel_turns.hpp"

#include "runtime/devices.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"
#include "support/held_queue.hpp"

#include <chrono>
#include <future>
#include <optional>

using namespace dlprim;

namespace {

/// A device whose driver needs turns, if there is one.
std::optional<Context> one_that_needs_turns() {
    for (const OpenCLDevice& device : opencl_devices())
        if (needs_kernel_turns(device.platform_version)) return Context(device.info.id);
    WARN("no such device here: PoCL before version 7");
    return std::nullopt;
}

void add_one(const Context& context, const Tensor& x, std::size_t elements) {
    NDRange range;
    range.local[0] = 8;
    range.global[0] = elements;
    KernelLaunch launch;
    launch.add(KernelCall(Access::impl(context).build(adds(1)), "adds", range).tensor("x", 0));
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    launch.enqueue(Access::impl(context).queue(), operands);
}

}  // namespace

TEST_CASE("a launch waits for those of other queues with another range") {
    const std::optional<Context> first = one_that_needs_turns();
    if (!first) return;
    const Context second(first->info().id);
    const std::vector<float> zeros(16, 0);
    const Tensor x(*first, {16}, zeros), y(second, {16}, zeros);
    add_one(*first, x, 8);  // compiled
    add_one(second, y, 8);
    CHECK(y.to_floats()[0] == 1);
    CHECK(x.to_floats()[0] == 1);

    std::optional<testing::HeldQueue> held(*first);
    add_one(*first, x, 8);
    add_one(second, y, 8);  // the same range: nobody waits
    CHECK(y.to_floats()[0] == 2);
    CHECK(run_adds(second, Access::impl(second).build(adds(2))) == 5);  // nor for another kernel
    add_one(*first, x, 16);                                             // nor for one's own launch

    std::future<void> third = std::async(std::launch::async, [&] { add_one(second, y, 16); });
    CHECK(third.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout);
    held.reset();
    third.get();
    CHECK(x.to_floats()[0] == 3);
    CHECK(y.to_floats() == std::vector<float>{3, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("turns are for PoCL before version 7") {
    CHECK(needs_kernel_turns("OpenCL 1.2 pocl 1.8  Linux, None+Asserts, LLVM 9.0.1"));
    CHECK(needs_kernel_turns("OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, LLVM 14.0.6"));
    CHECK(needs_kernel_turns("OpenCL 3.0 PoCL 6.0  Linux, Release"));
    CHECK_FALSE(needs_kernel_turns("OpenCL 3.0 PoCL 7.0  Linux, Release"));
    CHECK_FALSE(needs_kernel_turns("OpenCL 3.0 PoCL 12.1  Linux, Release"));
    CHECK_FALSE(needs_kernel_turns("OpenCL 3.0 CUDA 12.8.97"));
}
