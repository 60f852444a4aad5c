// SPDX-License-Identifier: MIT
// What processes of a run exchange data and know of each other by, in threads of this one: a
// transport that changes what it carries is found out, calls that do not match are errors, and the
// first failure is known to all.
#include "collective/process_group.hpp"
#include "net/support.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Processes that are threads. Every message is a queue's entry; the one of number `bad` is
/// changed.
struct Wire {
    enum class Fault { none, corrupt, shorten, reorder, repeat };
    std::size_t size;
    Fault fault = Fault::none;
    int bad = -1;
    std::mutex mutex;
    std::condition_variable changed;
    bool cancelled = false;
    std::vector<std::deque<std::vector<std::byte>>> queues =
        std::vector<std::deque<std::vector<std::byte>>>(size * size);
    std::vector<std::byte> before;
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
            if (wire.before.size() == message.size()) message = wire.before;
            break;
    }
}

int alltoall(void* self, const dlprim_pieces* to, const dlprim_pieces* from, double seconds,
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
            wire.before = whole;
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

int allgather(void* self, const void* own, std::uint64_t bytes, void* all, double seconds,
              dlprim_message message) {
    const End end = *static_cast<End*>(self);
    std::vector<dlprim_piece> pieces(end.wire->size);
    std::vector<dlprim_pieces> to(pieces.size()), from(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        pieces[i] = {static_cast<std::byte*>(all) + i * bytes, bytes};
        from[i] = {&pieces[i], i == end.rank ? 0u : 1u};
    }
    std::memcpy(pieces[end.rank].data, own, bytes);
    for (std::size_t i = 0; i < pieces.size(); ++i)
        to[i] = {&pieces[end.rank], i == end.rank ? 0u : 1u};
    return alltoall(self, to.data(), from.data(), seconds, message);
}

int broadcast(void* self, int root, void* data, std::uint64_t bytes, double seconds,
              dlprim_message message) {
    const End end = *static_cast<End*>(self);
    const dlprim_piece piece{data, bytes};
    std::vector<dlprim_pieces> to(end.wire->size), from(end.wire->size);
    const auto first = static_cast<std::size_t>(root);
    for (std::size_t i = 0; end.rank == first && i < to.size(); ++i)
        if (i != first) to[i] = {&piece, 1};
    if (end.rank != first) from[first] = {&piece, 1};
    return alltoall(self, to.data(), from.data(), seconds, message);
}

void cancel(void* self) {
    Wire& wire = *static_cast<End*>(self)->wire;
    const std::lock_guard lock(wire.mutex);
    wire.cancelled = true;
    wire.changed.notify_all();
}

const dlprim_transport plugin{DLPRIM_TRANSPORT_ABI,
                              "a wire",
                              nullptr,
                              alltoall,
                              alltoall,
                              allgather,
                              broadcast,
                              nullptr,
                              cancel,
                              [](void*, int) {},
                              nullptr};

/// Runs `work(transport, rank)` by a thread for each rank; what each has thrown.
template <typename Work>
std::vector<std::string> among(Wire& wire, const Work& work) {
    std::vector<std::string> names, thrown(wire.size);
    for (std::size_t i = 0; i < wire.size; ++i) names.push_back("process " + std::to_string(i));
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < wire.size; ++rank)
        threads.emplace_back([&, rank] {
            End end{&wire, rank};
            Transport transport(plugin, &end, static_cast<int>(rank), names);
            try {
                work(transport, rank);
            } catch (const Error& error) {
                thrown[rank] = error.what();
            }
        });
    for (std::thread& thread : threads) thread.join();
    return thrown;
}

constexpr Transport::Deadline soon{20};

/// Two rounds of an exchange of numbers in two pieces; checks what arrives.
void exchange(Transport& transport, std::size_t rank, std::size_t size) {
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
        transport.alltoall(to, from, "numbers", soon);
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
             among(wire, [&](Transport&t, std::size_t rank) { exchange(t, rank, size); }))
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
                    exchange(t, rank, 2);
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
        t.alltoall(to, from, "sums", soon);
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

namespace {

Watch::Options watch_options(int rank, int size) {
    Watch::Options options;
    options.rank = rank;
    options.size = size;
    options.name = "process " + std::to_string(rank);
    options.token = "word";
    options.start = std::chrono::seconds(20);
    return options;
}

/// A first watch and the others.
std::vector<std::unique_ptr<Watch>> watches(int size) {
    std::vector<std::unique_ptr<Watch>> all;
    all.push_back(Watch::listen(watch_options(0, size), 0, true));
    for (int rank = 1; rank < size; ++rank)
        all.push_back(Watch::connect(watch_options(rank, size), {"127.0.0.1"}, all[0]->port()));
    for (const auto& watch : all) CHECK(watch->wait_for_all() == all[0]->wait_for_all());
    return all;
}

}  // namespace

