// SPDX-License-Identifier: MIT
// Programs of one line, each different, for tests of how programs are compiled.
#pragma once

#include "base/text.hpp"
#include "engine/launch.hpp"
#include "runtime/access.hpp"
#include "runtime/program_builds.hpp"

#include <dlprim/tensor.hpp>

#include <memory>
#include <vector>

namespace dlprim {

inline std::vector<Context> opencl_contexts() {
    std::vector<Context> found;
    for (const DeviceInfo& info : Context::devices())
        if (info.kind != DeviceKind::host) found.emplace_back(info.id);
    return found;
}

inline ProgramSource adds(int number) {
    return {cat("adds ", number),
            cat("kernel void adds(global float* x, ulong x_offset) { x[x_offset + "
                "get_global_id(0)] += ",
                number, "; }"),
            ""};
}

/// Three, and what the program adds.
inline float run_adds(const Context& context, const std::shared_ptr<Program>& program) {
    const Tensor x(context, {8}, std::vector<float>(8, 3.0f));
    NDRange range;
    range.global[0] = 8;
    KernelLaunch launch;
    launch.add(KernelCall(program, "adds", range).tensor("x", 0));
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    launch.enqueue(Access::impl(context).queue(), operands);
    return x.to_floats()[7];
}

/// The first `count` of them, to be compiled.
inline PendingPrograms pending_adds(const Context& context, int count) {
    const NotedBuilds noted;
    for (int i = 0; i < count; ++i) Access::impl(context).build(adds(i));
    return noted.programs();
}

}  // namespace dlprim
