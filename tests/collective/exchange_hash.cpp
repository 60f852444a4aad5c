// SPDX-License-Identifier: MIT
// Adds made-up sums of shards up in an exchange, which other processes may belong to. Prints in
// which levels, a hash of all means for each rank of the process, and how long a step took. A test
// starts several of this program.
//
//   collective_exchange_hash DEVICE CONTEXTS SHARDS STEPS ELEMENTS... [any]
//
// With `any` as the last word the transport adds in its own order, and means are compared with
// those of the tree. CONTEXTS is how many ranks this process has, all on the device. Each of
// ELEMENTS is the size of a tensor that leaves by itself.
#include "collective/exchange/exchange.hpp"
#include "exec/link_sum.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <dlprim/dlprim.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <random>
#include <thread>

using namespace dlprim;

namespace {

struct Work {
    std::string device;
    int contexts, shards, steps;
    bool any = false;
    std::vector<std::vector<std::int64_t>> groups{{1, 1030, 5000}};  ///< elements of their tensors
};

/// Shards of all ranks, which follow each other.
std::vector<ShardRange> parts_of(std::size_t ranks, int shards) {
    std::vector<ShardRange> parts;
    int first = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const int count =
            static_cast<int>((rank + 1) * static_cast<std::size_t>(shards) / ranks) - first;
        parts.push_back({first, count});
        first += count;
    }
    return parts;
}

/// The same numbers of a shard in every run.
void add_shard(std::vector<float>& to, int shard, unsigned seed) {
    std::uint32_t state = seed * 7919 + static_cast<std::uint32_t>(shard) * 104729 + 1;
    for (float& value : to) {
        state = state * 1664525 + 1013904223;
        value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    }
}

/// The sum over a node's shards, which has the tree's order.
std::vector<float> sum_of(const ShardRange& node, int shards, std::int64_t elements,
                          unsigned seed) {
    ShardTree tree(shards);
    std::vector<std::vector<float>> pending;
    for (int shard = node.first; shard < node.end(); ++shard) {
        std::vector<float> next(static_cast<std::size_t>(elements));
        add_shard(next, shard, seed);
        for (std::size_t joined = tree.take({shard, 1}); joined > 0; --joined) {
            for (std::size_t i = 0; i < next.size(); ++i) next[i] = pending.back()[i] + next[i];
            pending.pop_back();
        }
        pending.push_back(std::move(next));
    }
    return pending.at(0);
}

class Rank {
  public:
    Rank(const Work& work, Exchange& exchange, Context context, std::size_t rank)
        : work_(work), exchange_(exchange), context_(std::move(context)), rank_(rank) {
        ShardTree tree(work.shards);
        const ShardRange part = exchange.part(rank);
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        nodes_ = tree.pending();
        exchange.expect(rank, work.groups.size());
        for (const std::vector<std::int64_t>& sizes : work.groups) {
            std::vector<Exchange::Term>& terms = terms_.emplace_back();
            for (const std::int64_t count : sizes) {
                Exchange::Term& term = terms.emplace_back();
                term.mean = Tensor(context_, Shape{count}, DType::f32);
                for (std::size_t i = 0; i < nodes_.size(); ++i)
                    term.waiting.push_back(exchange.make_waiting(rank, Shape{count}, DType::f32));
            }
        }
    }

    void run() {
        for (int step = 0; step < work_.steps; ++step) {
            exchange_.begin(rank_);
            // A sum that is left from a step before would be noticed.
            const unsigned first = static_cast<unsigned>(step) % different * 100;
            unsigned seed = first;
            for (const std::vector<Exchange::Term>& terms : terms_)
                for (const Exchange::Term& term : terms) fill(term, seed++);
            const auto begin = std::chrono::steady_clock::now();
            for (std::size_t group = 0; group < terms_.size(); ++group) {
                pause();
                exchange_.start(rank_, group, terms_[group], Access::impl(context_).record({}));
            }
            exchange_.finish(rank_);
            if (step == 0 && rank_ == 0) std::fprintf(stderr, "the first step is done\n");
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
            seconds.push_back(passed.count());
            seed = first;
            for (const std::vector<Exchange::Term>& terms : terms_)
                for (const Exchange::Term& term : terms) {
                    std::vector<float> values(static_cast<std::size_t>(term.mean.shape().numel()));
                    term.mean.copy_to_host(values.data(), term.mean.bytes());
                    if (work_.any) compare(values, seed++);
                    for (const float value : values) {
                        std::uint32_t word = 0;
                        std::memcpy(&word, &value, sizeof(word));
                        hash = (hash ^ word) * 1099511628211u;
                    }
                }
        }
    }

    std::uint64_t hash = 14695981039346656037u;
    std::vector<double> seconds;

