// SPDX-License-Identifier: MIT
// Exchange: the choice of levels, and buffers in memory that the processes of a host share. Each
// process makes memory for the buffers of all its ranks. The others know from sizes and from the
// plan where each buffer lies in it.
#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/places.hpp"
#include "collective/exchange/exchange.hpp"
#include "collective/processes/levels.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/pin_memory.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

void Exchange::choose_levels() {
    ProcessLayout layout{{}, {0}, {false}};
    for (const RankRange& ranks : processes_) layout.ranks.push_back(ranks.size());
    std::string setting;
    if (group_) {
        setting = env("DLPRIM_LEVELS").value_or("");
        group_->agree({{"DLPRIM_LEVELS", setting}});
        layout.hosts = group_->host().hosts();
        layout.shared = find_shared_memory();
    }
    process_levels_ = process_levels_of(layout, setting);
    const std::vector<LevelPlan::Groups> levels = rank_levels_of(process_levels_, layout.ranks);
    plan_ = std::make_unique<LevelPlan>(levels, shards_, parts_);
    for (std::size_t q = 0; q < size(); ++q)
        if (levels[0][q] == levels[0][own_.begin]) memory_.push_back(q);
    shared_host_ = memory_.size() > contexts_.size();
}

std::string Exchange::levels() const {
    if (any_order_)
        return cat("sums are added by ", group_->transport(),
                   " in an order of its own, which depends on the number of processes");
    std::vector<std::string> texts;
    for (std::size_t stage = 0; stage < plan_->stages(); ++stage) {
        std::size_t most = 1;
        for (std::size_t q = 0; q < size(); ++q)
            for (const LevelPlan::Addend& addend : plan_->addends(q, stage))
                most = std::max(most, addend.member + 1);
        if (most == 1) continue;
        texts.push_back(
            stage == 0
                ? cat(most, " ranks by ", shared_way_.empty() ? way(0) : shared_way_)
                : cat(most, texts.empty() ? " ranks" : " of these", " by ", group_->transport()));
    }
    return cat("sums are added among ", join(texts, ", then among "));
}

std::vector<bool> Exchange::find_shared_memory() {
    const SharedHost& host = group_->host();
    no_shared_ = host.reason();
    std::vector<bool> left = host.shared(), shared(left.size(), false);
    const auto none = [](const std::vector<bool>& of) {
        return std::find(of.begin(), of.end(), true) == of.end();
    };
    for (const bool pinned : {true, false}) {
        if (none(left)) break;
        const std::vector<bool> works = shared_memory_works(pinned, left);
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (!works[i]) continue;
            shared[i] = true;
            left[i] = false;
        }
        if (works[group_->rank()]) pins_shared_ = pinned;
        if (!none(works)) shared_way_ = pinned ? "pinned shared memory" : "shared memory";
    }
    if (!none(left))
        no_shared_ = "what devices of some process write there does not reach those of the others";
    return shared;
}

/// Whether the process's devices find what those of others have written. Every process makes
/// memory, passes the barrier and reaches memory of the others, also where something has failed:
/// they wait for it, and memory has the same order in all of them.
std::byte Exchange::check_shared(bool pinned) {
    SharedHost& host = group_->host();
    const std::uint64_t own = contexts_.size() * trial_bytes;
    std::vector<std::shared_ptr<std::byte>> memory(processes_.size());
    bool good = !pinned || env_flag("DLPRIM_PINNED").value_or(true);
    const auto always = [&](const auto& work) {
        try {
            work();
        } catch (const Error&) {
            good = false;
        }
    };
    const auto attempt = [&](const auto& work) {
        if (good) always(work);
    };
    pins_shared_ = pinned && good;
    always([&] { memory[group_->rank()] = shared_memory(group_->rank(), own); });
    attempt([&] {
        for (std::size_t rank = 0; rank < contexts_.size(); ++rank)
            send_trial(second_[rank], number(rank),
                       memory[group_->rank()].get() + rank * trial_bytes);
    });
    group_->meet_on_host("a trial of shared memory", 0);
    for (const std::size_t process : host.mates()) {
        const RankRange& ranks = processes_[process];
        if (process != group_->rank())
            always([&] { memory[process] = shared_memory(process, ranks.size() * trial_bytes); });
        attempt([&] {
            for (const Context& context : second_)
                for (std::size_t q = ranks.begin; q < ranks.end; ++q)
                    good = good &&
                           finds_trial(context, q,
                                       memory[process].get() + (q - ranks.begin) * trial_bytes);
        });
    }
    return std::byte{good};
}

std::vector<bool> Exchange::shared_memory_works(bool pinned, const std::vector<bool>& tried) {
    const std::byte good = tried[group_->rank()] ? check_shared(pinned) : std::byte{0};
    std::vector<std::byte> all(group_->size());
    group_->allgather(&good, 1, all.data(), "whether devices find what others share");
    const std::vector<std::size_t>& hosts = group_->host().hosts();
    std::vector<bool> works = tried;
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t mate = 0; mate < all.size(); ++mate)
            if (hosts[mate] == hosts[i] && all[mate] != std::byte{1}) works[i] = false;
    return works;
}

std::shared_ptr<std::byte> Exchange::shared_memory(std::size_t process, std::uint64_t bytes) {
    SharedHost& host = group_->host();
    SharedMemory::Part part =
        process == group_->rank() ? host.make(bytes) : host.reach(process, bytes);
    if (!pins_shared_) return part;
    struct Kept {
        SharedMemory::Part part;
        std::shared_ptr<void> pinned;  // goes first
    };
    const auto kept = std::make_shared<Kept>();
    kept->part = std::move(part);
    kept->pinned = pin_memory(Access::shared_impl(second_[0]), kept->part.get(), bytes);
    return {kept, kept->part.get()};
}

void Exchange::share_buffers(std::size_t process, std::size_t group, const Terms& terms) {
    const RankRange& ranks = processes_[process];
    const StagingBuffer memory(shared_memory(process, lay_out(ranks, group, terms, nullptr)));
    lay_out(ranks, group, terms, &memory);
}

void Exchange::meet_on_host(std::size_t group, const Terms& terms, const std::string& what) {
    std::uint64_t bytes = 0;
    for (const Term& term : terms) bytes += term.mean.bytes();
    group_->meet_on_host(what, bytes);
    for (const std::size_t process : group_->host().mates())
        if (buffers_[processes_[process].begin].at(group).empty())
            share_buffers(process, group, terms);
}

}  // namespace dlprim
