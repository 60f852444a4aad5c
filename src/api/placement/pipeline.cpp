// SPDX-License-Identifier: MIT
// Pipeline: what the threads of the devices do.
#include "api/placement/pipeline.hpp"

#include "api/net_impl.hpp"
#include "api/placement/courier.hpp"
#include "api/placement/pipeline_order.hpp"
#include "api/shard_output.hpp"
#include "api/shard_sums.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

namespace dlprim {

namespace {

constexpr std::chrono::duration<double> patience{600};
std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

}  // namespace

class Pipeline::Work {
  public:
    Work(std::shared_ptr<PlacedNetImpl> net, int shards);

    /// For the threads of this step and the next ones.
    std::shared_ptr<Barrier> make_barrier();
    void begin(std::vector<ShardInputs::Shard> shards);
    /// Lets engines that are new fail, and be replaced, before shards depend on each other.
    void try_parts(std::size_t rank);
    void run(std::size_t rank);
    /// Counts the moves of a step that is over.
    void count_moves();
    Tensor gather(const std::string& output);
    void restore_all();
    /// After an error: waits for couriers, and puts back what the step has changed.
    void undo();

  private:
    /// A part of the network that runs. The thread of its device alone changes it; others read how
    /// far it is.
    struct Stage {
        int part = 0;
        std::size_t rank = 0;
        bool backward = false;
        ShardSums sums;
        /// Moves of values that it makes or reads, and of their gradients.
        std::vector<std::size_t> out, in, gradients_out, gradients_in;
        std::map<std::string, ShardOutput> gathered;  ///< outputs, by name
        std::uint64_t random_step = 0;                ///< before the batch
        bool kept = false;                ///< whether this step has kept running statistics
        int forwards = 0, backwards = 0;  ///< shards of this step that it has enqueued
        std::vector<std::shared_ptr<EventImpl>> ends;  ///< of its last work in each copy
    };

    /// How far a step is. Couriers keep it, since one that hangs is left behind.
    struct Progress {
        std::shared_ptr<Barrier> barrier;
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<int> moved;  ///< by move: shards
        bool stopped = false;

        void count_move(std::size_t move);
        /// Ends the step for all threads.
        void stop(std::size_t rank, const std::exception_ptr& thrown);
    };

    NetImpl& select(const Stage& stage, int shard) { return net_->select(stage.part, shard); }
    std::size_t copy_of(int shard) const { return at(shard) % net_->borders().copies(); }
    /// The running statistics of before the batch, with which each shard begins.
    void keep_states(Stage& stage);
    void restore_states(const Stage& stage);
    void find_moves();
    /// Waits until the condition holds, which others bring about, so that the stage can go on.
    template <typename Condition>
    void await(const Stage& stage, Condition condition);
    bool have_come(const std::vector<std::size_t>& moves, int shard) const;
    void forward(std::size_t place, int shard);
    void backward(std::size_t place, int shard);
    void send(const Stage& stage, const std::vector<std::size_t>& moves, int shard);

    const std::shared_ptr<PlacedNetImpl> net_;
    const int shards_;
    std::vector<Context> contexts_;  ///< by rank: devices on which parts run
    std::vector<std::string> names_;
    std::vector<Stage> stages_;
    std::vector<std::vector<PipelineTask>> orders_;  ///< by rank; parts are stages
    std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Courier>> couriers_;
    std::vector<std::size_t> source_ranks_;   ///< by move
    std::vector<std::size_t> target_stages_;  ///< by move: the first one of the target's device
    std::vector<Courier*> courier_of_;  ///< by move; null for those that this class leaves out
    std::vector<ShardInputs::Shard> inputs_;

    std::shared_ptr<Barrier> barrier_;
    std::shared_ptr<Progress> progress_;  ///< of this step
};

Pipeline::Work::Work(std::shared_ptr<PlacedNetImpl> net, int shards)
    : net_(std::move(net)), shards_(shards), inputs_(at(shards)) {
    std::vector<std::size_t> ranks;
    for (const int part : net_->chain()) {
        const Context& context = net_->stage(part).context();
        std::size_t rank = 0;
        while (rank < contexts_.size() && !(contexts_[rank] == context)) ++rank;
        if (rank == contexts_.size()) {
            contexts_.push_back(context);
            names_.push_back(
                cat("device '", net_->device_name(part), "' (", context.info().str(), ")"));
        }
        ranks.push_back(rank);
        Stage& stage = stages_.emplace_back();
        stage.part = part;
        stage.rank = rank;
        stage.backward = net_->cut().parts[at(part)].backward;
        stage.ends.resize(net_->borders().copies());
        for (int set = net_->sets(part, shards); set-- > 0;) select(stage, set).built();
        stage.sums.attach(select(stage, 0), shards);
        select(stage, shards - 1);  // outputs of the network are those of the last shard
    }
    orders_ = pipeline_order(ranks, shards);
    find_moves();
}

void Pipeline::Work::find_moves() {
    const std::vector<BorderMove>& moves = net_->borders().moves();
    courier_of_.resize(moves.size());
    source_ranks_.resize(moves.size());
    target_stages_.resize(moves.size());
    const auto first_of = [&](std::size_t rank) {
        const auto first = std::find_if(stages_.begin(), stages_.end(),
                                        [rank](const Stage& stage) { return stage.rank == rank; });
        return static_cast<std::size_t>(first - stages_.begin());
    };
    const auto stage_of = [&](int part) {
        return std::find_if(stages_.begin(), stages_.end(),
                            [part](const Stage& stage) { return stage.part == part; });
    };
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const BorderMove& move = moves[i];
        const auto from = stage_of(move.from), to = stage_of(move.to);
        // Inputs of the network go to each device from memory of the host.
        if (move.at_start || from == stages_.end() || to == stages_.end()) continue;
        (move.gradient ? from->gradients_out : from->out).push_back(i);
        (move.gradient ? to->gradients_in : to->in).push_back(i);
        source_ranks_[i] = from->rank;
        target_stages_[i] = first_of(to->rank);
        std::unique_ptr<Courier>& courier = couriers_[{from->rank, to->rank}];
        if (!courier)
            courier =
                std::make_unique<Courier>(contexts_[from->rank], contexts_[to->rank], patience);
        courier_of_[i] = courier.get();
    }
}

