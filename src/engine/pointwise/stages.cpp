// SPDX-License-Identifier: MIT
// Converts jobs to launches: kernels in one or two stages, with the workspace between them.
#include "engine/pointwise/stages.hpp"

#include "base/text.hpp"
#include "engine/pointwise/row_kernel.hpp"

#include <algorithm>
#include <map>

namespace dlprim::pointwise {
namespace {

std::uint64_t align(std::uint64_t bytes) {
    return (bytes + 127) / 128 * 128;
}

Generated generate(const Job& job, const Traits& device, Style style, std::int64_t parts,
                   bool text) {
    return style == Style::vector ? vector_kernel(job, device, parts, text)
                                  : group_kernel(job, device, parts, text);
}

/// Renumbers the job's inputs and used scalars in the order of their use. Jobs that differ only in
/// the numbers of their operands then have the same text and share a program.
Job numbered_by_use(Job job) {
    std::map<int, int> numbers, scalars;
    const bool combines = std::any_of(job.outputs.begin(), job.outputs.end(),
                                      [](const JobOutput& out) { return out.combine != nullptr; });
    for (JobInput& input : job.inputs) {
        const int number = static_cast<int>(numbers.size());
        input.number = numbers.emplace(input.number, number).first->second;
    }
    std::vector<Scalar> values;
    std::vector<int> arguments;
    for (Instruction& in : job.tape.code) {
        if (in.op == Op::input) in.number = numbers.at(in.number);
        if (in.op != Op::scalar || combines) continue;  // combinations may read scalars too
        const auto [known, fresh] = scalars.emplace(in.number, static_cast<int>(scalars.size()));
        const auto at = static_cast<std::size_t>(in.number);
        if (fresh) values.push_back(job.scalars.at(at));
        if (fresh && job.arguments) arguments.push_back(job.scalar_numbers.at(at));
        in.number = known->second;
    }
    if (!combines) {
        job.scalars = std::move(values);
        job.scalar_numbers = std::move(arguments);
    }
    return job;
}

/// Binds the outputs: y<k>, and w<k> and f<k> in the workspace. A kernel that writes to either, but
/// has one part, takes the output's memory for those, which it does not touch.
void bind_outputs(KernelCall& call, const Job& job, const Generated& made, int workspace) {
    if (made.results != Results::final) {
        std::uint64_t at = 0;
        const std::uint64_t region_bytes =
            align(static_cast<std::uint64_t>(made.parts) * static_cast<std::uint64_t>(job.kept()) *
                  made.partial_bytes);
        for (const Region& region : workspace_regions(job)) {
            const std::string name = cat(region.flag ? "f" : "w", region.output);
            const JobOutput& out = job.outputs[region.output];
            if (made.parts > 1)
                call.tensor_at(name, workspace, at, made.partial_bytes);
            else
                call.tensor(name, out.operand, size_of(out.dtype));
            at += region_bytes;
        }
    }
    for (std::size_t k = 0; k < job.outputs.size(); ++k)
        if (job.outputs[k].operand >= 0 &&
            (made.results != Results::partial || !job.outputs[k].reduces()))
            call.tensor(cat("y", k), job.outputs[k].operand, size_of(job.outputs[k].dtype));
}

/// The second launch of a kernel that combines its own parts.
Generated merging_launch(Generated made) {
    const auto tasks = static_cast<std::size_t>(made.merging_tasks);
    made.range.global[0] = std::min(made.range.global[0], tasks);
    for (KernelNumber& number : made.numbers) {
        if (number.name == merging) number.whole = 1;
        if (number.name == "tasks") number.whole = made.merging_tasks;
    }
    return made;
}

void add_stage(KernelLaunch& launch, ContextImpl& context, const Job& job, const Generated& made,
               int workspace) {
    auto program = context.build({"pointwise (generated)", made.source, ""});
    KernelCall call(program, "pointwise", made.range);
    for (const JobInput& input : job.inputs) {
        const std::string name = cat("x", input.number);
        if (input.operand == workspace)
            call.tensor_at(name, workspace, input.extra_bytes, size_of(input.dtype));
        else
            call.tensor(name, input.operand, size_of(input.dtype));
    }
    bind_outputs(call, job, made, workspace);
    for (const KernelNumber& number : made.numbers) {
        if (number.argument >= 0)
            call.argument(number.name, number.argument, number.as);
        else if (number.real)
            call.scalar(number.name, number.value);
        else
            call.scalar(number.name, number.whole);
    }
    launch.add(std::move(call));
}

}  // namespace

std::vector<Region> workspace_regions(const Job& job) {
    std::vector<Region> regions;
    for (std::size_t k = 0; k < job.outputs.size(); ++k) {
        if (!job.outputs[k].reduces()) continue;
        regions.push_back({k, false});
        if (job.outputs[k].kind == Output::Kind::custom) regions.push_back({k, true});
    }
    return regions;
}

Job second_stage(const Job& job, std::int64_t parts) {
    Job second;
    second.type = job.type;
    second.shape = job.shape;
    second.index_class.assign(static_cast<std::size_t>(job.shape.rank()), -1);
    second.channels = job.channels;
    second.sizes.push_back(parts);
    second.reduced.push_back(true);
    for (int d = 0; d < job.dims(); ++d) {
        if (job.reduced[static_cast<std::size_t>(d)]) continue;
        second.sizes.push_back(job.sizes[static_cast<std::size_t>(d)]);
        second.reduced.push_back(false);
    }
    const auto kept_strides = [&](int klass) {
        std::vector<std::int64_t> strides{0};
        for (int d = 0; d < job.dims(); ++d)
            if (!job.reduced[static_cast<std::size_t>(d)]) strides.push_back(job.stride(klass, d));
        return strides;
    };
    // The shape of the workspace is [parts, kept positions].
    std::vector<std::int64_t> dense(second.sizes.size());
    std::int64_t below = 1;
    for (std::size_t d = second.sizes.size(); d-- > 0;) {
        dense[d] = below;
        below *= second.sizes[d];
    }
    second.classes.push_back(dense);
    const DType own = dtype_of(job.type);
    const std::uint64_t region_bytes = align(static_cast<std::uint64_t>(parts) *
                                             static_cast<std::uint64_t>(job.kept()) * size_of(own));
    const auto partial = [&](std::uint64_t region) {
        Instruction in;
        in.op = Op::input;
        in.number = static_cast<int>(second.inputs.size());
        second.inputs.push_back({in.number, -1, own, 0, region * region_bytes});
        second.tape.code.push_back(in);
        return static_cast<int>(second.tape.code.size()) - 1;
    };
    std::uint64_t region = 0;
    for (const JobOutput& out : job.outputs) {
        if (!out.reduces()) continue;
        JobOutput final = out;
        final.value = partial(region++);
        if (out.kind == Output::Kind::custom) final.flag = partial(region++);
        final.klass = static_cast<int>(second.classes.size());
        second.classes.push_back(kept_strides(out.klass));
        second.outputs.push_back(std::move(final));
    }
    if (job.channel_class >= 0) {
        auto strides = kept_strides(job.channel_class);
        bool any = false;
        for (std::int64_t s : strides) any = any || s != 0;
        if (any) {
            second.channel_class = static_cast<int>(second.classes.size());
            second.classes.push_back(std::move(strides));
        }
    }
    canonicalise(second);
    return second;
}

std::uint64_t stages_workspace(const std::vector<Job>& jobs, const Traits& device, Style style) {
    std::uint64_t most = 0;
    for (const Job& job : jobs) {
        if (!job.reduces()) continue;
        const Generated made = generate(job, device, style, 0, false);
        if (made.parts <= 1) continue;
        const std::uint64_t region =
            align(static_cast<std::uint64_t>(made.parts) * static_cast<std::uint64_t>(job.kept()) *
                  made.partial_bytes);
        most = std::max<std::uint64_t>(most, region * workspace_regions(job).size());
    }
    return most;
}

void add_stages(KernelLaunch& launch, ContextImpl& context, const std::vector<Job>& jobs,
                const Traits& device, Style style, int workspace) {
    for (const Job& given : jobs) {
        const Job job = numbered_by_use(given);
        bool nothing = true;
        for (const JobOutput& out : job.outputs)
            nothing =
                nothing && (out.reduces() ? job.kept() == 0 : job.kept() * job.reduction() == 0);
        if (nothing) continue;
        const Generated first = generate(job, device, style, 0, true);
        add_stage(launch, context, job, first, workspace);
        if (first.parts <= 1 || !job.reduces()) continue;
        if (first.results == Results::either) {
            add_stage(launch, context, job, merging_launch(first), workspace);
            continue;
        }
        Job second = second_stage(job, first.parts);
        for (JobInput& input : second.inputs) input.operand = workspace;
        add_stage(launch, context, second, generate(second, device, style, 1, true), workspace);
    }
}

void add_rows(KernelLaunch& launch, ContextImpl& context, const RowJob& rows, Style style) {
    if (rows.rows() * rows.columns() == 0) return;
    add_stage(launch, context, rows.job, row_kernel(rows, context.traits(), style), -1);
}

}  // namespace dlprim::pointwise
