// SPDX-License-Identifier: MIT
// Transport, in threads of this process: a plugin that changes what it carries is found out, calls
// that do not match are errors, and who does not come is missed.
#include "collective/processes/transport.hpp"
#include "net/support.hpp"
#include "support/threads.hpp"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Processes that are threads. Every message is a queue's entry; the one of number `bad` is
/// changed.
struct Wire {
    enum class Fault { none, corrupt, exponent, shorten, reorder, repeat };
    std::size_t size;
    Fault fault = Fault::none;
    int bad = -1;
    std::mutex mutex;
    std::condition_variable changed;
    bool cancelled = false;
    std::vector<std::deque<std::vector<std::byte>>> queues =
        std::vector<std::deque<std::vector<std::byte>>>(size * size);
    std::map<std::size_t, std::vector<std::byte>> before;  ///< by size
    int sent = 0;
};

struct End {
    Wire* wire;
    std::size_t rank;
};

void spoil(Wire& wire, std::vector<std::byte>& message) {
    const std::size_t half = message.size() / 2;
    const std::vector<std::byte> whole = message;
    switch (wire.fault) {
        case Wire::Fault::none:
            break;
        case Wire::Fault::corrupt:
            message[half] ^= std::byte{4};
            break;
        case Wire::Fault::exponent:  // of a float
            message[half / 4 * 4 + 3] ^= std::byte{4};
            break;
        case Wire::Fault::shorten:
            std::fill(message.end() - 4, message.end(), std::byte{0});
            break;
        case Wire::Fault::reorder:
            std::copy(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(half),
                      message.begin() + static_cast<std::ptrdiff_t>(whole.size() - half));
            std::copy(whole.end() - static_cast<std::ptrdiff_t>(half), whole.end(),
                      message.begin());
            break;
        case Wire::Fault::repeat:
            if (const auto last = wire.before.find(message.size()); last != wire.before.end())
                message = last->second;
            break;
    }
}

int exchange(void* self, const dlprim_pieces* to, const dlprim_pieces* from, double seconds,
             dlprim_message) {
    const End end = *static_cast<End*>(self);
    Wire& wire = *end.wire;
    std::unique_lock lock(wire.mutex);
    for (std::size_t i = 0; i < wire.size; ++i) {
        std::vector<std::byte> message;
        for (std::size_t k = 0; k < to[i].count; ++k) {
            const auto* data = static_cast<const std::byte*>(to[i].pieces[k].data);
            message.insert(message.end(), data, data + to[i].pieces[k].bytes);
        }
        if (message.empty()) continue;
        if (end.rank == 0) {
            const std::vector<std::byte> whole = message;
            if (wire.sent++ == wire.bad) spoil(wire, message);
            wire.before[whole.size()] = whole;
        }
        wire.queues[end.rank * wire.size + i].push_back(message);
    }
    wire.changed.notify_all();
    for (std::size_t i = 0; i < wire.size; ++i) {
        if (from[i].count == 0) continue;
        auto& queue = wire.queues[i * wire.size + end.rank];
        const bool came =
            wire.changed.wait_for(lock, std::chrono::duration<double>(std::min(seconds, 1e6)),
                                  [&] { return wire.cancelled || !queue.empty(); });
        if (wire.cancelled) return DLPRIM_TRANSPORT_CANCELLED;
        if (!came) return DLPRIM_TRANSPORT_LATE;
        std::size_t at = 0;
        for (std::size_t k = 0; k < from[i].count; ++k) {
            const std::size_t bytes =
                std::min<std::size_t>(from[i].pieces[k].bytes, queue.front().size() - at);
            std::memcpy(from[i].pieces[k].data, queue.front().data() + at, bytes);
            at += bytes;
        }
        queue.pop_front();
    }
    return DLPRIM_TRANSPORT_DONE;
}

/// The last process adds up, and gives the sums to all.
int allreduce(void* self, float* values, std::uint64_t count, double seconds,
              dlprim_message message) {
    const End end = *static_cast<End*>(self);
    const std::size_t last = end.wire->size - 1;
    std::vector<std::vector<float>> theirs(last, std::vector<float>(count));
    std::vector<dlprim_piece> pieces;
    pieces.reserve(last);
    for (std::vector<float>& each : theirs) pieces.push_back({each.data(), count * sizeof(float)});
    const dlprim_piece own{values, count * sizeof(float)};
    std::vector<dlprim_pieces> to(end.wire->size), from(end.wire->size);
    if (end.rank < last) to[last] = {&own, 1};
    for (std::size_t i = 0; end.rank == last && i < last; ++i) from[i] = {&pieces[i], 1};
    const int result = exchange(self, to.data(), from.data(), seconds, message);
    if (result != DLPRIM_TRANSPORT_DONE) return result;
    for (std::size_t i = 0; end.rank == last && i < last; ++i)
        for (std::uint64_t k = 0; k < count; ++k) values[k] += theirs[i][k];
    to.assign(end.wire->size, {nullptr, 0});
    from = to;
    if (end.rank == last)
        std::fill(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(last),
                  dlprim_pieces{&own, 1});
    else
        from[last] = {&own, 1};
    return exchange(self, to.data(), from.data(), seconds, message);
}