std::shared_ptr<Barrier> Pipeline::Work::make_barrier() {
    barrier_ = progress_->barrier = std::make_shared<Barrier>(names_, patience);
    return barrier_;
}

void Pipeline::Work::begin(std::vector<ShardInputs::Shard> shards) {
    inputs_ = std::move(shards);
    progress_ = std::make_shared<Progress>();
    progress_->barrier = barrier_;
    progress_->moved.assign(courier_of_.size(), 0);
    for (Stage& stage : stages_) {
        stage.random_step = select(stage, 0).step_count;
        stage.kept = false;
        stage.forwards = stage.backwards = 0;
    }
}

void Pipeline::Work::keep_states(Stage& stage) {
    select(stage, 0).built().executor->keep_states(kept_slot);
    stage.kept = true;
}

void Pipeline::Work::restore_states(const Stage& stage) {
    select(stage, 0).built().executor->restore_states(kept_slot);
}

void Pipeline::Work::try_parts(std::size_t rank) {
    for (Stage& stage : stages_) {
        if (stage.rank != rank) continue;
        keep_states(stage);
        for (int set = 0; set < net_->sets(stage.part, shards_); ++set) {
            NetImpl& net = select(stage, set);
            net_->feed(stage.part, set, inputs_[at(set)]);
            net.forward();
            if (stage.backward) net.backward();
            restore_states(stage);
            net.step_count = stage.random_step;
        }
    }
    // Couriers have queues of their own. What their targets held before, which may be memory of a
    // network that is gone, must no longer be written by this one.
    Access::impl(contexts_[rank]).queue().finish();
}

void Pipeline::Work::run(std::size_t rank) {
    try {
        for (const PipelineTask& task : orders_[rank]) {
            if (task.backward)
                backward(at(task.part), task.shard);
            else
                forward(at(task.part), task.shard);
        }
    } catch (...) {
        progress_->stop(rank, std::current_exception());
        throw;
    }
}

void Pipeline::Work::Progress::stop(std::size_t rank, const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        barrier->fail(rank, error);
    } catch (const std::exception& error) {
        barrier->fail(rank, Error(ErrorKind::device, error.what()));
    } catch (...) {
        barrier->fail(rank, Error(ErrorKind::device, "was stopped by an exception"));
    }
    const std::lock_guard lock(mutex);
    stopped = true;
    changed.notify_all();
}

void Pipeline::Work::Progress::count_move(std::size_t move) {
    const std::lock_guard lock(mutex);
    ++moved[move];
    changed.notify_all();
}

template <typename Condition>
void Pipeline::Work::await(const Stage& stage, Condition condition) {
    TracePhases phases(net_->trace().recorder(), at(stage.part), TraceRow::host);
    phases.next(TraceKind::wait, waits_for_values);
    Progress& progress = *progress_;
    std::unique_lock lock(progress.mutex);
    const bool came =
        progress.changed.wait_for(lock, patience, [&] { return progress.stopped || condition(); });
    if (progress.stopped) fail(ErrorKind::device, "was stopped, since another device has failed");
    if (!came)
        fail(ErrorKind::device, "waits for values of another device, which have not come within ",
             patience.count(), " seconds: look after that device");
}

bool Pipeline::Work::have_come(const std::vector<std::size_t>& moves, int shard) const {
    return std::all_of(moves.begin(), moves.end(),
                       [&](std::size_t move) { return progress_->moved[move] > shard; });
}

