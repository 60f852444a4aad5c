// SPDX-License-Identifier: MIT
// TableLaunch: the kernel that runs a table, for 4, 16 or 64 memories.
#include "engine/table_launch.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

namespace {

bool has_one_dimension(const NDRange& range) {
    for (std::size_t d = 1; d < static_cast<std::size_t>(range.dims); ++d)
        if (range.global[d] != 1) return false;
    return range.local[0] > 0 && range.global[0] > 0 && range.global[0] % range.local[0] == 0;
}

std::size_t kernel_memories(std::size_t memories) {
    return memories <= 4 ? 4 : memories <= 16 ? 16 : TableLaunch::most_memories;
}

/// calls_memory(number) as a function of the parameters. Not an array of them: GPUs would write it
/// to each work-item's stack, which takes more bandwidth than the kernel itself.
std::string choice_of_memory(std::size_t memories) {
    std::string cases;
    for (std::size_t i = 1; i < memories; ++i)
        cases += cat("        case ", i, ": return calls_memory_", i, ";\n");
    return cat("global uchar* calls_choose(int number", table_memories(memories, "global uchar* "),
               ") {\n    switch (number) {\n", cases, "    }\n    return calls_memory_0;\n}\n",
               "#define calls_memory(number) calls_choose(number", table_memories(memories, ""),
               ")\n");
}

}  // namespace

std::optional<std::string> TableLaunch::key(const KernelCall& call) {
    if (!has_one_dimension(call.range()) || call.bindings().size() > most_memories ||
        !kernel_function(call))
        return std::nullopt;
    const auto& [name, text, options] = call.source();
    if (!kernel_definition(text, call.kernel())) return std::nullopt;
    std::string arguments;
    for (const KernelCall::Argument& argument : call.arguments())
        arguments += cat(argument.parameter, '=', argument.number, ' ');
    return cat(call.kernel(), '\n', call.range().local[0], '\n', arguments, '\n', options, '\n',
               text);
}

TableLaunch::TableLaunch(ContextImpl& context, std::span<const PlacedCall> calls)
    : context_(context),
      call_(*calls[0].call),
      function_(kernel_function(call_).value()),
      table_(context, most_memories) {
    std::size_t all = 0;
    for (const PlacedCall& placed : calls) {
        const NDRange& range = placed.call->range();
        const std::size_t groups = range.global[0] / range.local[0];
        const std::int32_t head[] = {static_cast<std::int32_t>(all),
                                     static_cast<std::int32_t>(groups)};
        table_.add(placed, function_, head);
        groups_.push_back(all);
        all += groups;
    }
    groups_.push_back(all);
    kernel_for(1);
}

ProgramSource TableLaunch::source(std::size_t memories) const {
    std::string scalars;
    for (const auto& parameter : function_.parameters)
        if (parameter.from == KernelFunction::From::launch)
            scalars += cat(", ", parameter.type, ' ', parameter.name);
    const std::string parameters =
        cat(table_parameters(memories), scalars, ", int calls_rows, int calls_start");
    const std::string before = cat(
        "    const int calls_at = calls_start + (int)get_group_id(0);\n"
        "    global const struct calls_head* calls_row = calls_find(calls_table, calls_rows, "
        "calls_at);\n"
        "    ",
        function_.struct_text("calls_arguments"),
        "    global const struct calls_arguments* calls_call =\n"
        "        (global const struct calls_arguments*)(calls_row + 1);\n"
        "    const int calls_i = calls_at - calls_row->calls_first, calls_j = 0, calls_k = 0;\n"
        "    const int calls_width = calls_row->calls_groups, calls_height = 1, calls_depth = 1;\n",
        function_.variables_text("calls_call"));
    const ProgramSource& source = call_.source();
    return {source.name,
            cat("#define TABLE_ROW ", table_.row_bytes(), '\n',
                kernel_source("engine/call_table.clh"), choice_of_memory(memories),
                kernel_over_rows(source, call_.kernel(), parameters, before).value()),
            source.options};
}

TableKernel& TableLaunch::kernel_for(std::size_t memories) {
    for (TableKernel& kernel : kernels_)
        if (kernel.memories() >= memories) return kernel;
    // More memories were not needed before, so that the new one has the most.
    const std::size_t most = kernel_memories(memories);
    TableKernel& made =
        kernels_.emplace_back(context_.build(source(most)), call_.kernel(), call_.range(), most);
    for (const KernelCall::Argument& argument : call_.arguments())
        made.call.argument(function_.parameters[static_cast<std::size_t>(argument.parameter)].name,
                           argument.number, argument.as);
    if (!scalars_.empty()) made.call.set_scalars(scalars_);
    return made;
}

void TableLaunch::set_scalars(std::span<const Scalar> values) {
    scalars_.assign(values.begin(), values.end());
    for (TableKernel& kernel : kernels_) kernel.call.set_scalars(values);
}

void TableLaunch::enqueue(Queue& queue, std::span<const BufferRef> operands) {
    NDRange range = call_.range();
    for (const CallTable::Part& part : table_.place(queue, operands)) {
        TableKernel& kernel = kernel_for(part.memories.size());
        kernel.bind(part, operands);
        kernel.call.scalar("calls_rows", static_cast<std::int32_t>(part.end - part.first));
        kernel.call.scalar("calls_start", static_cast<std::int32_t>(groups_[part.first]));
        range.global[0] = (groups_[part.end] - groups_[part.first]) * range.local[0];
        kernel.call.set_range(range);
        kernel.call.enqueue(queue, {});
    }
}

bool is_copy(const KernelCall& call) {
    const std::vector<KernelParameter> parameters =
        kernel_signature(call.source().source, call.kernel());
    bool seen[2] = {};
    for (const KernelCall::Binding& binding : call.bindings()) {
        const auto at = static_cast<std::size_t>(binding.buffer_index);
        const bool writes = (' ' + parameters.at(at).type).find(" const ") == std::string::npos;
        if (binding.operand != (writes ? 1 : 0)) return false;
        seen[writes ? 1 : 0] = true;
    }
    return seen[0] && seen[1];
}

}  // namespace dlprim
