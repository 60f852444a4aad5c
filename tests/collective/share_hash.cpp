// SPDX-License-Identifier: MIT
// Lets the ranks of an exchange, which other processes may belong to, give each other what is not a
// sum, and compares what arrives with what was sent. Prints for each process how many bytes its
// transport has sent in a step, and how long a step took. A test starts several of this program.
//
//   collective_share_hash share|broadcast|values DEVICE CONTEXTS STEPS ELEMENTS [different|late]
//
// `share`: each rank has a slice of a tensor. `broadcast`: the first rank has all of it. `values`:
// each rank has numbers of its own, as batch norms that take statistics of the whole batch do.
// CONTEXTS is how many ranks this process has, all on the device. With `different` the last process
// comes with another number of elements, which is an error. With `late` it comes six seconds later
// than the others, who wait for two where they have a deadline.
#include "collective/exchange/exchange.hpp"
#include "exec/link_sum.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>

using namespace dlprim;

namespace {

struct Work {
    std::string kind, device;
    int contexts = 1, steps = 1;
    std::int64_t elements = 0;
    bool is_late = false;             ///< whether this process is
    std::vector<std::size_t> counts;  ///< ranks of each process
    std::size_t first = 0;            ///< of this process's ranks
    std::size_t ranks() const {
        return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    }
};

/// What an element is in a step.
float value_of(int step, std::int64_t element) {
    return static_cast<float>((element * 31 + step * 7919) % 1000003);
}

class Rank {
  public:
    Rank(const Work& work, Exchange& exchange, const std::shared_ptr<ProcessGroup>& group,
         Context context, std::size_t rank)
        : work_(work),
          exchange_(exchange),
          group_(group),
          meeting_(exchange.meeting(rank)),
          context_(std::move(context)),
          rank_(rank),
          tensor_(context_, Shape{work.elements}, DType::f32) {
        exchange.expect(rank, 1);
        Exchange::Term term;
        term.mean = Tensor(context_, Shape{8}, DType::f32);
        term.waiting.push_back(exchange.make_waiting(rank, Shape{8}, DType::f32));
        terms_.push_back(term);
        const auto ranks = static_cast<std::int64_t>(work.ranks());
        for (std::int64_t q = 0; q < ranks; ++q)
            slices_.push_back(
                {work.elements * q / ranks / 64 * 64,
                 q + 1 == ranks ? work.elements : work.elements * (q + 1) / ranks / 64 * 64});
    }

    void run() {
        for (int step = 0; step < work_.steps; ++step) {
            // A step of a training has sums before anything else.
            exchange_.begin(rank_);
            terms_[0].waiting[0].copy_from(std::vector<float>(8, 1));
            exchange_.start(rank_, 0, terms_, Access::impl(context_).record({}));
            exchange_.finish(rank_);
            if (work_.is_late) std::this_thread::sleep_for(std::chrono::seconds(6));
            const std::uint64_t before = group_ ? group_->sent() : 0;
            if (work_.kind == "values")
                exchange_values(step);
            else
                exchange_tensor(step);
            if (group_) sent += group_->sent() - before;
        }
    }

    std::vector<double> seconds;
    std::uint64_t sent = 0;  ///< bytes, by the process's transport

  private:
    void exchange_values(int step) {
        std::vector<double> own(static_cast<std::size_t>(work_.elements));
        const auto value = [&](std::size_t rank, std::size_t i) {
            return static_cast<double>(rank) * 1e6 + value_of(step, static_cast<std::int64_t>(i));
        };
        for (std::size_t i = 0; i < own.size(); ++i) own[i] = value(work_.first + rank_, i);
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<std::vector<double>> all = meeting_->gather("a norm", own);
        note_time(begin);
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            for (std::size_t i = 0; i < own.size(); ++i)
                if (all[rank].at(i) != value(rank, i)) wrong();
    }

