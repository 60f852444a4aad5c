// SPDX-License-Identifier: MIT
// Chain: the text of the combined program, the table of calls, and the launch.
#include "exec/chain.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/kernel_function.hpp"
#include "engine/launch.hpp"
#include "runtime/kernel_parameters.hpp"

#include <dlprim/log.hpp>

#include <algorithm>

namespace dlprim {

namespace {

constexpr std::size_t head_words = 7;  // of a row, in front of the arguments
// Work of one launch. The next launch wakes work-items that gave up in this one.
constexpr double seconds_a_launch = 3e-3;
// Tickets of one call per core: at least so many, and one per so many seconds of arithmetic. To
// draw a ticket takes about 0.1 us. What memory bounds stays in long parts, which are read in
// order.
constexpr int tickets_a_core = 16;
constexpr double seconds_a_ticket = 1e-5;
constexpr std::size_t most_slots = 96;  // devices allow at least 1024 bytes of parameters
// How often a work-item polls before it gives up. With bound threads, 2 ms: by then an interrupted
// thread runs again. With shared cores, 0.1 ms: the work-item that it waits for may be waiting for
// its core.
constexpr int most_waits_bound = 4'000'000, most_waits_shared = 200'000;

}  // namespace

int Chain::slot_of(const Place& place) {
    for (std::size_t i = 0; i < slots_.size(); ++i)
        if (slots_[i].place.kind == place.kind && slots_[i].place.index == place.index)
            return static_cast<int>(i);
    Slot slot;
    slot.place = place;
    slot.place.offset = 0;
    slots_.push_back(slot);
    return static_cast<int>(slots_.size() - 1);
}

/// The number of the call's function, or that of the next new one.
int Chain::number_of(const KernelCall& call) const {
    const std::string key =
        hash_hex(cat(call.kernel(), '\n', call.source().options, '\n', call.source().source));
    return static_cast<int>(std::find(known_.begin(), known_.end(), key) - known_.begin());
}

Chain::Row Chain::row_of(const KernelCall& call, int number, int tickets,
                         const std::function<int(int)>& slot_of_operand) const {
    const NDRange& range = call.range();
    const std::size_t items = range.global[0] * range.global[1] * range.global[2];
    const int wanted = std::max(1, std::min(static_cast<int>(items), tickets));
    Row row;
    row.words = {tickets_,
                 tickets_ + wanted,
                 static_cast<std::int32_t>(items),
                 static_cast<std::int32_t>(range.global[0]),
                 static_cast<std::int32_t>(range.global[1]),
                 static_cast<std::int32_t>(range.global[2]),
                 number};
    const std::vector<KernelParameter> parameters =
        kernel_signature(call.source().source, call.kernel());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto index = static_cast<int>(i);
        const auto bound = std::find_if(
            call.bindings().begin(), call.bindings().end(),
            [&](const auto& b) { return b.buffer_index == index || b.offset_index == index; });
        const bool is_bound = bound != call.bindings().end();
        if (is_bound && bound->buffer_index == index) {
            row.words.push_back(slot_of_operand(bound->operand));
            continue;
        }
        if (is_bound) row.offsets.emplace_back(row.words.size(), &*bound);
        const std::uint64_t bits = is_bound ? 0 : call.scalar_bits(index);
        row.words.push_back(static_cast<std::int32_t>(bits & 0xffffffff));
        if (argument_words(parameters[i].type) == 2)
            row.words.push_back(static_cast<std::int32_t>(bits >> 32));
    }
    return row;
}

void Chain::add_call(const KernelCall& call, const Step& step) {
    const NDRange& range = call.range();
    if (range.global[0] * range.global[1] * range.global[2] == 0) return;
    const int number = number_of(call);
    if (number == static_cast<int>(known_.size())) {
        known_.push_back(
            hash_hex(cat(call.kernel(), '\n', call.source().options, '\n', call.source().source)));
        functions_ += kernel_as_function(call.source(), number).value();
        cases_ += cat("case ", number, ": ", call.kernel(), '_', number,
                      "(i, j, k, width, height, depth");
        std::size_t at = 0;
        for (const KernelParameter& parameter :
             kernel_signature(call.source().source, call.kernel())) {
            const std::string& type = parameter.type;
            if (type.find('*') != std::string::npos)
                cases_ += cat(", (global void*)buffers[a[", at, "]]");
            else if (argument_words(type) == 2)
                cases_ += cat(", (", type, ")chain_long(a + ", at, ')');
            else
                cases_ += cat(", as_", type, "(a[", at, "])");
            at += argument_words(type);
        }
        cases_ += "); break; ";
    }
    const double arithmetic = step.flops / (std::max(context_.traits().gflops, 1.0) * 1e9);
    const int tickets =
        workers_ * std::max(tickets_a_core, static_cast<int>(arithmetic / seconds_a_ticket));
    const auto place_of = [&](int operand) -> const Place& {
        return step.operands.at(static_cast<std::size_t>(operand));
    };
    Row row =
        row_of(call, number, tickets, [&](int operand) { return slot_of(place_of(operand)); });
    for (const auto& [word, bound] : row.offsets) {
        const Place& place = place_of(bound->operand);
        patches_.push_back({rows_.size() << 16 | word, static_cast<std::size_t>(slot_of(place)),
                            place.offset + bound->extra_bytes, bound->element_bytes});
    }
    tickets_ = row.words[1];
    rows_.push_back(std::move(row.words));
}

