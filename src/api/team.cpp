// SPDX-License-Identifier: MIT
// Team: nets and solvers of several devices, which exchange their sums in the middle of a step.
#include <dlprim/team.hpp>

#include "api/rank_shards.hpp"
#include "api/rank_threads.hpp"
#include "api/shard_times.hpp"
#include "api/solver_impl.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "collective/exchange/exchange.hpp"
#include "collective/processes/process_group.hpp"
#include "exec/link_sum.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

/// Where a rank is.
struct RankDevice {
    std::string kind, text, id;  ///< of the device; the last two tell it from those of other hosts
};

namespace {

/// Names of ranks in messages; `first` is the number of the first of them.
std::vector<std::string> names_of(const std::vector<Context>& devices, const ProcessGroup* group,
                                  std::size_t first) {
    if (group != nullptr && devices.size() == 1) return {group->name(group->rank())};
    const std::string where = group != nullptr ? " of " + group->name(group->rank()) : "";
    std::vector<std::string> names;
    for (std::size_t i = 0; i < devices.size(); ++i)
        names.push_back(cat("rank ", first + i, ", device ", devices[i].info().str(), where));
    return names;
}

/// A GPU has nothing to do while a thread is woken. Teams of GPUs leave cores free for threads that
/// spin.
constexpr std::chrono::microseconds spin{500};

bool are_gpus(const std::vector<Context>& devices) {
    return std::all_of(devices.begin(), devices.end(),
                       [](const Context& device) { return device.info().kind == DeviceKind::gpu; });
}

/// The same for devices with the same engines and compilers, whose results have the same bits.
std::string kind_text(const DeviceInfo& info) {
    return cat(info.name, ", ", info.platform, ", driver ", info.driver);
}

/// Parameters and running statistics of a net, which all nets of a team have in common, whatever
/// devices they are on.
ProcessGroup::Fields parameters_of(NetImpl& net) {
    ProcessGroup::Fields parameters;
    for (const Value& value : net.built().executor->plan().graph.values)
        if (value.role == Role::parameter)
            parameters.emplace_back(cat("parameter '", value.name, "'"),
                                    cat(value.spec.shape.str(), " ", name_of(value.spec.dtype)));
    return parameters;
}

/// What the processes of a run must have in common besides their configurations: what lies where in
/// the blocks that they exchange; and engines, where their devices are of a kind. Parts of the
/// solver's state, and their updates, differ in size.
ProcessGroup::Fields layout_fields(NetImpl& net, bool mixed, bool sharded_states) {
    const Plan& plan = net.built().executor->plan();
    std::string layout, engines;
    for (std::size_t i = 0; i < plan.graph.values.size(); ++i) {
        const Value& value = plan.graph.values[i];
        if (value.role != Role::parameter && value.role != Role::state) continue;
        if (value.part_begin >= 0) continue;
        const Place& place = plan.places[i];
        layout += cat(value.name, value.spec.shape.str(), name_of(value.spec.dtype), place.index,
                      "+", place.offset, ";");
    }
    for (const GradientMark& mark : plan.gradient_marks)
        layout += cat(mark.begin, "-", mark.end, ";");
    for (const Step& step : plan.steps)
        if (step.engine != nullptr && !(sharded_states && step.part == Part::update))
            engines += cat(step.engine->name(), ";");
    ProcessGroup::Fields fields = parameters_of(net);
    fields.emplace_back("memory layout", hash_hex(layout));
    if (!mixed) fields.emplace_back("choice of engines", hash_hex(engines));
    return fields;
}

/// A sentence for each device that has several ranks.
std::vector<std::string> notes_on_shared_devices(const std::vector<RankDevice>& places) {
    std::map<std::string, int> counts;
    for (const RankDevice& place : places) ++counts[place.id];
    std::vector<std::string> notes;
    for (const RankDevice& place : places)
        if (const int count = std::exchange(counts[place.id], 0); count > 1)
            notes.push_back(cat("device ", place.text, " has ", count,
                                " ranks, which share its time and its memory"));
    return notes;
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
    std::vector<double> shard_seconds;    ///< by part, if they were measured
    std::shared_ptr<ProcessGroup> group;  ///< none for one process
    std::vector<std::size_t> counts;      ///< how many ranks each process has
    std::size_t first_rank = 0;           ///< the number of this one's first rank
    std::vector<RankDevice> places;       ///< of the ranks of all processes
    std::shared_ptr<Barrier> barrier;
    std::shared_ptr<Exchange> exchange;  ///< none for a single device
    std::vector<Rank> ranks;
    /// Whether parameters come from the first device after every update, since another kind of
    /// device would round them otherwise.
    bool mixed = false;
    bool any_order = false;                  ///< as TeamOptions::any_order
    bool sharded_states = false;             ///< each rank updates a part of the parameters
    std::vector<std::uint64_t> state_bytes;  ///< then: what each has of the solver's state
    std::optional<RankThreads> threads;      ///< last, so that they end first

    void compare_nets();
    void connect(int shards);
    void attach(std::size_t rank, std::uint64_t range_bytes);
    void measure(int shards);
    void meet_in_steps();
    void introduce_parts();
    std::string note_of_states() const;
    const ShardRange& part(std::size_t rank) const { return parts.at(first_rank + rank); }
    void learn_places();
    void share(std::size_t rank);
    void share_numbers();
    void share_parameters(std::size_t rank);
    struct Numbers {
        std::uint64_t updates, batches, steps, seed;
        double rate;
    } numbers{};  ///< of the first rank of all, which share() gives to the others
};

Team::Team(const std::vector<Context>& devices,
           const std::function<Net(const Context&, int rank)>& open, const SolverOptions& solver,
           const TeamOptions& options)
    : impl_(std::make_shared<TeamImpl>()) {
    TeamImpl& team = *impl_;
    team.devices = devices;
    require(!devices.empty(), "a team needs a device");
    if (options.processes.size() > 1) team.group = Access::impl(options.processes);
    team.learn_places();
    if (const auto shared = notes_on_shared_devices(team.places); !shared.empty())
        require(options.shared_devices, shared[0],
                ": name as many devices as there are ranks, or start fewer ranks. Without the "
                "option no-shared-devices it is allowed (shared_devices of a team)");
    team.parts = shards_of_ranks(team.places.size(), solver.shards, options.shards);
    require(options.shards.empty() || !options.measure_shards,
            "the numbers of shards are given and are to be measured: only one of both can be");
    const auto ranks = static_cast<int>(team.parts.size());
    const bool measures = options.measure_shards && ranks > 1 && solver.shards > ranks;
    std::set<const ContextImpl*> contexts;
    for (const Context& device : devices)
        require(contexts.insert(&Access::impl(device)).second, "context ", device.info().str(),
                " is given twice: each device of a team needs a context of its own");
    team.sharded_states = options.sharded_states && ranks > 1;
    team.any_order = options.any_order;
    require(options.deadline_seconds > 0, "a deadline of ", options.deadline_seconds,
            " seconds is none: it must be above 0");
    require(options.range_bytes > 0, "ranges of 0 bytes hold no gradients");
    // Where the first rank of a process waits for other processes, the others wait for it, and
    // should not be those who miss somebody.
    const double patience = team.group && devices.size() > 1 ? 1.5 : 1;
    team.barrier = std::make_shared<Barrier>(
        names_of(devices, team.group.get(), team.first_rank),
        std::chrono::duration<double>(patience * options.deadline_seconds));
    if (are_gpus(devices)) team.barrier->set_spin(spin);
    if (!measures) team.connect(solver.shards);
    team.ranks = std::vector<TeamImpl::Rank>(devices.size());
    team.threads.emplace(team.barrier);
    // The thread of a device that hangs may be left behind, and keeps what it uses.
    const auto attach = [team = impl_, bytes = options.range_bytes](std::size_t rank) {
        team->attach(rank, bytes);
    };
    const auto open_rank = [team = impl_, open, solver, measures, attach](std::size_t index) {
        TeamImpl::Rank& mine = team->ranks[index];
        mine.net.emplace(open(team->devices[index], static_cast<int>(index)));
        SolverOptions own = solver;
        if (team->sharded_states) {
            own.state_part = static_cast<int>(team->first_rank + index);
            own.state_parts = static_cast<int>(team->parts.size());
        }
        mine.solver.emplace(*mine.net, own);
        if (!measures) attach(index);
    };
    team.threads->run(open_rank, std::max(team.barrier->deadline(), compiling));
    team.compare_nets();
    if (team.group)
        team.group->agree(
            layout_fields(Access::impl(*team.ranks[0].net), team.mixed, team.sharded_states));
    if (team.group) team.group->agree({{"order of sums", options.any_order ? "any" : "tree"}});
    if (measures) {
        team.measure(solver.shards);
        team.connect(solver.shards);
        team.threads->run(attach, team.barrier->deadline());
    }
    team.meet_in_steps();
    if (team.sharded_states) team.introduce_parts();
}

void TeamImpl::compare_nets() {
    if (ranks.size() == 1) return;
    const ProcessGroup::Fields first = parameters_of(Access::impl(*ranks[0].net));
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        const ProcessGroup::Fields other = parameters_of(Access::impl(*ranks[i].net));
        if (other == first) continue;
        const auto differ = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
        const auto text = [](auto at, auto end) {
            return at == end ? "nothing" : cat(at->first, " of ", at->second);
        };
        fail(ErrorKind::invalid_argument, "all ranks of a team need the same net: that of rank ",
             first_rank, " has ", text(differ.first, first.end()),
             ", and in its place that of rank ", first_rank + i, " has ",
             text(differ.second, other.end()));
    }
}

