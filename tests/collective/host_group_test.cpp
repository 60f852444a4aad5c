// SPDX-License-Identifier: MIT
// HostGroup, among threads that play processes, with a context each: reductions have the bits of
// the tree of ranks, tensors of several chunks arrive, and calls that cannot end are errors.
#include <dlprim/host_group.hpp>

#include "collective/hosts/host_rooms.hpp"
#include "net/support.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Reduction = HostGroup::Reduction;
using Seconds = std::chrono::duration<double>;

/// Runs `work(group)` by a thread for each rank; what each has thrown.
std::vector<std::string> among(int size, const std::function<void(HostGroup&)>& work) {
    std::barrier meet(size);
    std::vector<std::string> texts(static_cast<std::size_t>(size)), thrown(texts);
    const auto exchange = [&](std::size_t rank, const std::string& own) {
        texts[rank] = own;
        meet.arrive_and_wait();
        std::vector<std::string> all = texts;
        meet.arrive_and_wait();
        return all;
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] {
            const auto index = static_cast<std::size_t>(rank);
            HostGroup group(rank, size,
                            [&](const std::string& own) { return exchange(index, own); });
            try {
                work(group);
            } catch (const std::exception& error) {
                thrown[index] = error.what();
            }
            if (thrown[index].empty())
                meet.arrive_and_wait();  // none leaves before the others
            else
                meet.arrive_and_drop();
        });
    for (std::thread& thread : threads) thread.join();
    return thrown;
}

/// The threads of a test must not use Catch2's checks.
void ensure(bool good, const std::string& what) {
    if (!good) throw Error(ErrorKind::device, what);
}

void check_all_well(const std::vector<std::string>& thrown) {
    for (const std::string& error : thrown) CHECK_THAT(error, Catch::Matchers::Equals(""));
}

std::vector<float> values_of(int rank, std::size_t count) {
    return random_floats(count, static_cast<unsigned>(rank) + 7, -100, 100);
}

/// Ranks added as a tree: (0 + 1) + (2 + 3).
std::vector<float> tree(std::vector<std::vector<float>> ranks) {
    for (std::size_t step = 1; step < ranks.size(); step *= 2)
        for (std::size_t i = 0; i + step < ranks.size(); i += 2 * step)
            for (std::size_t k = 0; k < ranks[i].size(); ++k) ranks[i][k] += ranks[i + step][k];
    return ranks.front();
}

Tensor whole_numbers(const Context& context, int rank, DType dtype) {
    std::vector<float> numbers;
    numbers.reserve(1000);
    for (int k = 0; k < 1000; ++k) numbers.push_back(static_cast<float>((k * 7 + rank * 31) % 11));
    return Tensor(context, Shape{1000}, numbers, dtype);
}

constexpr auto floats_in_chunk = static_cast<std::size_t>(HostRooms::chunk_bytes / 4);

}  // namespace

TEST_CASE("ranks of a host are added as a tree", "[host_group]") {
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        for (const int size : {2, 3, 4})
            for (const std::size_t count :
                 {std::size_t{1}, std::size_t{1000}, 2 * floats_in_chunk + 77}) {
                if (count > 1000 && size > 3) continue;  // which takes long
                std::vector<std::vector<float>> ranks;
                ranks.reserve(static_cast<std::size_t>(size));
                for (int rank = 0; rank < size; ++rank) ranks.push_back(values_of(rank, count));
                const std::vector<float> sum = tree(ranks);
                check_all_well(among(size, [&](HostGroup& group) {
                    const Context context(id);
                    ensure(group.is_shared(), "is not shared: " + group.reason());
                    const Shape shape{static_cast<std::int64_t>(count)};
                    for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
                        const Tensor x(context, shape, values_of(group.rank(), count));
                        group.all_reduce(x, reduction, {.ready = Event(context)});
                        const std::vector<float> found = x.to_floats();
                        const auto parts = static_cast<float>(size);
                        for (std::size_t k = 0; k < count; ++k)
                            ensure(reduction == Reduction::sum
                                       ? found[k] == sum[k]
                                       : std::abs(found[k] - sum[k] / parts) <=
                                             1e-6F * std::abs(sum[k]),
                                   "element " + std::to_string(k) + " is wrong");
                    }
                }));
            }
    }
}

TEST_CASE("reductions of all types", "[host_group]") {
    using Pair = std::pair<Reduction, float (*)(float, float)>;
    const std::vector<Pair> all{
        {Reduction::sum, [](float a, float b) { return a + b; }},
        {Reduction::product, [](float a, float b) { return a * b; }},
        {Reduction::min, [](float a, float b) { return std::min(a, b); }},
        {Reduction::max, [](float a, float b) { return std::max(a, b); }},
        {Reduction::bit_and, [](float a, float b) { return float(int(a) & int(b)); }},
        {Reduction::bit_or, [](float a, float b) { return float(int(a) | int(b)); }},
        {Reduction::bit_xor, [](float a, float b) { return float(int(a) ^ int(b)); }}};
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        check_all_well(among(2, [&](HostGroup& group) {
            const Context context(id);
            for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,
                                      DType::u8, DType::i16, DType::i32, DType::i64})
                for (const auto& [reduction, expected] : all) {
                    if (!HostGroup::can_reduce(reduction, dtype, context)) continue;
                    const Tensor x = whole_numbers(context, group.rank(), dtype);
                    const std::vector<float> a = whole_numbers(context, 0, dtype).to_floats(),
                                             b = whole_numbers(context, 1, dtype).to_floats();
                    group.all_reduce(x, reduction, {.ready = Event(context)});
                    const std::vector<float> found = x.to_floats();
                    for (std::size_t k = 0; k < found.size(); ++k)
                        ensure(found[k] == expected(a[k], b[k]),
                               std::string(name_of(dtype)) + " is reduced to another value");
                }
        }));
        CHECK_FALSE(HostGroup::can_reduce(Reduction::mean, DType::i32, device));
        CHECK_FALSE(HostGroup::can_reduce(Reduction::bit_or, DType::f32, device));
        CHECK_FALSE(HostGroup::can_reduce(Reduction::sum, DType::boolean, device));
    }
}

