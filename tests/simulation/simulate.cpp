// SPDX-License-Identifier: MIT
// A training step on a described cluster, simulated by SimGrid: built with smpicxx, run by smpirun,
// which benchmarks/simulate.py does. Rank 0 prints a line of JSON.
//
//   device      forward | backward: ... part 0 is ready ... part 1 ... |        | update
//   exchange                        | part 0        | part 1 | ...      |
//
// A rank is the thread that moves sums (collective/devices/mover.hpp). The device beside it needs
// no thread of its own, since what it does until the update does not depend on others: when parts
// are ready is known before.
#include "collective/processes/transport.hpp"
#include "simulation/exchange.hpp"

#include <mpi.h>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace {

using namespace dlprim::simulation;
using dlprim::ShardRange;
using dlprim::ShardTree;
namespace s4u = simgrid::s4u;

std::int64_t elements_of(const Cluster& cluster, std::size_t part) {
    const double bytes = cluster.what().parts[part].bytes / cluster.what().fold;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / sizeof(float)));
}

/// What a shard adds to an element: a number in [-1, 1) that depends on all three.
float gradient(int shard, std::size_t part, std::int64_t element) {
    std::uint64_t x = static_cast<std::uint64_t>(element) * 0x9e3779b97f4a7c15 +
                      static_cast<std::uint64_t>(shard) * 0xc2b2ae3d27d4eb4f + part;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
    x ^= x >> 32;
    return static_cast<float>(static_cast<std::uint32_t>(x)) * 0x1p-31F - 1;
}

