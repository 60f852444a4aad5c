// SPDX-License-Identifier: MIT
// Chain: the text of the combined program, tickets, and the launches.
#include "exec/chain.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace dlprim {

namespace {

// Work of one launch. The next launch wakes work-items that gave up in this one.
constexpr double seconds_a_launch = 3e-3;
// Tickets of one call per core: at least so many, and one per so many seconds of arithmetic. To
// draw a ticket takes about 0.1 us. What memory bounds stays in long parts, which are read in
// order.
constexpr int tickets_a_core = 16;
constexpr double seconds_a_ticket = 1e-5;
constexpr std::size_t most_memories = 96;  // devices allow at least 1024 bytes of parameters
// How often a work-item polls before it gives up. With bound threads, 2 ms: by then an interrupted
// thread runs again. With shared cores, 0.1 ms: the work-item that it waits for may be waiting for
// its core.
constexpr int most_waits_bound = 4'000'000, most_waits_shared = 200'000;

std::size_t items_of(const KernelCall& call) {
    const NDRange& range = call.range();
    return range.global[0] * range.global[1] * range.global[2];
}

std::size_t memories_of(const std::vector<Place>& places) {
    std::set<std::pair<Place::Kind, int>> memories;
    for (const Place& place : places)
        if (place.kind != Place::Kind::none) memories.emplace(place.kind, place.index);
    require(memories.size() <= most_memories, "a chain of ", memories.size(), " buffers");
    return std::max<std::size_t>(1, memories.size());
}

}  // namespace

/// The number of the call's function, or that of the next new one.
std::size_t Chain::number_of(const KernelCall& call) const {
    const std::string key = kernel_key(call);
    const auto known = std::find_if(functions_.begin(), functions_.end(),
                                    [&](const Function& function) { return function.key == key; });
    return static_cast<std::size_t>(known - functions_.begin());
}

/// Adds the call's kernel to the texts of the program if it is new.
void Chain::add_function(const KernelCall& call, std::string& functions, std::string& cases) {
    const std::size_t number = number_of(call);
    if (number < functions_.size()) return;
    const KernelFunction& function =
        functions_.emplace_back(Function{kernel_key(call), kernel_function(call).value()})
            .arguments;
    functions += numbered_functions(call.source(), static_cast<int>(number)).value();
    const std::string type = cat("struct arguments_", number);
    functions += function.struct_text(cat("arguments_", number));
    cases += cat(
        "        case ", number, ": {\n            global const ", type, "* row = (global const ",
        type, "*)arguments;\n            ",
        function.call_text(cat(call.kernel(), '_', number), "i, j, k, width, height, depth", "row"),
        ";\n            break;\n        }\n");
}

void Chain::add_row(CallTable& table, const PlacedCall& placed, int most_tickets) {
    const NDRange& range = placed.call->range();
    const std::size_t number = number_of(*placed.call);
    const auto items = static_cast<int>(items_of(*placed.call));
    const int first = std::exchange(tickets_, tickets_ + std::min(items, most_tickets));
    // As in chain.cl.
    const std::int32_t head[] = {first,
                                 tickets_,
                                 static_cast<std::int32_t>(range.global[0]),
                                 static_cast<std::int32_t>(range.global[1]),
                                 static_cast<std::int32_t>(range.global[2]),
                                 static_cast<std::int32_t>(number)};
    table.add(placed, functions_[number].arguments, head);
}

Chain::Chain(ContextImpl& context, const std::vector<const Step*>& steps)
    : context_(context),
      workers_(std::max(1, context.traits().compute_units)),
      table_(context, most_memories) {
    std::string functions, cases;
    double seconds = 0;
    for (const Step* step : steps) {
        const double arithmetic = step->flops / (std::max(context.traits().gflops, 1.0) * 1e9);
        const int most_tickets =
            workers_ * std::max(tickets_a_core, static_cast<int>(arithmetic / seconds_a_ticket));
        for (const KernelCall& call : step->launch->calls()) {
            if (items_of(call) == 0) continue;
            add_function(call, functions, cases);
            add_row(table_, {&call, places_.size()}, most_tickets);
        }
        places_.insert(places_.end(), step->operands.begin(), step->operands.end());
        seconds += step->bound_seconds;
        if (seconds < seconds_a_launch && step != steps.back()) continue;
        ends_.push_back(static_cast<std::int32_t>(table_.rows()));
        seconds = 0;
        tickets_ = 0;
    }
    const std::size_t memories = memories_of(places_);
    NDRange range;
    range.global[0] = static_cast<std::size_t>(workers_);
    range.local = {1, 1, 1};
    kernel_.emplace(context.build(source(functions, cases, memories)), "chain", range, memories);
    const std::uint32_t zero = 0;
    state_ = context.allocate(1024);
    context.queue().fill({state_.get(), 0}, 1024, &zero, sizeof(zero));
    kernel_->call.memory("state", *state_).scalar("workers", std::int32_t{workers_});
}

ProgramSource Chain::source(const std::string& functions, const std::string& cases,
                            std::size_t memories) const {
    const std::string call =
        cat("#define calls_memory(number) memories[number]\n"
            "void chain_call(int function, int i, int j, int k, int width, int height, int depth,\n"
            "                global const void* arguments, global uchar* const* memories)\n{\n"
            "    switch (function) {\n",
            cases, "    }\n}\n#define TABLE_ROW ", table_.row_bytes(), "\n#define MOST_WAITS ",
            context_.traits().own_cores ? most_waits_bound : most_waits_shared, '\n');
    const std::string kernel =
        cat("kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
            "void chain(global int* state, int call, int end, int workers, ",
            table_parameters(memories), ")\n{\n    global uchar* const memories[] = {",
            table_memories(memories, "").substr(2), "};\n",
            "    run_chain(calls_table, memories, state, call, end, workers);\n}\n");
    return {"exec/chain.cl",
            cat(single_items(functions), call, kernel_source("exec/chain.cl"), kernel), ""};
}

bool Chain::has(std::span<const KernelCall> calls) const {
    return !calls.empty() && std::all_of(calls.begin(), calls.end(), [&](const KernelCall& call) {
        return number_of(call) < functions_.size();
    });
}

void Chain::launch(const CallTable::Part& part, std::span<const BufferRef> operands,
                   std::int32_t begin, std::int32_t end) {
    kernel_->bind(part, operands);
    kernel_->call.scalar("call", begin).scalar("end", end);
    kernel_->call.enqueue(context_.queue(), {});
}

void Chain::run(std::span<const KernelCall> calls, std::span<const BufferRef> operands) {
    CallTable table(context_, most_memories, table_.row_bytes());
    tickets_ = 0;
    for (const KernelCall& call : calls)
        if (items_of(call) > 0) add_row(table, {&call, 0}, workers_);
    for (const CallTable::Part& part : table.place(context_.queue(), operands))
        launch(part, operands, 0, static_cast<std::int32_t>(table.rows()));
    context_.queue().finish();
}

bool Chain::enqueue(const std::function<BufferRef(const Place&)>& resolve) {
    std::vector<BufferRef> operands;
    operands.reserve(places_.size());
    for (const Place& place : places_) operands.push_back(resolve(place));
    std::int32_t begin = 0;
    for (const CallTable::Part& part : table_.place(context_.queue(), operands))
        for (const std::int32_t end : ends_) {
            try {
                launch(part, operands, begin, end);
            } catch (const Error& error) {
                if (begin > 0) throw;
                log(LogLevel::warning, cat("steps are launched one by one: ", error.what()));
                return false;
            }
            begin = end;
        }
    return true;
}

}  // namespace dlprim
