// SPDX-License-Identifier: MIT
// Communicator, among threads that play processes, with a context each, which share memory or have
// a transport: reductions have the bits of the tree of ranks, tensors of several chunks arrive, and
// calls that cannot end are errors.
#include <dlprim/communicator.hpp>

#include "collective/communicator/channel.hpp"
#include "net/support.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Reduction = Communicator::Reduction;
using Seconds = std::chrono::duration<double>;

/// What threads that play processes use in place of a network.
struct Network {
    explicit Network(int size)
        : meet(size),
          texts(static_cast<std::size_t>(size)),
          sent(static_cast<std::size_t>(size)),
          sizes(static_cast<std::size_t>(size)) {}

    std::vector<std::string> gather(std::size_t rank, const std::string& own) {
        texts[rank] = own;
        meet.arrive_and_wait();
        std::vector<std::string> all = texts;
        meet.arrive_and_wait();
        return all;
    }
    void exchange(std::size_t rank, const std::byte* own, const std::vector<std::uint64_t>& sends,
                  std::byte* all, const std::vector<std::uint64_t>& receives) {
        sent[rank] = own;
        sizes[rank] = sends;
        meet.arrive_and_wait();
        for (std::size_t q = 0; q < sent.size(); ++q) {
            if (sizes[q][rank] != receives[q]) std::abort();
            const auto begin = sizes[q].begin();
            const std::uint64_t before =
                std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(rank), std::uint64_t{0});
            std::copy_n(sent[q] + before, receives[q], all);
            all += receives[q];
        }
        meet.arrive_and_wait();
    }

    std::barrier<> meet;
    std::vector<std::string> texts;
    std::vector<const std::byte*> sent;
    std::vector<std::vector<std::uint64_t>> sizes;
};

/// Runs `work(group)` by a thread for each rank; what each has thrown. With `is_carried`, they have
/// a transport, which they use where DLPRIM_SHARED is 0.
std::vector<std::string> among(int size, const std::function<void(Communicator&)>& work,
                               bool is_carried = false) {
    Network network(size);
    std::vector<std::string> thrown(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] {
            const auto index = static_cast<std::size_t>(rank);
            Communicator::Transport transport;
            transport.gather = [&](const std::string& own) { return network.gather(index, own); };
            if (is_carried)
                transport.exchange = [&](const std::byte* own,
                                         const std::vector<std::uint64_t>& sends, std::byte* all,
                                         const std::vector<std::uint64_t>& receives, Seconds) {
                    network.exchange(index, own, sends, all, receives);
                };
            Communicator group(rank, size, transport);
            try {
                work(group);
            } catch (const std::exception& error) {
                thrown[index] = error.what();
            }
            if (thrown[index].empty())
                network.meet.arrive_and_wait();  // none leaves before the others
            else
                network.meet.arrive_and_drop();
        });
    for (std::thread& thread : threads) thread.join();
    return thrown;
}

/// While it lives, processes share no memory.
struct Unshared {
    Unshared() { ::setenv("DLPRIM_SHARED", "0", 1); }
    ~Unshared() { ::unsetenv("DLPRIM_SHARED"); }
};

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

constexpr auto floats_in_chunk = static_cast<std::size_t>(Channel::chunk_bytes / 4);

}  // namespace

