// SPDX-License-Identifier: MIT
// Team: nets and solvers of several devices, which exchange their sums in the middle of a step.
#include <dlprim/team.hpp>

#include "api/rank_shards.hpp"
#include "api/rank_threads.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "collective/exchange.hpp"
#include "collective/shard_values.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

/// How long a device may compile after the first one has done so.
constexpr std::chrono::duration<double> compiling{3600};

std::vector<std::string> names_of(const std::vector<Context>& devices) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < devices.size(); ++i)
        names.push_back(cat("rank ", i, ", device ", devices[i].info().str()));
    return names;
}

/// Devices with the same engines and compilers, whose results have the same bits.
bool are_of_a_kind(const DeviceInfo& a, const DeviceInfo& b) {
    return a.name == b.name && a.platform == b.platform && a.driver == b.driver;
}

void add_pair(const Tensor& left, const Tensor& right, const Tensor& out, double factor) {
    ops::CallOptions how;
    how.out = {out};
    if (factor == 1)
        ops::pointwise("y0 = x0 + x1", {left, right}, {}, how);
    else
        ops::pointwise("y0 = (x0 + x1) * p0", {left, right}, {factor}, how);
}

}  // namespace

class TeamImpl {
  public:
    struct Rank {
        std::optional<Net> net;
        std::optional<Solver> solver;
    };
    std::vector<Context> devices;
    std::vector<ShardRange> parts;
    std::shared_ptr<Barrier> barrier;
    std::shared_ptr<Exchange> exchange;  ///< none for a single device
    std::vector<Rank> ranks;
    /// Whether parameters come from the first device after every update, since another kind of
    /// device would round them otherwise.
    bool mixed = false;
    bool sharded_states = false;         ///< each rank updates a part of the parameters
    std::optional<RankThreads> threads;  ///< last, so that they end first

    void meet();
    std::string note_of_states() const;
    void share(std::size_t rank);
    void share_parameters(std::size_t rank);
};

Team::Team(const std::vector<Context>& devices,
           const std::function<Net(const Context&, int rank)>& open, const SolverOptions& solver,
           const TeamOptions& options)
    : impl_(std::make_shared<TeamImpl>()) {
    TeamImpl& team = *impl_;
    team.devices = devices;
    team.parts = shards_of_ranks(devices.size(), solver.shards, options.shards);
    std::set<const ContextImpl*> contexts;
    for (const Context& device : devices) {
        require(contexts.insert(&Access::impl(device)).second, "context ", device.info().str(),
                " is given twice: each device of a team needs a context of its own");
        team.mixed = team.mixed || !are_of_a_kind(devices[0].info(), device.info());
    }
    team.sharded_states = options.sharded_states && devices.size() > 1;
    require(options.deadline_seconds > 0, "a deadline of ", options.deadline_seconds,
            " seconds is none: it must be above 0");
    require(options.range_bytes > 0, "ranges of 0 bytes hold no gradients");
    team.barrier = std::make_shared<Barrier>(
        names_of(devices), std::chrono::duration<double>(options.deadline_seconds));
    if (devices.size() > 1)
        team.exchange =
            std::make_shared<Exchange>(devices, solver.shards, team.parts, team.barrier, add_pair);
    team.ranks = std::vector<TeamImpl::Rank>(devices.size());
    team.threads.emplace(team.barrier);
    const auto open_rank = [&](std::size_t index) {
        TeamImpl::Rank& mine = team.ranks[index];
        mine.net.emplace(open(devices[index], static_cast<int>(index)));
        SolverOptions own = solver;
        if (team.sharded_states) {
            own.state_part = static_cast<int>(index);
            own.state_parts = static_cast<int>(devices.size());
        }
        mine.solver.emplace(*mine.net, own);
        if (team.exchange)
            Access::impl(*mine.solver).share(team.exchange, index, options.range_bytes);
    };
    team.threads->run(open_rank, std::max(team.barrier->deadline(), compiling));
    team.meet();
    if (!team.sharded_states) return;
    std::vector<SolverImpl*> peers;
    for (const TeamImpl::Rank& rank : team.ranks) peers.push_back(&Access::impl(*rank.solver));
    for (SolverImpl* const peer : peers) peer->peers = peers;
}

Team::~Team() = default;

int Team::size() const {
    return static_cast<int>(impl_->ranks.size());
}
Net& Team::net(int rank) {
    return *impl_->ranks.at(static_cast<std::size_t>(rank)).net;
}
Solver& Team::solver(int rank) {
    return *impl_->ranks.at(static_cast<std::size_t>(rank)).solver;
}
int Team::first_shard(int rank) const {
    return impl_->parts.at(static_cast<std::size_t>(rank)).first;
}
int Team::shards(int rank) const {
    return impl_->parts.at(static_cast<std::size_t>(rank)).count;
}

void Team::for_each(const std::function<void(int rank)>& work) {
    impl_->threads->run([work](std::size_t rank) { work(static_cast<int>(rank)); },
                        impl_->barrier->deadline());
}