void cancel(void* self) {
    Wire& wire = *static_cast<End*>(self)->wire;
    const std::lock_guard lock(wire.mutex);
    wire.cancelled = true;
    wire.changed.notify_all();
}

const dlprim_transport plugin{DLPRIM_TRANSPORT_ABI, "a wire",  nullptr, exchange, cancel,
                              [](void*, int) {},    allreduce, nullptr};

/// Runs `work(transport, rank)` by a thread for each rank; what each has thrown.
template <typename Work>
std::vector<std::string> among(Wire& wire, const Work& work) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < wire.size; ++i) names.push_back("process " + std::to_string(i));
    return thrown_in_threads(wire.size, [&](std::size_t rank) {
        End end{&wire, rank};
        Transport transport(plugin, &end, static_cast<int>(rank), names);
        work(transport, rank);
    });
}

constexpr Transport::Deadline soon{20};

/// Two rounds of an exchange of numbers in two pieces; checks what arrives.
void exchange_numbers(Transport& transport, std::size_t rank, std::size_t size) {
    for (unsigned round = 0; round < 3; ++round) {
        std::vector<std::vector<unsigned>> out(size), in(size);
        std::vector<Pieces> to(size), from(size);
        for (std::size_t i = 0; i < size; ++i) {
            if (i == rank) continue;
            for (unsigned k = 0; k < 100; ++k)
                out[i].push_back(round * 1000003 + static_cast<unsigned>(rank * 10007 + i * 101) +
                                 k * k);
            in[i].resize(100);
            auto* const sent = reinterpret_cast<std::byte*>(out[i].data());
            auto* const got = reinterpret_cast<std::byte*>(in[i].data());
            to[i] = {{sent, 120}, {sent + 120, 280}};
            from[i] = {{got, 120}, {got + 120, 280}};
        }
        transport.exchange(to, from, "numbers", soon);
        for (std::size_t i = 0; i < size; ++i)
            for (unsigned k = 0; i != rank && k < 100; ++k)
                if (in[i][k] !=
                    round * 1000003 + static_cast<unsigned>(i * 10007 + rank * 101) + k * k)
                    throw Error(ErrorKind::device, "WRONG NUMBERS");
    }
    unsigned value = rank == 0 ? 7 : 0;
    transport.broadcast(0, &value, sizeof(value), "a number", soon);
    std::vector<std::uint64_t> all(size);
    const std::uint64_t own = rank + value;
    transport.allgather(&own, sizeof(own), all.data(), "numbers of all", soon);
    for (std::size_t i = 0; i < size; ++i)
        if (all[i] != i + 7) throw Error(ErrorKind::device, "WRONG NUMBERS");
    transport.barrier("the end", soon);
}

}  // namespace

TEST_CASE("messages arrive", "[processes]") {
    for (const std::size_t size : {2, 3, 5}) {
        Wire wire{size};
        for (const std::string& error :
             among(wire, [&](Transport&t, std::size_t rank) { exchange_numbers(t, rank, size); }))
            CHECK(error.empty());
    }
}

TEST_CASE("some processes exchange while others do not", "[processes]") {
    Wire wire{4};
    // Of pairs that differ by a bit of the rank, as hosts at the same place of neighbouring groups.
    const auto errors = among(wire, [](Transport& t, std::size_t rank) {
        for (const std::size_t bit : {1, 2, 1}) {
            const std::size_t other = rank ^ bit;
            std::uint64_t sent = 100 * rank + bit, got = 0;
            std::vector<Pieces> to(4), from(4);
            if (rank > 0) to[other] = {{reinterpret_cast<std::byte*>(&sent), sizeof(sent)}};
            if (other > 0) from[other] = {{reinterpret_cast<std::byte*>(&got), sizeof(got)}};
            t.exchange(to, from, "numbers", soon);
            if (other > 0 && got != 100 * other + bit)
                throw Error(ErrorKind::device, "WRONG NUMBERS");
        }
        std::uint64_t own = 0;
        std::vector<Pieces> to(4), from(4);
        to[rank ^ 1] = {{reinterpret_cast<std::byte*>(&own), rank == 2 ? 4u : 8u}};
        from[rank ^ 1] = {{reinterpret_cast<std::byte*>(&own), rank == 3 ? 8u : 0u}};
        if (rank > 1) t.exchange(to, from, "more", soon);
    });
    CHECK(errors[0].empty());
    CHECK(errors[1].empty());
    CHECK_THAT(errors[2],
               ContainsSubstring("process 3 sends 8 bytes for more, and process 2 expects 0"));
    CHECK_THAT(errors[3],
               ContainsSubstring("process 2 sends 4 bytes for more, and process 3 expects 8"));
}

