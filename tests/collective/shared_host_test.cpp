// SPDX-License-Identifier: MIT
// SharedHost, among threads that play processes: they find each other's memory, wait for each other
// there, and end with an error where they do not come for the same, come late, or one was lost.
#include "collective/hosts/shared_host.hpp"

#include "base/text.hpp"
#include "net/support.hpp"
#include "support/threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Texts of all threads for all.
class Gathering {
  public:
    explicit Gathering(std::size_t size) : size_(size) {}
    std::vector<std::string> gather(std::size_t rank, const std::string& own) {
        std::unique_lock lock(mutex_);
        texts_.resize(size_);
        texts_[rank] = own;
        const std::size_t round = round_;
        if (++here_ == size_) {
            here_ = 0;
            ++round_;
            done_ = texts_;
            changed_.notify_all();
        }
        changed_.wait(lock, [&] { return round_ != round; });
        return done_;
    }

  private:
    const std::size_t size_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> texts_, done_;
    std::size_t here_ = 0, round_ = 0;
};

/// Runs `work(host, rank)` by a thread for each rank; what each has thrown. The ranks run on hosts
/// of their own if their number is in `apart`.
template <typename Work>
std::vector<std::string> among(std::size_t size, const Work& work,
                               const std::vector<std::size_t>& apart = {},
                               const std::function<void(std::vector<std::string>&)>& change = {}) {
    Gathering gathering(size);
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < size; ++i) names.push_back("process " + std::to_string(i));
    return thrown_in_threads(size, [&](std::size_t rank) {
        SharedHost host(
            rank, names,
            [&](const std::string& own, const std::string& what) {
                const bool away = std::find(apart.begin(), apart.end(), rank) != apart.end();
                const bool places = what == "where they run";
                auto all =
                    gathering.gather(rank, places && away ? std::to_string(rank) + own : own);
                if (places && change) change(all);
                return all;
            },
            ended);
        try {
            work(host, rank);
        } catch (const Error&) {
            *ended = true;
            throw;
        }
    });
}

constexpr std::chrono::duration<double> soon{20};

}  // namespace