TEST_CASE("ranks are added as a tree", "[communicator]") {
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
                check_all_well(among(size, [&](Communicator& group) {
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

TEST_CASE("reductions of all types", "[communicator]") {
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
        check_all_well(among(2, [&](Communicator& group) {
            const Context context(id);
            for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,
                                      DType::u8, DType::i16, DType::i32, DType::i64})
                for (const auto& [reduction, expected] : all) {
                    if (!Communicator::can_reduce(reduction, dtype, context)) continue;
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
        CHECK_FALSE(Communicator::can_reduce(Reduction::mean, DType::i32, device));
        CHECK_FALSE(Communicator::can_reduce(Reduction::bit_or, DType::f32, device));
        CHECK_FALSE(Communicator::can_reduce(Reduction::sum, DType::boolean, device));
    }
}

TEST_CASE("tensors are given to all ranks", "[communicator]") {
    constexpr int size = 3;
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        for (const std::size_t count : {std::size_t{0}, std::size_t{5}, floats_in_chunk + 100})
            check_all_well(among(size, [&](Communicator& group) {
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
            }));
    }
}

TEST_CASE("what packed weights are made of may come from another rank", "[communicator]") {
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        check_all_well(among(2, [&](Communicator& group) {
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

TEST_CASE("calls that do not fit are errors, and the group goes on", "[communicator]") {
    const auto thrown = among(2, [](Communicator& group) {
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
    check_error(invalid, {"rank 2 is not one of 2"}, [] { Communicator(2, 2, {}); });
}

TEST_CASE("who leaves, fails or does not come ends the waits for it", "[communicator]") {
    auto thrown = among(2, [](Communicator& group) {
        if (group.rank() == 0) group.barrier({.deadline = Seconds(0.1)});
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 did not come within 0.1 seconds"));
    thrown = among(2, [](Communicator& group) {
        if (group.rank() == 1) return group.leave();
        group.barrier({.deadline = Seconds(20)});
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 has left the group"));
    thrown = among(3, [](Communicator& group) {
        if (group.rank() == 1) group.barrier({.deadline = Seconds(0.2)});  // rank 2 never comes
        if (group.rank() == 0) group.barrier({.deadline = Seconds(20)});
    });
    CHECK_THAT(thrown[0], ContainsSubstring("rank 1 has failed: rank 2 did not come"));
    thrown = among(2, [](Communicator& group) {
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            group.leave();
        });
        try {
            if (group.rank() == 0) group.barrier({.deadline = Seconds(20)});
        } catch (...) {
            other.join();
            throw;
        }
        other.join();
    });
    CHECK_THAT(thrown[0], ContainsSubstring("left"));
}

TEST_CASE("processes that share no memory say why", "[communicator]") {
    const Unshared unshared;
    const auto thrown = among(2, [](Communicator& group) {
        ensure(!group.is_shared(), "IS SHARED");
        ensure(group.reason() == "DLPRIM_SHARED is 0", group.reason());
        group.barrier({});
    });
    for (const std::string& error : thrown)
        CHECK_THAT(error, ContainsSubstring("share no memory: DLPRIM_SHARED is 0"));
}

TEST_CASE("all calls give the same by shared memory and by a transport", "[communicator]") {
    constexpr int size = 3;
    constexpr auto ranks = static_cast<std::size_t>(size);
    ON_EVERY_DEVICE(device) {
        const std::string id = device.info().id;
        std::vector<std::vector<float>> inputs;
        for (int rank = 0; rank < size; ++rank)
            inputs.push_back(values_of(rank, floats_in_chunk + 1000));
        const std::vector<float> sum = tree(inputs);
        const auto part = [](const std::vector<float>& of, std::size_t begin, std::size_t count) {
            const auto first = of.begin() + static_cast<std::ptrdiff_t>(begin);
            return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(count));
        };
        const auto work = [&](Communicator& group) {
            const Context context(id);
            const auto self = static_cast<std::size_t>(group.rank());
            const std::vector<float>& own = inputs[self];
            const auto make = [&](const std::vector<float>& values) {
                return Tensor(context, Shape{static_cast<std::int64_t>(values.size())}, values);
            };
            const auto options = [&] { return Communicator::CallOptions{.ready = Event(context)}; };
            Tensor x = make(own);
            group.all_reduce(x, Reduction::sum, options());
            ensure(x.to_floats() == sum, "all_reduce is wrong");
            x = make(own);
            group.reduce(x, Reduction::sum, 1, options());
            ensure(x.to_floats() == (self == 1 ? sum : own), "reduce is wrong");
            const std::size_t count = own.size() / ranks;
            std::vector<Tensor> parts, all, to, from;
            for (std::size_t q = 0; q < ranks; ++q) {
                parts.push_back(make(part(own, q * count, count)));
                all.push_back(make(own));
                to.push_back(make(part(own, q, 100 * q + self)));
                from.push_back(make(part(own, 0, 100 * self + q)));
            }
            const Tensor out = make(part(own, 0, count));
            group.reduce_scatter(parts, out, Reduction::sum, options());
            ensure(out.to_floats() == part(sum, self * count, count), "reduce_scatter is wrong");
            ensure(parts[0].to_floats() == part(own, 0, count), "a part has changed");
            group.all_gather(make(own), all, options());
            for (std::size_t q = 0; q < ranks; ++q)
                ensure(all[q].to_floats() == inputs[q], "all_gather is wrong");
            x = make(own);
            group.broadcast(x, 2, options());
            ensure(x.to_floats() == inputs[2], "broadcast is wrong");
            group.all_to_all(context, to, from, options());
            for (std::size_t q = 0; q < ranks; ++q)
                ensure(from[q].to_floats() == part(inputs[q], self, 100 * self + q),
                       "all_to_all is wrong");
            // To rank 0 alone: of several chunks.
            std::vector<Tensor> one(ranks), gathered(ranks);
            one[0] = make(own);
            if (self == 0) gathered = all;
            group.all_to_all(context, one, gathered, options());
            for (std::size_t q = 0; q < ranks && self == 0; ++q)
                ensure(all[q].to_floats() == inputs[q], "a gathered tensor is wrong");
            group.barrier({});
        };
        check_all_well(among(size, work));
        const Unshared unshared;
        check_all_well(among(size, work, true));
    }
}

TEST_CASE("a rank alone makes all calls", "[communicator]") {
    const Context context("cpu");
    const std::vector<float> values{1, 2, 3};
    const Tensor x(context, Shape{3}, values), y(context, Shape{3});
    Communicator alone;
    CHECK_FALSE(alone.is_shared());
    alone.all_reduce(x, Reduction::mean, {});
    alone.broadcast(x, 0, {});
    alone.reduce_scatter({x}, y, Reduction::sum, {});
    CHECK(y.to_floats() == values);
    alone.all_to_all(context, {x}, {y}, {});
    alone.barrier({});
    CHECK(x.to_floats() == values);
}

TEST_CASE("calls by a transport that do not fit are errors", "[communicator]") {
    const Unshared unshared;
    const auto thrown = among(
        2,
        [](Communicator& group) {
            const Context context("cpu");
            const Tensor x(context, Shape{4 + group.rank()}), y(context, Shape{4});
            std::string text = message_of([&] { group.all_reduce(x, Reduction::sum, {}); });
            text += message_of([&] {
                group.all_reduce(y, group.rank() == 0 ? Reduction::sum : Reduction::max,
                                 {.name = group.rank() == 0 ? "FIRST" : "SECOND"});
            });
            text += message_of([&] {
                group.all_to_all(context, {y, y}, {y, group.rank() == 0 ? x : Tensor()}, {});
            });
            group.broadcast(y, 0, {});
            throw std::runtime_error(text);
        },
        true);
    for (const std::string& error : thrown) {
        CHECK_THAT(error,
                   ContainsSubstring("rank 1 makes all_reduce (sum) of 5 elements of float"));
        CHECK_THAT(error, ContainsSubstring("rank 0 makes FIRST, rank 1 makes SECOND"));
        CHECK_THAT(error, ContainsSubstring("rank 1 sends 16 bytes to rank 1, which expects 0"));
    }
}
