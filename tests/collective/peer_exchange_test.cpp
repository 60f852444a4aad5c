// SPDX-License-Identifier: MIT
// The exchange through memory that devices reach: the bits of the exchange through the host, for
// any number of devices and shards, and for sums that are not alike.
#include "collective/devices/second_queue.hpp"
#include "collective/exchange/exchange.hpp"
#include "collective/shared_devices.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <algorithm>
#include <cstdlib>
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
    std::chrono::microseconds spin{0};
    std::uint64_t small = 1 << 20;
};

/// The means of three steps on every rank: of small tensors, whose slices differ in size or are
/// empty, and of a large one, whose ranges leave one after the other, its end first.
std::vector<std::vector<Bytes>> means(const Setting& setting) {
    constexpr std::int64_t large = (1 << 20) + 3000, ranges = 5;
    std::vector<std::string> names;
    for (const Context& context : setting.contexts) names.push_back(context.info().str());
    const auto barrier = std::make_shared<Barrier>(names, std::chrono::duration<double>(60));
    barrier->set_spin(setting.spin);
    const auto exchange =
        std::make_shared<Exchange>(setting.contexts, setting.shards, setting.parts, barrier,
                                   add_tensors, nullptr, setting.choose);
    std::vector<std::vector<Bytes>> found(setting.contexts.size());
    const auto work = [&](std::size_t rank) {
        const Context& context = setting.contexts[rank];
        ShardTree tree(setting.shards);
        const ShardRange part = setting.parts[rank];
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        exchange->expect(rank, 1 + ranges, setting.small);
        std::vector<Tensor> lasting;  // which kernels of others reach where they lie
        for (std::size_t i = 0; i < tree.pending().size(); ++i)
            lasting.push_back(exchange->make_waiting(rank, Shape{large}, DType::f32));
        const Tensor mean(context, Shape{large}, DType::f32);
        for (unsigned step = 0; step < 3; ++step) {
            const auto fill = [&](Tensor tensor, const ShardRange& sum) {
                tensor.copy_from(random_floats(static_cast<std::size_t>(tensor.shape().numel()),
                                               100 * step + static_cast<unsigned>(sum.first)));
            };
            const auto start = [&](std::size_t group, std::vector<Exchange::Term> terms) {
                exchange->start(rank, group, std::move(terms), Access::impl(context).record({}));
            };
            exchange->begin(rank);
            std::vector<Exchange::Term> terms;
            for (const std::int64_t count : {1, 1030, 4096}) {
                Exchange::Term term{{}, Tensor(context, Shape{count}, DType::f32)};
                for (const ShardRange& sum : tree.pending()) {
                    term.waiting.emplace_back(context, Shape{count}, DType::f32);
                    fill(term.waiting.back(), sum);
                }
                terms.push_back(std::move(term));
            }
            for (std::size_t i = 0; i < lasting.size(); ++i) fill(lasting[i], tree.pending()[i]);
            start(0, terms);
            for (std::int64_t range = ranges; range-- > 0;) {
                const std::int64_t begin = large * range / ranges / 64 * 64;
                const std::int64_t end =
                    range + 1 == ranges ? large : large * (range + 1) / ranges / 64 * 64;
                const auto cut = [&](const Tensor& tensor) {
                    return elements_of(context, tensor, begin, end - begin);
                };
                Exchange::Term term{{}, cut(mean)};
                for (const Tensor& sum : lasting) term.waiting.push_back(cut(sum));
                start(static_cast<std::size_t>(ranges - range), {term});
            }
            exchange->finish(rank);
            for (const Exchange::Term& term : terms) found[rank].push_back(bits(term.mean));
            found[rank].push_back(bits(mean));
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

TEST_CASE("an exchange that ends waits for copies from its memory", "[peer]") {
    ::setenv("DLPRIM_PINNED", "0", 1);
    ON_EVERY_DEVICE(device) {
        constexpr std::int64_t count = 16 << 20, half = count / 2;
        const std::vector<Context> contexts = contexts_like(device, 2);
        const auto barrier = std::make_shared<Barrier>(
            std::vector<std::string>{"the first", "the second"}, std::chrono::duration<double>(60));
        auto exchange =
            std::make_shared<Exchange>(contexts, 2, parts_of(2, 2, true), barrier, add_tensors);
        std::vector<Tensor> tensors;
        for (int rank = 0; rank < 2; ++rank) {
            tensors.emplace_back(contexts[static_cast<std::size_t>(rank)], Shape{count});
            tensors.back().fill(rank + 1);
        }
        const auto share = [&](std::size_t rank) {
            exchange->share(rank, tensors[rank], {{0, half}, {half, count}});
        };
        std::thread second(share, 1);
        share(0);
        second.join();
        exchange.reset();
        for (const Tensor& tensor : tensors) {
            const std::vector<float> values = tensor.to_floats();
            CHECK(std::count(values.begin(), values.begin() + half, 1.0f) == half);
            CHECK(std::count(values.begin() + half, values.end(), 2.0f) == half);
        }
    }
    ::unsetenv("DLPRIM_PINNED");
}

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
            setting.spin = std::chrono::milliseconds(1);  // as teams of GPUs wait
            CHECK((means(setting) == expected));
            setting.small = 0;  // nothing is added by all ranks; then, all is
            CHECK((means(setting) == expected));
            setting.small = 1 << 30;
            CHECK((means(setting) == expected));
            std::shared_ptr<FakePeers> source;
            setting.choose = [&](const std::vector<Context>& contexts, const AddPair&) {
                source = std::make_shared<FakePeers>(contexts);
                return PeerChoice{source, ""};
            };
            CHECK((means(setting) == expected));
            setting.small = 0;
            CHECK((means(setting) == expected));
            for (const auto& of_rank : expected) CHECK((of_rank == expected[0]));
            // Once, for the small tensors of each rank, and for each large sum that waits.
            CHECK(source->made == ranks + sums_that_wait(setting));
            // Large sums that such memory cannot hold wait elsewhere, and leave in parts.
            setting.choose = [&](const std::vector<Context>& contexts, const AddPair&) {
                source = std::make_shared<FakePeers>(contexts);
                source->most = std::uint64_t{2} << 20;
                return PeerChoice{source, ""};
            };
            CHECK((means(setting) == expected));
            CHECK(source->made > ranks + sums_that_wait(setting));
        }
    }
}
