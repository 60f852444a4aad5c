// SPDX-License-Identifier: MIT
// What the OpenCL engines of pooling share: vector width, ranges, and the arguments and defines
// that both kernels have.
#pragma once

#include "base/text.hpp"
#include "engine/storage.hpp"
#include "engine/work_group.hpp"
#include "ops/pooling2d/options.hpp"

#include <algorithm>

namespace dlprim::pooling2d {

/// "group": the work-items of a work-group. CPUs, whose work-items compute rows, do not have it.
inline Tuning default_tuning(const Traits& device) {
    if (device.wide_vectors) return {};
    return {{"group", usual_group(device)}};
}
inline TuneSpace tune_space(const Traits& device) {
    if (device.wide_vectors) return {};
    return {{"group", group_sizes(device)}};
}

struct KernelShape {
    Options options;
    const Problem& problem;
    const Operand &input, &output;  ///< of the forward direction: x and y, or their gradients
    bool rows;                      ///< whether a work-item computes a row
    int vector = 1;
    std::int64_t outer, lanes;

    KernelShape(const Traits& device, const Problem& p, const Operand& x, const Operand& y)
        : options(p.attrs), problem(p), input(x), output(y), rows(device.wide_vectors) {
        const View view(x.shape, x.layout);
        const int widest = device.wide_vectors ? 16 : 4;
        for (int v = widest; v > 1 && vector == 1; v /= 2)
            if (view.inner % v == 0 && v != 2) vector = v;
        outer = view.outer;
        lanes = view.inner / vector;
    }

    /// The call with everything but its tensors set. Its range covers the pixels of `shape`.
    KernelCall call(ContextImpl& context, const char* file, const char* kernel, const Shape& shape,
                    const char* more, const Tuning& tuning) const {
        const bool bytes = options.index_type() == DType::u8;
        const auto count =
            static_cast<std::size_t>(outer * shape[2] * (rows ? 1 : shape[3] * lanes));
        std::string defines =
            cat("-DV=", vector, " -DROWS=", rows ? 1 : 0, " -DAVERAGE=", options.average ? 1 : 0,
                " -DINCLUDE=", options.count_include_pad ? 1 : 0,
                " -DINDEX_T=", bytes ? "uchar" : "int", " -DCOUNT_T=", count_type(count),
                " -DSIZED=", rows ? 0 : 1,
                storage_options({{'A', problem.inputs[0].dtype}, {'C', problem.outputs[0].dtype}}));
        // Sizes are constants, except for rows: these take so long that divisions do not matter,
        // and CPUs compile slowly.
        if (!rows)
            defines += cat(" -DIH=", input.shape[2], " -DIW=", input.shape[3],
                           " -DOH=", output.shape[2], " -DOW=", output.shape[3], " -DLANES=", lanes,
                           " -DKERNEL_H=", options.kernel[0], " -DKERNEL_W=", options.kernel[1],
                           " -DSTRIDE_H=", options.stride[0], " -DSTRIDE_W=", options.stride[1]);
        const ProgramSource source{file, kernel_source(file), cat(defines, more)};
        const auto group = static_cast<std::size_t>(rows ? 1 : tuning.at("group"));
        KernelCall result(context.build(source), kernel,
                          {1, {(count + group - 1) / group * group, 1, 1}, {group, 1, 1}});
        const auto set = [&](const char* name, std::int64_t value) {
            result.scalar(name, static_cast<std::int32_t>(value));
        };
        result.scalar("count", static_cast<std::int64_t>(count));
        set("ih", input.shape[2]);
        set("iw", input.shape[3]);
        set("oh", output.shape[2]);
        set("ow", output.shape[3]);
        set("lanes", lanes);
        set("kh", options.kernel[0]);
        set("kw", options.kernel[1]);
        set("sh", options.stride[0]);
        set("sw", options.stride[1]);
        set("pt", options.pad[0]);
        set("pl", options.pad[1]);
        set("pb", options.pad[2]);
        set("pr", options.pad[3]);
        return result;
    }
};

}  // namespace dlprim::pooling2d