/// Tells the solvers of each other, where each has a part of the state.
void TeamImpl::introduce_parts() {
    std::vector<SolverImpl*> peers;
    for (const Rank& rank : ranks) {
        peers.push_back(&Access::impl(*rank.solver));
        std::uint64_t bytes = 0;
        for (const Block& block : Access::impl(*rank.net).built().executor->plan().blocks)
            if (block.name == "states") bytes = block.bytes;
        state_bytes.push_back(bytes);
    }
    for (SolverImpl* const peer : peers) {
        peer->peers = peers;
        peer->group = group;
        peer->parts_of_processes = counts;
    }
    if (group) state_bytes = group->gather(state_bytes, "the sizes of the solver's state");
}

void TeamImpl::connect(int shards) {
    if (parts.size() > 1)
        exchange = std::make_shared<Exchange>(devices, shards, parts, barrier, link_sum(), group);
    if (exchange && any_order) exchange->allow_any_order();
}

void TeamImpl::attach(std::size_t rank, std::uint64_t range_bytes) {
    if (exchange) Access::impl(*ranks[rank].solver).share(exchange, rank, range_bytes);
}

/// Gives the devices numbers of shards by the time that one takes each.
void TeamImpl::measure(int shards) {
    std::vector<std::shared_ptr<NetImpl>> nets;
    for (const Rank& rank : ranks) nets.push_back(one_device(*rank.net));
    const auto warm = [&] {
        if (group) group->barrier("the devices to be timed");
    };
    shard_seconds = time_shards(*threads, nets, barrier->deadline(), warm);
    if (group) shard_seconds = group->gather(shard_seconds, "how fast the devices are");
    parts = shards_of_ranks(parts.size(), shards, shards_by_seconds(shard_seconds, shards));
}