/// The sums that wait when the shards of a range were added, of `count` elements from one on.
std::vector<Sum> sums_of(const ShardRange& shards, int all, std::size_t part, std::int64_t first,
                         std::int64_t count) {
    ShardTree tree(all);
    std::vector<Sum> sums;
    for (int shard = shards.first; shard < shards.end(); ++shard) {
        Sum next{{shard, 1}, {}};
        for (std::int64_t e = first; e < first + count; ++e)
            next.values.push_back(gradient(shard, part, e));
        sums.push_back(std::move(next));
        for (std::size_t joined = tree.take({shard, 1}); joined > 0; --joined) {
            const Sum right = std::move(sums.back());
            sums.pop_back();
            for (std::size_t e = 0; e < right.values.size(); ++e)
                sums.back().values[e] += right.values[e];
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].shards = tree.pending()[i];
    return sums;
}

/// What ranks leave for the first one, which reports.
struct Outcome {
    std::vector<double> ends;            ///< of the steps, by rank
    std::vector<std::uint64_t> digests;  ///< of all means, by rank
    std::uint64_t wrong = 0;             ///< means that are not the tree's
};

class Step {
  public:
    Step(Cluster& cluster, int rank, Outcome& outcome)
        : cluster_(cluster),
          what_(cluster.what()),
          rank_(rank),
          outcome_(outcome),
          exchange_(cluster, rank) {}

    void run() {
        // Ranks leave a barrier one after the other, and begin the step at once.
        constexpr double long_after = 100;
        if (meet_all() > long_after) throw std::runtime_error("ranks took long to meet");
        s4u::this_actor::sleep_until(long_after);
        begin_ = s4u::Engine::get_clock();
        const double own = seconds_of_memory(own_bytes());
        const int each = what_.shards / what_.devices;
        const double computed = begin_ + each * (what_.forward + what_.backward + own);
        backward_ = computed - what_.backward - own;
        if (what_.devices > 1) exchange();
        const double now = s4u::Engine::get_clock();
        waited_ = std::max(0.0, now - computed);
        if (now < computed) s4u::this_actor::sleep_until(computed);
        s4u::this_actor::sleep_for(what_.update);
        outcome_.ends[static_cast<std::size_t>(rank_)] = s4u::Engine::get_clock() - begin_;
        outcome_.digests[static_cast<std::size_t>(rank_)] = digest_;
        (void)meet_all();
    }

    void report() const {
        const double step = *std::max_element(outcome_.ends.begin(), outcome_.ends.end());
        bool same = true;
        for (const std::uint64_t digest : outcome_.digests) same = same && digest == digest_;
        std::printf(
            "{\"devices\": %d, \"step_ms\": %.6f, \"exchange_ms\": %.6f, \"wait_ms\": %.6f, ",
            what_.devices, step * 1e3, exchanged_ * 1e3, waited_ * 1e3);
        std::printf("\"sums_are_right\": %s, \"ranks_agree\": %s, \"digest\": \"%016llx\", ",
                    outcome_.wrong == 0 ? "true" : "false", same ? "true" : "false",
                    static_cast<unsigned long long>(digest_));
        std::printf("\"seconds\": {");
        const char* comma = "";
        for (const auto& [name, seconds] : exchange_.seconds()) {
            std::printf("%s\"%s\": %.9f", comma, name.c_str(), seconds);
            comma = ", ";
        }
        std::printf("}, \"stages\": [");
        comma = "";
        for (std::size_t i = 0; i < cluster_.stages().size(); ++i) {
            const Traffic& traffic = cluster_.traffic()[i];
            std::printf(
                "%s{\"name\": \"%s\", \"members\": %d, \"messages\": %llu, \"bytes\": %llu}", comma,
                cluster_.stages()[i].name.c_str(), cluster_.stages()[i].count,
                static_cast<unsigned long long>(traffic.messages),
                static_cast<unsigned long long>(traffic.bytes));
            comma = ", ";
        }
        std::printf("]}\n");
    }

  private:
    double own_bytes() const {
        double bytes = 0;
        for (const Part& part : what_.parts) bytes += part.bytes;
        return bytes;
    }
    /// A device copies its gradients for the exchange, or adds them to its own sums.
    double seconds_of_memory(double bytes) const {
        return what_.memory > 0 && what_.shards > 1 ? 3 * bytes / what_.memory : 0;
    }
    double ready(std::size_t part) const {
        double bytes = 0;
        for (std::size_t i = 0; i <= part; ++i) bytes += what_.parts[i].bytes;
        return backward_ + what_.parts[part].ready + seconds_of_memory(bytes);
    }

    void exchange() {
        for (std::size_t part = 0; part < what_.parts.size();) {
            if (s4u::Engine::get_clock() < ready(part)) s4u::this_actor::sleep_until(ready(part));
            exchange_.wake();
            std::size_t end = part + 1;
            if (exchange_.reaches_peers() && part > 0) {
                while (end < what_.parts.size() && ready(end) <= s4u::Engine::get_clock()) ++end;
                end = exchange_.agree(end);
            }
            const double begin = s4u::Engine::get_clock();
            add_up(part, end);
            exchanged_ += s4u::Engine::get_clock() - begin;
            part = end;
        }
        exchange_.wake();  // the thread that moves sums, that all means are there
        exchange_.wake();  // the device, that the update may begin
    }

    /// Neighbouring parts as one.
    void add_up(std::size_t part, std::size_t end) {
        const ShardRange own = cluster_.shards_of(rank_);
        std::vector<Sum> sums = sums_of(own, what_.shards, part, 0, elements_of(cluster_, part));
        for (std::size_t next = part + 1; next < end; ++next) {
            const std::vector<Sum> more =
                sums_of(own, what_.shards, next, 0, elements_of(cluster_, next));
            for (std::size_t i = 0; i < sums.size(); ++i)
                sums[i].values.insert(sums[i].values.end(), more[i].values.begin(),
                                      more[i].values.end());
        }
        const auto elements = static_cast<std::int64_t>(sums[0].values.size());
        exchange_.add_up(elements, std::move(sums));
        const std::vector<float>& mean = cluster_.place(rank_).mean;
        std::int64_t begin = 0;
        for (std::size_t next = part; next < end; ++next) {
            const std::int64_t size = elements_of(cluster_, next);
            digest_ = dlprim::digest_of(mean.data() + begin,
                                        static_cast<std::uint64_t>(size) * sizeof(float), digest_);
            if (rank_ == 0) compare(next, mean, begin);
            begin += size;
        }
    }

    /// With what one device adds that has all shards: some elements all over the part.
    void compare(std::size_t part, const std::vector<float>& mean, std::int64_t begin) const {
        const std::int64_t elements = elements_of(cluster_, part);
        const std::int64_t most = std::max(1, (1 << 16) / what_.shards);
        for (std::int64_t i = 0; i < std::min(elements, most); ++i) {
            const std::int64_t e = elements <= most ? i : i * (elements - 1) / (most - 1);
            const float want = sums_of({0, what_.shards}, what_.shards, part, e, 1)[0].values[0] *
                               (1.0F / static_cast<float>(what_.shards));
            outcome_.wrong += mean[static_cast<std::size_t>(begin + e)] != want ? 1 : 0;
        }
    }

    Cluster& cluster_;
    const Description& what_;
    const int rank_;
    Outcome& outcome_;
    SimulatedExchange exchange_;
    double begin_ = 0, backward_ = 0, exchanged_ = 0, waited_ = 0;
    std::uint64_t digest_ = 0;
};

}  // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        // Ranks are one process: the first that comes makes what all share.
        static Cluster cluster(read_description());
        static Outcome outcome{
            std::vector<double>(static_cast<std::size_t>(cluster.what().devices)),
            std::vector<std::uint64_t>(static_cast<std::size_t>(cluster.what().devices)), 0};
        Step step(cluster, rank, outcome);
        step.run();
        if (rank == 0) step.report();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "simulate: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