TEST_CASE("tensors are given to all ranks", "[host_group]") {
    constexpr int size = 3;
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        for (const std::size_t count : {std::size_t{0}, std::size_t{5}, floats_in_chunk + 100})
            check_all_well(among(size, [&](HostGroup& group) {
                const Context context(id);
                const Shape shape{static_cast<std::int64_t>(count)};
                const Tensor own(context, shape, values_of(group.rank(), count));
                Tensor copy(context, shape);
                own.copy_to(copy);
                group.broadcast(copy, 1, {.ready = Event(context)});
                ensure(copy.to_floats() == values_of(1, count), "broadcast gave other values");
                std::vector<Tensor> all;
                all.reserve(static_cast<std::size_t>(size));
                for (int rank = 0; rank < size; ++rank) all.emplace_back(context, shape);
                group.all_gather(own, all, {.ready = Event(context)});
                for (int rank = 0; rank < size; ++rank)
                    ensure(
                        all[static_cast<std::size_t>(rank)].to_floats() == values_of(rank, count),
                        "all_gather gave other values");
                const auto notes =
                    group.exchange_notes("rank " + std::to_string(group.rank()), Seconds(20));
                ensure(notes == std::vector<std::string>{"rank 0", "rank 1", "rank 2"}, "NOTES");
            }));
    }
}

TEST_CASE("what packed weights are made of may come from another rank", "[host_group]") {
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        check_all_well(among(2, [&](HostGroup& group) {
            const Context context(id);
            const Shape shape{32, 16, 3, 3};
            const auto count = static_cast<std::size_t>(shape.numel());
            const Tensor x(context, Shape{1, 16, 8, 8}, random_floats(1024, 1));
            const Tensor weight(context, shape, values_of(group.rank(), count));
            const auto convolved = [&](const Tensor& by) {
                return ops::conv2d(x, by, {.pad = 1}).to_floats();
            };
            convolved(weight);
            convolved(weight);
            group.broadcast(weight, 0, {.ready = Event(context)});
            ensure(convolved(weight) == convolved(Tensor(context, shape, values_of(0, count))),
                   "an old weight is used");
        }));
    }
}

TEST_CASE("calls that do not fit are errors, and the group goes on", "[host_group]") {
    const auto thrown = among(2, [](HostGroup& group) {
        const Context context("cpu");
        const Tensor x(context, Shape{4 + group.rank()}, DType::f32), y(context, Shape{4});
        const std::string text = message_of([&] { group.all_reduce(x, Reduction::sum, {}); });
        group.broadcast(y, 0, {});
        throw std::runtime_error(text);
    });
    for (const std::string& error : thrown) {
        CHECK_THAT(error,
                   ContainsSubstring("rank 0 makes all_reduce (sum) of 4 elements of float"));
        CHECK_THAT(error,
                   ContainsSubstring("rank 1 makes all_reduce (sum) of 5 elements of float"));
    }
    check_error(ErrorKind::unsupported, {"share no memory"},
                [] { HostGroup().broadcast(Tensor(Context("cpu"), Shape{1}), 0, {}); });
    check_error(invalid, {"rank 2 is not one of 2"}, [] { HostGroup(2, 2, {}); });
}

TEST_CASE("who leaves, fails or does not come ends the waits for it", "[host_group]") {
    auto thrown = among(2, [](HostGroup& group) {
        if (group.rank() == 0) group.exchange_notes("here", Seconds(0.1));
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 did not come within 0.1 seconds"));
    thrown = among(2, [](HostGroup& group) {
        if (group.rank() == 1) return group.leave();
        group.exchange_notes("here", Seconds(20));
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 has left the group"));
    thrown = among(3, [](HostGroup& group) {
        if (group.rank() == 1) group.exchange_notes("here", Seconds(0.2));  // rank 2 never comes
        if (group.rank() == 0) group.exchange_notes("here", Seconds(20));
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 has failed: rank 2 did not come"));
    thrown = among(2, [](HostGroup& group) {
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            group.leave();
        });
        try {
            if (group.rank() == 0) group.exchange_notes("here", Seconds(20));
        } catch (...) {
            other.join();
            throw;
        }
        other.join();
    });
    CHECK_THAT(thrown[0], ContainsSubstring("left"));
}

TEST_CASE("processes that share no memory say why", "[host_group]") {
    ::setenv("DLPRIM_SHARED", "0", 1);
    const auto thrown = among(2, [](HostGroup& group) {
        ensure(!group.is_shared(), "IS SHARED");
        throw std::runtime_error(group.reason());
    });
    ::unsetenv("DLPRIM_SHARED");
    for (const std::string& error : thrown) CHECK(error == "DLPRIM_SHARED is 0");
}