void TeamImpl::learn_places() {
    const std::string self = group ? group->name(group->rank()) : "";
    const std::string host = group ? cat(" ", self.substr(self.find("on"))) : "";
    std::vector<std::string> own;
    for (const Context& device : devices)
        for (const std::string& word :
             {kind_text(device.info()), device.info().str() + host, device.info().id + host})
            own.push_back(word);
    std::vector<std::string> all{join(own, std::string(1, '\0'))};
    if (group) all = group->gather(all[0], "the devices of the run");
    for (const std::string& text : all) {
        const std::vector<std::string> words = split(text, '\0');
        if (group && counts.size() == group->rank()) first_rank = places.size();
        counts.push_back(words.size() / 3);
        for (std::size_t i = 0; i + 2 < words.size(); i += 3)
            places.push_back({words[i], words[i + 1], words[i + 2]});
    }
    for (const RankDevice& place : places) mixed = mixed || place.kind != places[0].kind;
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
    return impl_->part(static_cast<std::size_t>(rank)).first;
}
int Team::shards(int rank) const {
    return impl_->part(static_cast<std::size_t>(rank)).count;
}

std::vector<double> Team::shard_seconds() const {
    return impl_->shard_seconds;
}

void Team::for_each(const std::function<void(int rank)>& work) {
    impl_->threads->run([work](std::size_t rank) { work(static_cast<int>(rank)); },
                        impl_->barrier->deadline());
}