Chain::Chain(ContextImpl& context, std::vector<const Step*> steps)
    : context_(context), workers_(std::max(1, context.traits().compute_units)) {
    double seconds = 0;
    for (const Step* step : steps) {
        for (const KernelCall& call : step->launch->calls()) add_call(call, *step);
        seconds += step->bound_seconds;
        if (seconds < seconds_a_launch && step != steps.back()) continue;
        ends_.push_back(static_cast<std::int32_t>(rows_.size()));
        seconds = 0;
        tickets_ = 0;
    }
    require(slots_.size() <= most_slots, "a chain of ", slots_.size(), " buffers");
    std::size_t row = head_words;
    for (const auto& words : rows_) row = std::max(row, words.size());
    row_ = row;
    words_.assign(row * rows_.size(), 0);
    for (std::size_t i = 0; i < rows_.size(); ++i)
        std::copy(rows_[i].begin(), rows_[i].end(),
                  words_.begin() + static_cast<std::ptrdiff_t>(i * row));
    for (Patch& patch : patches_) patch.word = (patch.word >> 16) * row + (patch.word & 0xffff);

    std::string parameters, list;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        parameters += cat(", global uchar* b", i);
        list += cat(i > 0 ? ", " : "", "b", i);
    }
    std::string text = kernel_source("exec/chain.cl");
    const auto put = [&](const std::string& word, const std::string& by) {
        const std::size_t at = text.rfind(word);
        text.replace(at, word.size(), by);
    };
    put("CHAIN_CASES", cases_);
    put("CHAIN_LIST", list);
    put("CHAIN_BUFFERS", parameters);
    text = cat(functions_text(functions_), "#define ROW ", row, "\n#define MOST_WAITS ",
               context.traits().own_cores ? most_waits_bound : most_waits_shared, '\n', text);
    program_ = context.build({"exec/chain.cl", text, ""});
    kernel_ = program_->kernel("chain");
    const std::uint32_t zero = 0;
    state_ = context.allocate(1024);
    context.queue().fill({state_.get(), 0}, 1024, &zero, sizeof(zero));
    table_ = context.allocate(words_.size() * 4);
    kernel_->set(kernel_->index_of("state"), *state_);
    kernel_->set(kernel_->index_of("table"), *table_);
    kernel_->set(kernel_->index_of("workers"), &workers_, sizeof(workers_));
    functions_.clear();
    cases_.clear();
    rows_.clear();
    tickets_ = 0;
}

bool Chain::has(std::span<const KernelCall> calls) const {
    return !calls.empty() && !slots_.empty() &&
           std::all_of(calls.begin(), calls.end(), [&](const KernelCall& call) {
               return number_of(call) < static_cast<int>(known_.size());
           });
}

void Chain::run(std::span<const KernelCall> calls, std::span<const BufferRef> operands) {
    Queue& queue = context_.queue();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        kernel_->set(kernel_->index_of(cat("b", i)), *operands[0].buffer);
        slots_[i].bound_id = 0;  // enqueue() binds its own again
    }
    const auto table = context_.allocate(row_ * 4);
    kernel_->set(kernel_->index_of("table"), *table);
    const std::int32_t call = 0, end = 1;
    kernel_->set(kernel_->index_of("call"), &call, sizeof(call));
    kernel_->set(kernel_->index_of("end"), &end, sizeof(end));
    NDRange range;
    range.global[0] = static_cast<std::size_t>(workers_);
    range.local = {1, 1, 1};
    for (const KernelCall& one : calls) {
        Row row = row_of(one, number_of(one), workers_ * tickets_a_core, [](int) { return 0; });
        for (const auto& [word, bound] : row.offsets) {
            const BufferRef& ref = operands[static_cast<std::size_t>(bound->operand)];
            const std::uint64_t offset =
                (ref.handle_offset() + bound->extra_bytes) / bound->element_bytes;
            row.words[word] = static_cast<std::int32_t>(offset & 0xffffffff);
            row.words[word + 1] = static_cast<std::int32_t>(offset >> 32);
        }
        if (row.words[2] == 0) continue;
        row.words.resize(row_);
        queue.write({table.get(), 0}, row.words.data(), row_ * 4, true);
        queue.launch(*kernel_, range);
        queue.finish();
    }
    kernel_->set(kernel_->index_of("table"), *table_);
}

bool Chain::enqueue(const std::function<BufferRef(const Place&)>& resolve) {
    bool moved = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        const BufferRef ref = resolve(slot.place);
        require(ref.buffer != nullptr, "a chain's buffer ", i, " is not bound");
        const bool first = slot.bound_id == 0;
        if (slot.bound_id != ref.buffer->id()) {
            kernel_->set(kernel_->index_of(cat("b", i)), *ref.buffer);
            slot.bound_id = ref.buffer->id();
        }
        moved = moved || first || slot.offset != ref.handle_offset();
        slot.offset = ref.handle_offset();
    }
    if (moved) {
        for (const Patch& patch : patches_) {
            const std::uint64_t offset =
                (slots_[patch.slot].offset + patch.extra_bytes) / patch.element_bytes;
            words_[patch.word] = static_cast<std::int32_t>(offset & 0xffffffff);
            words_[patch.word + 1] = static_cast<std::int32_t>(offset >> 32);
        }
        context_.queue().write({table_.get(), 0}, words_.data(), words_.size() * 4, true);
    }
    NDRange range;
    range.global[0] = static_cast<std::size_t>(workers_);
    range.local = {1, 1, 1};
    const int first = kernel_->index_of("call"), last = kernel_->index_of("end");
    std::int32_t call = 0;
    for (const std::int32_t end : ends_) {
        kernel_->set(first, &call, sizeof(call));
        kernel_->set(last, &end, sizeof(end));
        try {
            context_.queue().launch(*kernel_, range);
        } catch (const Error& error) {
            if (call > 0) throw;
            log(LogLevel::warning, cat("steps are launched one by one: ", error.what()));
            return false;
        }
        call = end;
    }
    return true;
}

}  // namespace dlprim