void Pipeline::Work::forward(std::size_t place, int shard) {
    Stage& stage = stages_[place];
    const PlacedTrace& trace = net_->trace();
    await(stage, [&] {
        return (place == 0 || stages_[place - 1].forwards > shard) && have_come(stage.in, shard);
    });
    if (shard == 0) keep_states(stage);
    NetImpl& net = select(stage, shard);
    net_->feed(stage.part, shard, inputs_[at(shard)]);
    net.step_count = stage.random_step + static_cast<std::uint64_t>(shard);
    trace.mark(stage.part, TraceKind::wait, waits_for_values);
    net.forward();
    trace.mark(stage.part, TraceKind::compute, "forward");
    for (const auto& [name, output] : stage.gathered)
        output.keep(net.built().outputs.at(name), shard);
    if (!stage.sums.add_forward(net)) restore_states(stage);
    trace.mark(stage.part, TraceKind::compute, "add sums");
    send(stage, stage.out, shard);
    const std::lock_guard lock(progress_->mutex);
    ++stage.forwards;
    progress_->changed.notify_all();
}

void Pipeline::Work::backward(std::size_t place, int shard) {
    Stage& stage = stages_[place];
    const PlacedTrace& trace = net_->trace();
    await(stage, [&] {
        return (place + 1 == stages_.size() || stages_[place + 1].backwards > shard) &&
               have_come(stage.gradients_in, shard);
    });
    NetImpl& net = select(stage, shard);
    trace.mark(stage.part, TraceKind::wait, waits_for_values);
    if (stage.backward) net.backward();
    trace.mark(stage.part, TraceKind::compute, "backward");
    send(stage, stage.gradients_out, shard);
    stage.sums.add_backward(net);
    trace.mark(stage.part, TraceKind::compute, "add sums");
    stage.ends[copy_of(shard)] = Access::impl(contexts_[stage.rank]).record({});
    const std::lock_guard lock(progress_->mutex);
    ++stage.backwards;
    progress_->changed.notify_all();
}

/// The target may still be in use by its device for the shard before that had this copy, of which
/// backward of the device's first part is the last work. Sources are free: their device is told to
/// write them again only after all have come.
void Pipeline::Work::send(const Stage& stage, const std::vector<std::size_t>& moves, int shard) {
    ContextImpl& context = Access::impl(contexts_[stage.rank]);
    if (moves.empty()) return context.queue().flush();
    const std::shared_ptr<EventImpl> made = context.record({});
    for (const std::size_t index : moves) {
        const BorderMove& move = net_->borders().moves()[index];
        const std::size_t copy = copy_of(shard);
        courier_of_[index]->post(
            net_->borders().source_of(move, copy), net_->borders().target_of(move, copy), made,
            stages_[target_stages_[index]].ends[copy], net_->trace().move(index),
            [progress = progress_, index,
             rank = source_ranks_[index]](const std::exception_ptr& thrown) {
                if (thrown)
                    progress->stop(rank, thrown);
                else
                    progress->count_move(index);
            });
    }
}

void Pipeline::Work::count_moves() {
    for (std::size_t i = 0; i < progress_->moved.size(); ++i)
        net_->borders().count(i, static_cast<std::uint64_t>(progress_->moved[i]));
}

Tensor Pipeline::Work::gather(const std::string& output) {
    const int part = net_->stage_of_output(output);
    const auto stage = std::find_if(stages_.begin(), stages_.end(),
                                    [part](const Stage& each) { return each.part == part; });
    const Tensor& of_shard = select(*stage, shards_ - 1).built().outputs.at(output);
    return stage->gathered.try_emplace(output, output, of_shard, shards_).first->second.whole();
}

void Pipeline::Work::restore_all() {
    for (const Stage& stage : stages_) {
        restore_states(stage);
        select(stage, shards_ - 1);
        Access::impl(contexts_[stage.rank]).queue().flush();
    }
}

void Pipeline::Work::undo() {
    for (const auto& [ranks, courier] : couriers_) courier->wait();
    for (Stage& stage : stages_) {
        stage.sums.restart();
        if (stage.kept) restore_states(stage);
        select(stage, 0).step_count = stage.random_step;
    }
}

Pipeline::Pipeline(std::shared_ptr<PlacedNetImpl> net, int shards)
    : work_(std::make_shared<Work>(std::move(net), shards)) {}

Pipeline::~Pipeline() = default;

void Pipeline::run_threads(void (Work::*call)(std::size_t),
                           std::chrono::duration<double> deadline) {
    if (!threads_) threads_ = std::make_unique<RankThreads>(work_->make_barrier());
    threads_->run([work = work_, call](std::size_t rank) { (work.get()->*call)(rank); }, deadline);
}

void Pipeline::run(std::vector<ShardInputs::Shard> shards) {
    work_->begin(std::move(shards));
    try {
        if (!tried_) run_threads(&Work::try_parts, compiling);
        tried_ = true;
        run_threads(&Work::run, patience);
    } catch (...) {
        threads_.reset();  // what has failed once fails for ever
        try {
            work_->undo();
        } catch (const Error&) {
            // The first error is that of the step.
        }
        throw;
    }
    work_->count_moves();
}

void Pipeline::restore_states() {
    work_->restore_all();
}

Tensor Pipeline::gather(const std::string& output) {
    return work_->gather(output);
}

}  // namespace dlprim