/// Batch norms with "sync" take their statistics in the middle of a step.
void TeamImpl::meet_in_steps() {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (core_of(*ranks[i].solver).alone() == nullptr) continue;  // placed, which has no "sync"
        SolverImpl& solver = Access::impl(*ranks[i].solver);
        if (solver.synchronous.empty()) continue;
        for (std::size_t rank = 0; rank < parts.size(); ++rank)
            require(parts[rank].count == 1, "the ", solver.synchronous,
                    " are those of all shards, with \"sync\", so that each shard needs a rank of "
                    "its own: rank ",
                    rank, " has ", parts[rank].count, " shards. ",
                    "Give the team a context for each shard, several on the same device where "
                    "there are fewer devices");
        solver.meeting = exchange->meeting(i);
        // A transport takes one call at a time, in the same order in all processes.
        if (group) solver.sums.leave_late();
    }
}

std::string TeamImpl::note_of_states() const {
    std::vector<std::string> each;
    double all = 0;
    for (const std::uint64_t bytes : state_bytes) {
        each.push_back(fixed(static_cast<double>(bytes) / (1 << 20), 2));
        all += static_cast<double>(bytes);
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
    if (rank == 0) share_numbers();
    barrier->arrive(rank, "to take the numbers of the first device");
    if (first_rank + rank == 0) return;
    SolverImpl& mine = Access::impl(*ranks[rank].solver);
    mine.updates = numbers.updates;
    mine.batches = numbers.batches;
    mine.rate = numbers.rate;
    mine.sums.restart();
    net.step_count = numbers.steps;
    net.set_seed(numbers.seed);
}

void TeamImpl::share_numbers() {
    const SolverImpl& solver = Access::impl(*ranks[0].solver);
    const NetImpl& net = Access::impl(*ranks[0].net);
    numbers = {solver.updates, solver.batches, net.step_count, net.options().seed, solver.rate};
    if (group) group->broadcast(&numbers, sizeof(numbers), "the solver's state");
}

void Team::share_state() {
    if (!impl_->exchange) return;
    for_each([team = impl_](int rank) { team->share(static_cast<std::size_t>(rank)); });
}

void Team::step(const std::function<void(int rank, int shard)>& feed,
                const std::function<void(int rank, int shard)>& done) {
    if (impl_->group) impl_->group->set_step(solver(0).steps());
    for_each([team = impl_, feed, done](int rank) {
        const auto index = static_cast<std::size_t>(rank);
        const ShardRange& part = team->part(index);
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
    for_each([team = impl_, back](int rank) {
        team->ranks[static_cast<std::size_t>(rank)].solver->call_off(back);
    });
}

std::vector<std::string> Team::notes() const {
    const TeamImpl& team = *impl_;
    std::vector<std::string> notes;
    if (!team.exchange) return notes;
    if (!team.shard_seconds.empty()) {
        std::vector<int> shards;
        for (const ShardRange& part : team.parts) shards.push_back(part.count);
        notes.push_back(note_of_times(team.shard_seconds, shards));
    }
    if (team.group) {
        notes.push_back(cat(team.group->size(), " processes exchange their sums by ",
                            team.group->transport(), ", started by ", team.group->place().starter));
        notes.push_back(team.exchange->levels());
    }
    if (const std::string& reason = team.exchange->no_shared(); !reason.empty())
        notes.push_back(cat("processes of a host do not share memory: ", reason));
    for (std::size_t i = 0; i < team.places.size(); ++i)
        notes.push_back(
            cat("rank ", i, ": shards ", team.parts[i].first, " to ", team.parts[i].end() - 1,
                " on ", team.places[i].text,
                team.group ? "" : "; its sums travel through " + team.exchange->way(i)));
    if (const std::string& reason = team.exchange->no_peers(); !team.group && !reason.empty())
        notes.push_back(cat("devices do not reach each other's memory: ", reason));
    if (team.mixed)
        notes.emplace_back(cat(
            "the devices are of several kinds: the same devices train the same bits again, others "
            "do not; parameters are updated by ",
            team.sharded_states ? "one rank each" : "rank 0"));
    if (team.sharded_states) notes.push_back(team.note_of_states());
    for (std::string& note : notes_on_shared_devices(team.places)) notes.push_back(std::move(note));
    return notes;
}

}  // namespace dlprim
