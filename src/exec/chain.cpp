// SPDX-License-Identifier: MIT
// Chain: tickets, and the launches.
#include "exec/chain.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <map>
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
std::size_t items_of(const KernelCall& call) {
    const NDRange& range = call.range();
    return range.global[0] * range.global[1] * range.global[2];
}

}  // namespace

/// `number`: of the call's function in the program.
void Chain::add_row(CallTable& table, const PlacedCall& placed, std::size_t number,
                    int most_tickets) {
    const NDRange& range = placed.call->range();
    const auto items = static_cast<int>(items_of(*placed.call));
    const int first = std::exchange(tickets_, tickets_ + std::min(items, most_tickets));
    // As in chain.cl.
    const std::int32_t head[] = {first,
                                 tickets_,
                                 static_cast<std::int32_t>(range.global[0]),
                                 static_cast<std::int32_t>(range.global[1]),
                                 static_cast<std::int32_t>(range.global[2]),
                                 static_cast<std::int32_t>(number)};
    table.add(placed, program_->arguments(number), head);
}

Chain::Chain(ContextImpl& context, std::shared_ptr<const ChainProgram> program,
             std::span<const Step> steps)
    : context_(context),
      program_(std::move(program)),
      workers_(std::max(1, context.traits().compute_units)),
      table_(context, program_->memories()) {
    double seconds = 0;
    std::map<const KernelCall*, std::size_t> numbers;  // steps of the same work share a launch
    const auto number_of = [&](const KernelCall& call) {
        const auto [at, is_new] = numbers.try_emplace(&call, 0);
        if (is_new) at->second = program_->number_of(call);
        return at->second;
    };
    for (const Step& step : steps) {
        const double arithmetic = step.flops / (std::max(context.traits().gflops, 1.0) * 1e9);
        const int most_tickets =
            workers_ * std::max(tickets_a_core, static_cast<int>(arithmetic / seconds_a_ticket));
        for (const KernelCall& call : step.launch->calls())
            if (items_of(call) > 0)
                add_row(table_, {&call, places_.size()}, number_of(call), most_tickets);
        places_.insert(places_.end(), step.operands.begin(), step.operands.end());
        seconds += step.bound_seconds;
        if (seconds < seconds_a_launch && &step != &steps.back()) continue;
        ends_.push_back(static_cast<std::int32_t>(table_.rows()));
        seconds = 0;
        tickets_ = 0;
    }
    NDRange range;
    range.global[0] = static_cast<std::size_t>(workers_);
    range.local = {1, 1, 1};
    kernel_.emplace(program_->program(), "chain", range, program_->memories());
    const std::uint32_t zero = 0;
    state_ = context.allocate(1024);
    context.queue().fill({state_.get(), 0}, 1024, &zero, sizeof(zero));
    kernel_->call.memory("state", *state_).scalar("workers", std::int32_t{workers_});
}

void Chain::launch(const CallTable& table, const CallTable::Part& part,
                   std::span<const BufferRef> operands, std::int32_t begin, std::int32_t end) {
    kernel_->bind(part, operands);
    kernel_->call.scalar("row_bytes", static_cast<std::int32_t>(table.row_bytes()))
        .scalar("call", begin)
        .scalar("end", end);
    kernel_->call.enqueue(context_.queue(), {});
}

void Chain::run(std::span<const KernelCall> calls, std::span<const BufferRef> operands) {
    CallTable table(context_, program_->memories());
    tickets_ = 0;
    for (const KernelCall& call : calls)
        if (items_of(call) > 0) add_row(table, {&call, 0}, program_->number_of(call), workers_);
    for (const CallTable::Part& part : table.place(context_.queue(), operands))
        launch(table, part, operands, 0, static_cast<std::int32_t>(table.rows()));
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
                launch(table_, part, operands, begin, end);
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