  private:
    static constexpr unsigned different = 3;  ///< steps, after which the same sums come again

    /// Now and then for a random time, where tests ask for it
    /// (tests/collective/rough_transport.cpp).
    void pause() {
        static const char* const longest = std::getenv("DLPRIM_ROUGH_DELAYS");
        if (longest == nullptr || random_() % 4 != 0) return;
        std::this_thread::sleep_for(
            std::chrono::microseconds(random_() % (1 + static_cast<unsigned>(std::atoi(longest)))));
    }

    void fill(const Exchange::Term& term, unsigned seed) {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            auto& sum = sums_[{seed, i}];
            if (sum.empty()) sum = sum_of(nodes_[i], work_.shards, term.mean.shape().numel(), seed);
            Tensor target = term.waiting[i];
            target.copy_from(sum);
        }
    }

    /// Throws where means are not about those of the tree.
    void compare(const std::vector<float>& means, unsigned seed) const {
        const std::vector<float> sums =
            sum_of({0, work_.shards}, work_.shards, static_cast<std::int64_t>(means.size()), seed);
        for (std::size_t i = 0; i < means.size(); ++i)
            if (std::abs(means[i] - sums[i] / static_cast<float>(work_.shards)) > 1e-6f)
                throw Error(ErrorKind::device, "WRONG MEAN");
    }

    const Work& work_;
    Exchange& exchange_;
    const Context context_;
    const std::size_t rank_;
    std::vector<ShardRange> nodes_;
    std::vector<std::vector<Exchange::Term>> terms_;
    std::map<std::pair<unsigned, std::size_t>, std::vector<float>> sums_;
    std::minstd_rand random_{static_cast<unsigned>(::getpid()) + static_cast<unsigned>(rank_)};
};

void run(const Work& work, const std::shared_ptr<ProcessGroup>& group) {
    std::size_t ranks = static_cast<std::size_t>(work.contexts);
    if (group) {
        std::vector<std::uint64_t> counts(group->size());
        const std::uint64_t own = ranks;
        group->allgather(&own, sizeof(own), counts.data(), "ranks");
        ranks = 0;
        for (const std::uint64_t count : counts) ranks += count;
    }
    std::vector<Context> contexts;
    std::vector<std::string> names;
    for (int i = 0; i < work.contexts; ++i) {
        contexts.emplace_back(work.device);
        names.push_back("context " + std::to_string(i));
    }
    const std::chrono::duration<double> deadline(60);
    const auto barrier = std::make_shared<Barrier>(names, deadline);
    const auto exchange = std::make_shared<Exchange>(
        contexts, work.shards, parts_of(ranks, work.shards), barrier, link_sum(), group);
    if (work.any) exchange->allow_any_order();
    std::vector<std::unique_ptr<Rank>> all;
    for (std::size_t i = 0; i < contexts.size(); ++i)
        all.push_back(std::make_unique<Rank>(work, *exchange, contexts[i], i));
    std::vector<std::exception_ptr> errors(all.size());
    const auto run_rank = [&](std::size_t i) {
        try {
            all[i]->run();
        } catch (const Error& error) {
            errors[i] = std::current_exception();
            barrier->fail(i, error);
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < all.size(); ++i) threads.emplace_back(run_rank, i);
    run_rank(0);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
    std::sort(all[0]->seconds.begin(), all[0]->seconds.end());
    for (const auto& rank : all)
        std::printf("%016llx\n", static_cast<unsigned long long>(rank->hash));
    const std::vector<double>& seconds = all[0]->seconds;
    std::fprintf(stderr, "%s; a step: %.2f ms at least, %.2f mostly\n", exchange->levels().c_str(),
                 1e3 * seconds[0], 1e3 * seconds[seconds.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 5) {
        std::fprintf(stderr,
                     "usage: collective_exchange_hash DEVICE CONTEXTS SHARDS STEPS ELEMENTS...\n");
        return 2;
    }
    Work work{argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
    work.any = std::string(argv[argc - 1]) == "any";
    for (int i = 5; i < argc - (work.any ? 1 : 0); ++i)
        work.groups.push_back({std::atoll(argv[i])});
    std::shared_ptr<ProcessGroup> group;
    if (const auto place = place_from_environment())
        group = std::make_shared<ProcessGroup>(*place, std::chrono::duration<double>(60));
    try {
        run(work, group);
        if (group) group->leave();
    } catch (const Error& error) {
        std::fprintf(stderr, "collective_exchange_hash: %s\n",
                     group ? group->failed(1, error.what()).text.c_str() : error.what());
        return 1;
    }
    return 0;
} catch (const Error& error) {
    std::fprintf(stderr, "collective_exchange_hash: %s\n", error.what());
    return 1;
}