    void exchange_tensor(int step) {
        const bool is_share = work_.kind == "share";
        const std::size_t self = work_.first + rank_;
        std::vector<float> values(static_cast<std::size_t>(work_.elements), -1);
        const auto fill = [&](const Exchange::Slice& slice) {
            for (std::int64_t i = slice.begin; i < slice.end; ++i)
                values[static_cast<std::size_t>(i)] = value_of(step, i);
        };
        if (is_share)
            fill(slices_[self]);
        else if (self == 0)
            fill({0, work_.elements});
        tensor_.copy_from(values);
        const auto begin = std::chrono::steady_clock::now();
        if (is_share)
            exchange_.share(rank_, tensor_, slices_);
        else
            exchange_.broadcast(rank_, tensor_);
        Access::impl(context_).queue().finish();
        note_time(begin);
        tensor_.copy_to_host(values.data(), tensor_.bytes());
        for (std::int64_t i = 0; i < work_.elements; ++i)
            if (values[static_cast<std::size_t>(i)] != value_of(step, i)) wrong();
    }

    void note_time(std::chrono::steady_clock::time_point begin) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        seconds.push_back(passed.count());
    }

    [[noreturn]] static void wrong() { throw Error(ErrorKind::device, "WRONG VALUE"); }

    const Work& work_;
    Exchange& exchange_;
    const std::shared_ptr<ProcessGroup> group_;
    const std::unique_ptr<ShardMeeting> meeting_;
    const Context context_;
    const std::size_t rank_;
    Tensor tensor_;
    std::vector<Exchange::Term> terms_;
    std::vector<Exchange::Slice> slices_;
};

void run(Work work, const std::shared_ptr<ProcessGroup>& group) {
    work.counts = {static_cast<std::size_t>(work.contexts)};
    if (group) {
        const std::uint64_t own = work.counts[0];
        work.counts.resize(group->size());
        group->allgather(&own, sizeof(own), work.counts.data(), "ranks");
        for (std::size_t p = 0; p < group->rank(); ++p) work.first += work.counts[p];
    }
    std::vector<Context> contexts;
    std::vector<std::string> names;
    for (int i = 0; i < work.contexts; ++i) {
        contexts.emplace_back(work.device);
        names.push_back("context " + std::to_string(i));
    }
    std::vector<ShardRange> parts;
    for (std::size_t q = 0; q < work.ranks(); ++q) parts.push_back({static_cast<int>(q), 1});
    const auto barrier = std::make_shared<Barrier>(names, std::chrono::duration<double>(60));
    const auto exchange = std::make_shared<Exchange>(contexts, static_cast<int>(parts.size()),
                                                     parts, barrier, link_sum(), group);
    std::vector<std::unique_ptr<Rank>> all;
    for (std::size_t i = 0; i < contexts.size(); ++i)
        all.push_back(std::make_unique<Rank>(work, *exchange, group, contexts[i], i));
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < all.size(); ++i) threads.emplace_back([&, i] { all[i]->run(); });
    all[0]->run();
    for (std::thread& thread : threads) thread.join();
    std::vector<double>& seconds = all[0]->seconds;
    std::sort(seconds.begin(), seconds.end());
    if (group)
        std::printf("%llu\n", static_cast<unsigned long long>(all[0]->sent /
                                                              static_cast<unsigned>(work.steps)));
    std::fprintf(stderr, "%s; a step: %.3f ms at least, %.3f mostly\n", exchange->levels().c_str(),
                 1e3 * seconds[0], 1e3 * seconds[seconds.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 6) {
        std::fprintf(
            stderr,
            "usage: collective_share_hash share|broadcast|values DEVICE CONTEXTS STEPS ELEMENTS "
            "[different|late]\n");
        return 2;
    }
    Work work;
    work.kind = argv[1];
    work.device = argv[2];
    work.contexts = std::atoi(argv[3]);
    work.steps = std::atoi(argv[4]);
    work.elements = std::atoll(argv[5]);
    const std::string more = argc > 6 ? argv[6] : "";
    const std::chrono::duration<double> deadline(more == "late" ? 2 : 60);
    std::shared_ptr<ProcessGroup> group;
    if (const auto place = place_from_environment())
        group = std::make_shared<ProcessGroup>(*place, deadline);
    const bool is_last = group && group->rank() + 1 == group->size();
    if (is_last && more == "different") work.elements += 64;
    work.is_late = is_last && more == "late";
    try {
        run(work, group);
        if (group) group->leave();
    } catch (const Error& error) {
        std::fprintf(stderr, "collective_share_hash: %s\n",
                     group ? group->failed(1, error.what()).text.c_str() : error.what());
        return 1;
    }
    return 0;
} catch (const Error& error) {
    std::fprintf(stderr, "collective_share_hash: %s\n", error.what());
    return 1;
}
