// SPDX-License-Identifier: MIT
// What processes of a run know of each other, in threads of this one: the first failure is known to
// all, and variables say which process this is.
#include "collective/processes/process_group.hpp"
#include "collective/processes/socket.hpp"
#include "net/support.hpp"

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

using namespace dlprim;
using namespace dlprim::testing;

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
    CHECK(called == 3);
}

TEST_CASE("who waits for a failure hears of it after the handler has returned", "[processes]") {
    auto all = watches(2);
    std::promise<void> begun, may_return;
    std::atomic<bool> returned{false};
    all[0]->on_failure([&](const Failure&) {
        begun.set_value();
        may_return.get_future().wait();
        returned = true;
    });
    std::future<bool> waiting = std::async(std::launch::async, [&] {
        return all[0]->wait_for_failure(std::chrono::seconds(60)) && returned;
    });
    all[1]->report(75, "the disk is full", true);
    begun.get_future().wait();
    // The failure is known already, but is not returned to who waits for it.
    CHECK(all[0]->failure());
    CHECK(waiting.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    may_return.set_value();
    CHECK(waiting.get());
}

TEST_CASE("who fails while others come together gives them its exit code", "[processes]") {
    for (const auto& [code, kind] : {std::pair(1, invalid), std::pair(75, ErrorKind::device)}) {
        const auto first = Watch::listen(watch_options(0, 3), 0, true);
        const auto second = Watch::connect(watch_options(1, 3), {"127.0.0.1"}, first->port());
        second->report(code, "there is no file", true);
        check_error(kind, {"rank 1", "there is no file"}, [&] { first->wait_for_all(); });
    }
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

TEST_CASE("processes that do not fit together end at once", "[processes]") {
    const auto first = Watch::listen(watch_options(0, 3), 0, true);
    const auto second = Watch::connect(watch_options(1, 3), {"127.0.0.1"}, first->port());
    const bool twice = GENERATE(true, false);
    const auto other = Watch::connect(twice ? watch_options(1, 3) : watch_options(2, 4),
                                      {"127.0.0.1"}, first->port());
    const std::vector<std::string> words =
        twice ? std::vector<std::string>{"rank 1", "so has rank 1", "a rank of its own"}
              : std::vector<std::string>{"rank 2", "one of 4", "rank 0", "one of 3"};
    for (const auto* watch : {&first, &second, &other})
        check_error(ErrorKind::invalid_argument, words, [&] { (*watch)->wait_for_all(); });
}

TEST_CASE("strangers are not let in", "[processes]") {
    const auto first = Watch::listen(watch_options(0, 2), 0, true);
    auto options = watch_options(1, 2);
    options.token = "another word";
    options.start = std::chrono::seconds(1);
    const auto stranger = Watch::connect(options, {"127.0.0.1"}, first->port());
    check_error(ErrorKind::device, {"rank 0 ended without a word"},
                [&] { stranger->wait_for_all(); });
    const auto second = Watch::connect(watch_options(1, 2), {"127.0.0.1"}, first->port());
    CHECK(second->wait_for_all() == first->wait_for_all());
}

TEST_CASE("who sends without end does not keep the thread that listens", "[processes]") {
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    Connection sender{Socket(ends[0])}, receiver{Socket(ends[1])};
    const Frame frame{1, std::string(1000, 'x')};
    for (int i = 0; i < 150; ++i) sender.send(frame);
    REQUIRE(sender.flush());
    REQUIRE(!sender.wants_to_send());
    std::vector<Frame> frames;
    CHECK(receiver.receive(frames));
    CHECK(frames.size() < 70);  // 64 KiB, and more of them in the next calls
    while (frames.size() < 150) REQUIRE(receiver.receive(frames));
    for (const Frame& each : frames) CHECK((each.kind == 1 && each.data == frame.data));
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
    Variables file = torch;
    file["DLPRIM_TRANSPORT"] = "/somewhere/dlprim_other.so";
    found = place(file);
    REQUIRE(found);
    CHECK((found->transport == file["DLPRIM_TRANSPORT"] && found->port == 29500));
    found = place({{"OMPI_COMM_WORLD_RANK", "0"},
                   {"OMPI_COMM_WORLD_SIZE", "2"},
                   {"DLPRIM_TRANSPORT", "/somewhere/dlprim_other.so"}});
    REQUIRE(found);
    CHECK((found->address.empty() && found->port == 0));
    Variables bad = torch;
    bad["MASTER_PORT"] = "70000";
    check_error(invalid, {"MASTER_PORT"}, [&] { place(bad); });
}
