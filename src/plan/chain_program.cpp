// SPDX-License-Identifier: MIT
// ChainProgram: which kernels it has, and its text.
#include "plan/chain_program.hpp"

#include "base/text.hpp"
#include "engine/call_table.hpp"
#include "engine/launch.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

namespace dlprim {

namespace {

// Memories are counted in eights, so that one buffer more is seldom another program.
constexpr std::size_t memories_step = 8;
// How often a work-item polls before it gives up. With bound threads, 2 ms: by then an interrupted
// thread runs again. With shared cores, 0.1 ms: the work-item that it waits for may be waiting for
// its core.
constexpr int most_waits_bound = 4'000'000, most_waits_shared = 200'000;

std::size_t memories_of(std::span<const Step> steps) {
    std::set<std::pair<Place::Kind, int>> memories;
    for (const Step& step : steps)
        for (const Place& place : step.operands)
            if (place.kind != Place::Kind::none) memories.emplace(place.kind, place.index);
    require(memories.size() <= ChainProgram::most_memories, "a chain of ", memories.size(),
            " buffers");
    const std::size_t steps_of_memories = (memories.size() + memories_step - 1) / memories_step;
    return std::max<std::size_t>(1, steps_of_memories) * memories_step;
}

ChainProgram::Kernels kernels_of(std::span<const Step> steps) {
    ChainProgram::Kernels kernels;
    std::set<const KernelCall*> seen;  // steps of the same work share a launch
    for (const Step& step : steps)
        for (const KernelCall& call : step.launch->calls())
            if (seen.insert(&call).second) kernels.try_emplace(kernel_key(call), &call);
    return kernels;
}

/// The programs that plans have, by device and kernels.
class ChainPrograms {
  public:
    using Key = std::tuple<const ContextImpl*, std::size_t, std::vector<std::string>>;

    /// Null if there is none. A plan that has one keeps the device open, so that no other can have
    /// its address.
    std::shared_ptr<const ChainProgram> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto known = programs_.find(key);
        return known == programs_.end() ? nullptr : known->second.lock();
    }
    void add(Key key, const std::shared_ptr<const ChainProgram>& program) {
        const std::lock_guard lock(mutex_);
        std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
        programs_.insert_or_assign(std::move(key), program);
    }

  private:
    std::mutex mutex_;
    std::map<Key, std::weak_ptr<const ChainProgram>> programs_;
};

}  // namespace

std::shared_ptr<const ChainProgram> ChainProgram::of(ContextImpl& context,
                                                     std::span<const Step> steps) {
    static auto* const all = new ChainPrograms;  // never destroyed: plans may outlive statics
    const Kernels kernels = kernels_of(steps);
    const std::size_t memories = memories_of(steps);
    std::vector<std::string> keys;
    for (const auto& [key, call] : kernels) keys.push_back(key);
    ChainPrograms::Key key{&context, memories, std::move(keys)};
    if (auto known = all->find(key)) return known;
    auto made = std::make_shared<const ChainProgram>(context, kernels, memories);
    all->add(std::move(key), made);
    return made;
}

ChainProgram::ChainProgram(ContextImpl& context, const Kernels& kernels, std::size_t memories)
    : memories_(memories) {
    for (const auto& [key, call] : kernels)
        functions_.push_back(
            {key, kernel_function(*call).value(), call->source(), std::string(call->kernel())});
    program_ = context.build(source(context.traits()));
}

std::size_t ChainProgram::number_of(const KernelCall& call) const {
    const std::string key = kernel_key(call);
    const auto found =
        std::lower_bound(functions_.begin(), functions_.end(), key,
                         [](const Function& a, const std::string& b) { return a.key < b; });
    return found != functions_.end() && found->key == key
               ? static_cast<std::size_t>(found - functions_.begin())
               : functions_.size();
}

bool ChainProgram::has(std::span<const KernelCall> calls) const {
    return !calls.empty() && std::all_of(calls.begin(), calls.end(), [&](const KernelCall& call) {
        return number_of(call) < functions_.size();
    });
}

ProgramSource ChainProgram::source(const Traits& device) const {
    std::string functions, cases;
    for (std::size_t number = 0; number < functions_.size(); ++number) {
        const Function& function = functions_[number];
        functions += numbered_functions(function.source, static_cast<int>(number)).value();
        const std::string type = cat("struct arguments_", number);
        functions += function.arguments.struct_text(cat("arguments_", number));
        cases += cat("        case ", number, ": {\n            global const ", type,
                     "* row = (global const ", type, "*)arguments;\n            ",
                     function.arguments.call_text(cat(function.kernel, '_', number),
                                                  "i, j, k, width, height, depth", "row"),
                     ";\n            break;\n        }\n");
    }
    const std::string call =
        cat("#define calls_memory(number) memories[number]\n"
            "void chain_call(int function, int i, int j, int k, int width, int height, int depth,\n"
            "                global const void* arguments, global uchar* const* memories)\n{\n"
            "    switch (function) {\n",
            cases, "    }\n}\n#define MOST_WAITS ",
            device.own_cores ? most_waits_bound : most_waits_shared, '\n');
    const std::string kernel =
        cat("kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
            "void chain(global int* state, int call, int end, int row_bytes, int workers, ",
            table_parameters(memories_), ")\n{\n    global uchar* const memories[] = {",
            table_memories(memories_, "").substr(2), "};\n",
            "    run_chain(calls_table, row_bytes, memories, state, call, end, workers);\n}\n");
    return {"exec/chain.cl",
            cat(single_items(functions), call, kernel_source("exec/chain.cl"), kernel), ""};
}

}  // namespace dlprim
