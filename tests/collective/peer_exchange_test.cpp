// SPDX-License-Identifier: MIT
// The exchange through memory that devices reach: the bits of the exchange through the host, for
// any number of devices and shards, and for sums that are not alike.
#include "collective/exchange.hpp"
#include "collective/shared_devices.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Shards of each rank: as evenly as can be, or the last one has most.
std::vector<ShardRange> parts_of(int ranks, int shards, bool even) {
    std::vector<ShardRange> parts;
    int first = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        int count = even ? shards / ranks + (rank < shards % ranks ? 1 : 0) : 1;
        if (!even && rank + 1 == ranks) count = shards - first;
        parts.push_back({first, count});
        first += count;
    }
    return parts;
}

struct Setting {
    std::vector<Context> contexts;
    int shards;
    std::vector<ShardRange> parts;
    Exchange::ChoosePeers choose;
};

/// The means of two steps, each of two groups, on every rank: a large tensor, and small ones, whose
/// slices differ in size or are empty.
std::vector<std::vector<Bytes>> means(const Setting& setting) {
    const std::vector<std::vector<std::int64_t>> groups{{(1 << 20) + 3000}, {1, 1030, 4096}};
    std::vector<std::string> names;
    for (const Context& context : setting.contexts) names.push_back(context.info().str());
    const auto barrier = std::make_shared<Barrier>(names, std::chrono::duration<double>(60));
    const auto exchange = std::make_shared<Exchange>(
        setting.contexts, setting.shards, setting.parts, barrier, add_tensors, setting.choose);
    std::vector<std::vector<Bytes>> found(setting.contexts.size());
    const auto work = [&](std::size_t rank) {
        const Context& context = setting.contexts[rank];
        ShardTree tree(setting.shards);
        const ShardRange part = setting.parts[rank];
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        exchange->expect(rank, groups.size());
        std::vector<Tensor> large;  // which kernels of others reach where they lie
        for (std::size_t i = 0; i < tree.pending().size(); ++i)
            large.push_back(exchange->make_waiting(rank, Shape{groups[0][0]}, DType::f32));
        for (unsigned step = 0; step < 2; ++step) {
            std::vector<Tensor> all;
            for (std::size_t group = 0; group < groups.size(); ++group) {
                std::vector<Exchange::Term> terms;
                for (const std::int64_t count : groups[group]) {
                    Exchange::Term term{{}, Tensor(context, Shape{count}, DType::f32)};
                    for (const ShardRange& sum : tree.pending()) {
                        const std::size_t sums = term.waiting.size();
                        term.waiting.push_back(
                            group == 0 ? large[sums] : Tensor(context, Shape{count}, DType::f32));
                        term.waiting.back().copy_from(
                            random_floats(static_cast<std::size_t>(count),
                                          100 * step + static_cast<unsigned>(sum.first)));
                    }
                    all.push_back(term.mean);
                    terms.push_back(std::move(term));
                }
                exchange->start(rank, group, std::move(terms), Access::impl(context).record({}));
            }
            exchange->finish(rank);
            for (const Tensor& tensor : all) found[rank].push_back(bits(tensor));
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t rank = 1; rank < setting.contexts.size(); ++rank)
        threads.emplace_back(work, rank);
    work(0);
    for (std::thread& thread : threads) thread.join();
    return found;
}

int sums_that_wait(const Setting& setting) {
    std::size_t sums = 0;
    for (const ShardRange& part : setting.parts) {
        ShardTree tree(setting.shards);
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        sums += tree.pending().size();
    }
    return static_cast<int>(sums);
}

}  // namespace

TEST_CASE("sums through memory that devices reach have the bits of the host's way", "[peer]") {
    const auto none = [](const std::vector<Context>&, const AddPair&) {
        return PeerChoice{nullptr, "a test"};
    };
    ON_EVERY_DEVICE(device) {
        if (device.info().kind == DeviceKind::gpu) return;
        for (const auto& [ranks, shards, even] :
             {std::tuple{2, 2, true}, {2, 7, true}, {3, 3, true}, {3, 8, false}, {4, 5, true}}) {
            INFO(ranks << " devices, " << shards << " shards");
            Setting setting{contexts_like(device, static_cast<std::size_t>(ranks)), shards,
                            parts_of(ranks, shards, even), none};
            const auto expected = means(setting);
            std::shared_ptr<FakePeers> source;
            setting.choose = [&](const std::vector<Context>& contexts, const AddPair&) {
                source = std::make_shared<FakePeers>(contexts);
                return PeerChoice{source, ""};
            };
            CHECK((means(setting) == expected));
            for (const auto& of_rank : expected) CHECK((of_rank == expected[0]));
            // In the first step alone: for each group, and each large sum that waits.
            CHECK(source->made == 2 * ranks + sums_that_wait(setting));
        }
    }
}