TEST_CASE("processes of a host share memory", "[shared_host]") {
    constexpr std::size_t size = 3;
    const auto thrown = among(size, [](SharedHost& host, std::size_t rank) {
        // The threads of a test must not use Catch2's checks.
        const auto ensure = [](bool good, const char* what) {
            if (!good) throw Error(ErrorKind::device, what);
        };
        ensure(host.is_shared() && host.reason().empty(), "is not shared");
        ensure(host.mates().size() == size, "has other mates");
        const std::uint64_t bytes[] = {10, 5000, 4096};
        std::vector<SharedMemory::Part> own;
        for (const std::uint64_t each : bytes) own.push_back(host.make(each));
        host.meet("memory", 1, soon);
        std::vector<std::vector<SharedMemory::Part>> all(size);
        for (std::size_t q = 0; q < size; ++q)
            for (std::size_t i = 0; i < 3; ++i)
                all[q].push_back(q == rank ? own[i] : host.reach(q, bytes[i]));
        for (unsigned round = 0; round < 300; ++round) {
            for (std::size_t i = 0; i < 3; ++i)
                own[i].get()[bytes[i] - 1] = static_cast<std::byte>(rank * 50 + i * 10 + round);
            host.meet("values", bytes[1], soon);
            for (std::size_t q = 0; q < size; ++q)
                for (std::size_t i = 0; i < 3; ++i)
                    ensure(all[q][i].get()[bytes[i] - 1] ==
                               static_cast<std::byte>(q * 50 + i * 10 + round),
                           "WRONG VALUE");
            host.meet("the end of a round", 0, soon);
        }
    });
    for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("processes of other hosts are not waited for", "[shared_host]") {
    const auto thrown =
        among(4,
              [](SharedHost& host, std::size_t rank) {
                  if (host.hosts() != std::vector<std::size_t>{0, 1, 0, 2} ||
                      host.shared() != std::vector<bool>{true, false, true, false} ||
                      host.mates().size() != (rank % 2 == 0 ? 2 : 1))
                      throw Error(ErrorKind::device, "OTHER HOSTS");
                  if (host.is_shared()) host.meet("something", rank % 2, soon);
              },
              {1, 3});
    for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("a host that shares no memory leaves others theirs", "[shared_host]") {
    const auto thrown = among(
        4,
        [](SharedHost& host, std::size_t rank) {
            if (host.shared() != std::vector<bool>{true, true, false, false} ||
                host.reason().find("does not reach memory of process 3") == std::string::npos)
                throw Error(ErrorKind::device, "OTHER HOSTS");
            if (rank < 2) host.meet("something", 8, soon);
        },
        {},
        [](std::vector<std::string>& places) {
            // The last two are on a host of their own, and the last one is not found there.
            for (const std::size_t i : {2, 3}) places[i] = "other" + places[i];
            std::vector<std::string> words = split(places[3], ' ');
            words[1] = "1999999999";
            places[3] = join(words, " ");
        });
    for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("barriers that do not match are errors", "[shared_host]") {
    auto thrown = among(2, [](SharedHost& host, std::size_t rank) {
        host.meet("sums", 8, soon);
        host.meet(rank == 0 ? "sums" : "means", 8, soon);
    });
    for (const std::string& error : thrown) {
        CHECK_THAT(error, ContainsSubstring("waits for sums (barrier 1 of its host, 8 bytes)"));
        CHECK_THAT(error, ContainsSubstring("waits for means"));
        CHECK_THAT(error, ContainsSubstring("do not run the same steps"));
    }
    thrown =
        among(2, [](SharedHost& host, std::size_t rank) { host.meet("sums", 8 + rank, soon); });
    for (const std::string& error : thrown) CHECK_THAT(error, ContainsSubstring("9 bytes"));
    thrown = among(2, [](SharedHost& host, std::size_t rank) {
        if (rank == 1) host.make(5000);
        host.meet("memory", 1, soon);
        if (rank == 0) host.reach(1, 9000);
    });
    CHECK_THAT(thrown[0], ContainsSubstring("shares less memory than the 9000 bytes"));
}

TEST_CASE("who does not come is named, and who was lost ends the wait", "[shared_host]") {
    auto thrown = among(2, [](SharedHost& host, std::size_t rank) {
        if (rank == 0) host.meet("the sums", 0, std::chrono::duration<double>(0.1));
    });
    CHECK_THAT(thrown[0], ContainsSubstring("process 1 did not come for the sums within 0.1"));
    thrown = among(2, [](SharedHost& host, std::size_t rank) {
        if (rank == 1) throw Error(ErrorKind::device, "lost");
        host.meet("the sums", 0, soon);
    });
    CHECK_THAT(thrown[0], ContainsSubstring("was stopped while it waited for the sums"));
}

TEST_CASE("memory that does not answer is not shared", "[shared_host]") {
    const auto reason = [](const std::function<void(std::vector<std::string>&)>& change) {
        std::vector<std::string> reasons(2);
        among(
            2,
            [&](SharedHost& host, std::size_t rank) {
                if (!host.is_shared()) reasons[rank] = host.reason();
            },
            {}, change);
        CHECK(reasons[0] == reasons[1]);
        return reasons[0];
    };
    CHECK(reason([](std::vector<std::string>&) {}).empty());
    const auto word = [](std::string& text, std::size_t index, const std::string& value) {
        std::vector<std::string> words = split(text, ' ');
        words[index] = value;
        text = join(words, " ");
    };
    CHECK_THAT(reason([&](auto& all) { word(all[1], 1, "1999999999"); }),
               ContainsSubstring("process 0 does not reach memory of process 1"));
    CHECK_THAT(reason([&](auto& all) { word(all[1], 3, "17"); }),
               ContainsSubstring("process 0 finds other memory than that of process 1"));
    ::setenv("DLPRIM_SHARED", "0", 1);
    CHECK_THAT(reason({}), ContainsSubstring("DLPRIM_SHARED is 0"));
    ::unsetenv("DLPRIM_SHARED");
}