TEST_CASE("all hear of the first failure", "[processes]") {
    const int failing = GENERATE(0, 1, 2);
    auto all = watches(3);
    std::atomic<int> called{0};
    for (const auto& watch : all) watch->on_failure([&](const Failure&) { ++called; });
    all[0]->set("key", "value 1");
    CHECK(all[2]->get("key") == "value 1");
    const auto bad = static_cast<std::size_t>(failing);
    all[(bad + 1) % 3]->set_step(4);
    all[bad]->set_step(5);
    std::thread rumour([&] { all[(bad + 1) % 3]->report(75, "lost somebody", false); });
    all[bad]->report(75, "the disk is full", true);
    rumour.join();
    for (const auto& watch : all) {
        const auto failure = watch->wait_for_failure(std::chrono::seconds(10));
        REQUIRE(failure);
        CHECK(failure->rank == failing);
        CHECK(failure->step == 5);
        CHECK_THAT(failure->text, ContainsSubstring("(process " + std::to_string(failing) +
                                                    ") failed in step 5: the disk is full"));
    }
    while (called < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_CASE("a process that ends without a word is noticed at once", "[processes]") {
    const std::size_t failing = GENERATE(0, 1, 2);
    auto all = watches(3);
    all[failing].reset();
    for (const auto& watch : all) {
        if (!watch) continue;
        const auto failure = watch->wait_for_failure(std::chrono::seconds(10));
        REQUIRE(failure);
        CHECK(failure->rank == static_cast<int>(failing));
        CHECK_THAT(failure->text, ContainsSubstring("ended without a word"));
        CHECK(failure->code == 75);
    }
}

TEST_CASE("processes that leave are not missed", "[processes]") {
    auto all = watches(3);
    for (const auto& watch : all) watch->leave();
    all[2].reset();
    all[0].reset();
    CHECK(!all[1]->wait_for_failure(std::chrono::milliseconds(500)));
}

TEST_CASE("the first process says who is missing, whoever began to wait before it", "[processes]") {
    auto first_options = watch_options(0, 3), last_options = watch_options(2, 3);
    first_options.start = last_options.start = std::chrono::seconds(1);
    const auto first = Watch::listen(first_options, 0, true);
    const auto last = Watch::connect(last_options, {"127.0.0.1"}, first->port());
    std::string said;
    std::thread begins_later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        try {
            first->wait_for_all();
        } catch (const Error& error) {
            said = error.what();
        }
    });
    CHECK_THROWS_WITH(last->wait_for_all(), ContainsSubstring("rank 1 of 3 has not come"));
    begins_later.join();
    CHECK_THAT(said, ContainsSubstring("rank 1 of 3 has not come"));
}

TEST_CASE("strangers are not let in", "[processes]") {
    const auto first = Watch::listen(watch_options(0, 2), 0, true);
    auto options = watch_options(1, 2);
    options.token = "another word";
    options.start = std::chrono::seconds(1);
    const auto stranger = Watch::connect(options, {"127.0.0.1"}, first->port());
    check_error(ErrorKind::io, {"rank 0 ended without a word"}, [&] { stranger->wait_for_all(); });
    const auto second = Watch::connect(watch_options(1, 2), {"127.0.0.1"}, first->port());
    CHECK(second->wait_for_all() == first->wait_for_all());
}

TEST_CASE("variables of mpirun, srun and torchrun say which process this is", "[processes]") {
    using Variables = std::map<std::string, std::string>;
    const auto place = [](const Variables& variables) {
        for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
        struct Unset {
            const Variables& variables;
            ~Unset() {
                for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
            }
        } unset{variables};
        return place_from_environment();
    };
    CHECK(!place({}));
    CHECK(!place({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
    CHECK(!place({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}));  // a shell in an allocation
    auto found = place({{"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    REQUIRE(found);
    CHECK(found->transport == "openmpi");
    CHECK(
        (found->rank == 3 && found->size == 4 && found->local_rank == 1 && found->local_size == 2));
    found = place(
        {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
    REQUIRE(found);
    CHECK(found->transport == "mpich");
    CHECK(
        (found->rank == 1 && found->size == 2 && found->local_rank == 0 && found->local_size == 1));
    const Variables slurm{{"SLURM_NTASKS", "4"},
                          {"SLURM_PROCID", "2"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
    Variables pmix = slurm;
    pmix["PMIX_RANK"] = "2";
    found = place(pmix);
    REQUIRE(found);
    CHECK(found->transport == "openmpi");
    CHECK(
        (found->rank == 2 && found->size == 4 && found->local_rank == 0 && found->local_size == 2));
    check_error(invalid, {"MASTER_ADDR is not set"}, [&] { place(slurm); });
    const Variables torch{{"RANK", "1"},
                          {"WORLD_SIZE", "2"},
                          {"LOCAL_RANK", "0"},
                          {"LOCAL_WORLD_SIZE", "1"},
                          {"MASTER_ADDR", "host"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"TORCHELASTIC_RUN_ID", "x"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"}};
    found = place(torch);
    REQUIRE(found);
    CHECK(found->transport == "gloo");
    CHECK((found->address == "host" && found->port == 29500 && found->has_agent));
    CHECK(found->attempt == "x/2");
    Variables bad = torch;
    bad["MASTER_PORT"] = "70000";
    check_error(invalid, {"MASTER_PORT"}, [&] { place(bad); });
}