/// Batch norms with "sync" take their statistics in the middle of a step.
void TeamImpl::meet() {
    const ShardValues values(barrier);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        SolverImpl& solver = Access::impl(*ranks[i].solver);
        if (solver.synchronous.empty()) continue;
        require(parts[i].count == 1, "the ", solver.synchronous,
                " are those of all shards, with \"sync\", so that each shard needs a rank of its "
                "own: rank ",
                i, " has ", parts[i].count,
                " shards. Give the team a context for each shard, several on the same device where "
                "there are fewer devices");
        solver.meeting = values.meeting(i);
    }
}

std::string TeamImpl::note_of_states() const {
    std::vector<std::string> each;
    double all = 0;
    for (const Rank& rank : ranks) {
        double bytes = 0;
        for (const Block& block : Access::impl(*rank.net).built().executor->plan().blocks)
            if (block.name == "states") bytes = static_cast<double>(block.bytes);
        each.push_back(fixed(bytes / (1 << 20), 2));
        all += bytes;
    }
    return cat("the solver's state is cut over the ranks, which have ", join(each, ", "),
               " of its ", fixed(all / (1 << 20), 2),
               " MiB; each updates its part of the parameters and gives it to the others");
}

void TeamImpl::share_parameters(std::size_t rank) {
    NetImpl& net = Access::impl(*ranks[rank].net);
    const Executor& executor = *net.built().executor;
    const ValueId params = executor.plan().graph.find("@params");
    if (params != no_value) exchange->broadcast(rank, executor.tensor(params));
}

void TeamImpl::share(std::size_t rank) {
    NetImpl& net = Access::impl(*ranks[rank].net);
    for (const std::string& name : net.param_names()) exchange->broadcast(rank, net.param(name));
    const Executor& executor = *net.built().executor;
    const Graph& graph = executor.plan().graph;
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        if (graph.values[i].role == Role::state && graph.values[i].part_begin < 0)
            exchange->broadcast(rank, executor.tensor(static_cast<ValueId>(i)));
    net.params_changed();
    if (rank == 0) return;
    SolverImpl &mine = Access::impl(*ranks[rank].solver), &first = Access::impl(*ranks[0].solver);
    // Rank 0 stays in broadcast() until all have come here, and is not changed by anyone.
    mine.updates = first.updates;
    mine.batches = first.batches;
    mine.rate = first.rate;
    mine.sums.restart();
    net.step_count = first.shared_net->step_count;
    net.set_seed(first.shared_net->options().seed);
}

void Team::share_state() {
    TeamImpl& team = *impl_;
    if (!team.exchange) return;
    for_each([&](int rank) { team.share(static_cast<std::size_t>(rank)); });
}

void Team::step(const std::function<void(int rank, int shard)>& feed,
                const std::function<void(int rank, int shard)>& done) {
    // The thread of a device that hangs may be left behind, and keeps what it uses.
    for_each([team = impl_, feed, done](int rank) {
        const auto index = static_cast<std::size_t>(rank);
        const ShardRange& part = team->parts[index];
        Solver& solver = *team->ranks[index].solver;
        for (int shard = part.first; shard < part.end(); ++shard) {
            feed(rank, shard);
            solver.step();
            if (done) done(rank, shard);
        }
        if (team->mixed && !team->sharded_states) team->share_parameters(index);
    });
}

void Team::set_learning_rate(double rate) {
    for (int rank = 0; rank < size(); ++rank) solver(rank).set_learning_rate(rate);
}

void Team::call_off(int back) {
    for_each([&](int rank) { solver(rank).call_off(back); });
}

std::vector<Context> open_devices(std::string_view names) {
    std::vector<Context> contexts;
    if (names == "gpus") {
        for (const DeviceInfo& info : Context::devices())
            if (info.kind == DeviceKind::gpu) contexts.emplace_back(info.id);
        if (contexts.empty())
            fail(ErrorKind::not_found, "there is no GPU for 'gpus'; --list shows the devices");
        return contexts;
    }
    for (const std::string& name : split(std::string(names), ',')) contexts.emplace_back(name);
    return contexts;
}

std::vector<std::string> Team::notes() const {
    const TeamImpl& team = *impl_;
    std::vector<std::string> notes;
    if (!team.exchange) return notes;
    for (std::size_t i = 0; i < team.devices.size(); ++i)
        notes.push_back(cat("rank ", i, ": shards ", team.parts[i].first, " to ",
                            team.parts[i].end() - 1, " on ", team.devices[i].info().str(),
                            "; its sums travel through ", text_of(team.exchange->way(i))));
    if (team.mixed)
        notes.emplace_back(cat(
            "the devices are of several kinds: the same devices train the same bits again, others "
            "do not; parameters are updated by ",
            team.sharded_states ? "one rank each" : "rank 0"));
    if (team.sharded_states) notes.push_back(team.note_of_states());
    std::set<std::string> ids;
    for (const Context& device : team.devices)
        if (!ids.insert(device.info().id).second)
            notes.push_back(cat("device ", device.info().str(), " has more than one rank"));
    return notes;
}

}  // namespace dlprim