TEST_CASE("a transport that changes what it carries is found out", "[processes]") {
    using Fault = Wire::Fault;
    for (const Fault fault : {Fault::corrupt, Fault::shorten, Fault::reorder, Fault::repeat})
        for (int bad = 2; bad < 16; ++bad) {
            INFO("fault " << static_cast<int>(fault) << " in message " << bad);
            Wire wire{2};
            wire.fault = fault;
            wire.bad = bad;
            const auto errors = among(wire, [&](Transport& t, std::size_t rank) {
                try {
                    exchange_numbers(t, rank, 2);
                } catch (const Error&) {
                    t.cancel();
                    throw;
                }
            });
            // Some changes change nothing, as where the end of a message was zero.
            CHECK(errors[1] != "WRONG NUMBERS");
            CHECK(errors[0] != "WRONG NUMBERS");
            if (fault == Fault::corrupt && wire.sent > bad) CHECK(!errors[1].empty());
        }
}

namespace {

/// Numbers of a process, which add up to other numbers in each round.
float term(std::size_t rank, unsigned round, unsigned k) {
    return static_cast<float>((rank + 1) * (k * 2654435761u + round * 40503u) % 10007) * 1e-3f -
           5.0f;
}

/// Two rounds of sums by the transport. The largest error of a sum, where nothing was noticed.
float add_up(Transport& transport, std::size_t rank, std::size_t size) {
    float worst = 0;
    for (unsigned round = 0; round < 2; ++round) {
        std::vector<float> values(9000);
        for (unsigned k = 0; k < values.size(); ++k) values[k] = term(rank, round, k);
        transport.allreduce(values.data(), values.size(), "numbers", soon);
        for (unsigned k = 0; k < values.size(); ++k) {
            float sum = 0;
            for (std::size_t i = 0; i < size; ++i) sum += term(i, round, k);
            worst = std::max(worst, std::abs(values[k] - sum));
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("sums that a transport adds up wrong are found out", "[processes]") {
    using Fault = Wire::Fault;
    for (const Fault fault : {Fault::none, Fault::corrupt, Fault::exponent, Fault::shorten,
                              Fault::reorder, Fault::repeat})
        for (const std::size_t size : {2, 3}) {
            INFO("fault " << static_cast<int>(fault) << " among " << size);
            Wire wire{size};
            wire.fault = fault;
            // Of the second round: what the last process adds, so that all get the same.
            wire.bad = size == 2 ? 7 : 13;
            std::atomic<int> found{0}, wrong{0};
            const auto errors = among(wire, [&](Transport& t, std::size_t rank) {
                try {
                    if (add_up(t, rank, size) > 1e-5f) ++wrong;
                } catch (const Error&) {
                    ++found;
                    t.cancel();
                    throw;
                }
            });
            CHECK(wrong == 0);
            CHECK(found == (fault == Fault::none || fault == Fault::corrupt ? 0 : int(size)));
        }
}

TEST_CASE("sums of a transport may be of any size, and not be numbers", "[processes]") {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    Wire wire{2};
    const auto errors = among(wire, [&](Transport& t, std::size_t rank) {
        std::vector<float> values(20000, 1e-44f);
        for (std::size_t i = 0; i < 4000; ++i) values[i] = 2e38f;
        values[5000] = nan;
        values[13000] = rank == 0 ? inf : -inf;
        for (std::size_t i = 14000; i < 20000; ++i) values[i] = rank == 0 ? 1e10f : -1e10f;
        t.allreduce(values.data(), values.size(), "numbers", soon);
        if (values[0] != inf || !std::isnan(values[13000]) || values[19999] != 0)
            throw Error(ErrorKind::device, "WRONG NUMBERS");
    });
    for (const std::string& error : errors) CHECK(error.empty());
}

TEST_CASE("calls that do not match are errors on both sides", "[processes]") {
    Wire wire{2};
    auto errors = among(wire, [](Transport& t, std::size_t rank) {
        std::uint64_t value = 0, all[2];
        if (rank == 0)
            t.broadcast(0, &value, sizeof(value), "a value", soon);
        else
            t.allgather(&value, sizeof(value), all, "values", soon);
    });
    for (const std::string& error : errors) {
        CHECK_THAT(error, ContainsSubstring("shares a value (call 0, 8 bytes)"));
        CHECK_THAT(error, ContainsSubstring("gathers values (call 0, 8 bytes)"));
        CHECK_THAT(error, ContainsSubstring("do not run the same steps"));
    }
    Wire other{2};
    errors = among(other, [](Transport& t, std::size_t rank) {
        std::byte room[64];
        std::vector<Pieces> to(2), from(2);
        to[1 - rank] = {{room, rank == 0 ? 8u : 16u}};
        from[1 - rank] = {{room + 32, 8}};
        t.exchange(to, from, "sums", soon);
    });
    CHECK_THAT(errors[0],
               ContainsSubstring("process 1 sends 16 bytes for sums, and process 0 expects 8"));
}

TEST_CASE("a process that does not come is missed after the deadline", "[processes]") {
    Wire wire{2};
    const auto errors = among(wire, [](Transport& t, std::size_t rank) {
        if (rank == 0) t.barrier("the sums", Transport::Deadline(0.1));
    });
    CHECK_THAT(errors[0], ContainsSubstring("did not come for the sums within 0.1 seconds"));
}
