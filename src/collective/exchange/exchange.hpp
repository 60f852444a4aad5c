// SPDX-License-Identifier: MIT
// Exchange: adds tensors up over the shards of a batch that several devices of this process have
// computed, in the order of ShardTree. Every device owns a slice of each tensor. It gets that slice
// of all sums that wait for others, adds them, and all devices get the result:
//
//   device 0   its sums --> host memory --+--> slice 0: additions --> host memory --+--> the means
//   device 1   its sums --> host memory --+--> slice 1: additions --> host memory --+--> the means
//
// Where kernels of all devices reach the memory of each (collective/devices/peer_memory.hpp), it
// takes the place of host memory, and the additions read the sums of others where they lie.
//
// That is done by a thread and a second queue of each device (collective/devices/mover.hpp,
// second_queue.hpp), beside what the device computes meanwhile: tensors come in groups, each as
// soon as the device has made it.
//
// Where ranks belong to several processes (collective/processes/process_group.hpp), that happens
// level by level (collective/processes/level_plan.hpp). Ranks that share memory, as those of a host
// do, are the first level: what is above is all of it for a single process. The result of a level
// are sums that wait for those of other hosts, and that the group's transport carries there; the
// means come back in the reverse order.
//
// Threads: each rank calls from a thread of its own, all for the same things in the same order.
// finish() and broadcast() wait for the others, up to the deadline of the barrier, and throw what
// the barrier throws.
#pragma once

#include "base/shard_tree.hpp"
#include "collective/devices/barrier.hpp"
#include "collective/devices/mover.hpp"
#include "collective/devices/peer_memory.hpp"
#include "collective/devices/second_queue.hpp"
#include "collective/devices/staging_buffer.hpp"
#include "collective/exchange/piece_exchange.hpp"
#include "collective/exchange/step_trace.hpp"
#include "collective/processes/level_plan.hpp"
#include "collective/processes/process_group.hpp"
#include "runtime/shard_meeting.hpp"

#include <dlprim/tensor.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class EventImpl;
class Queue;
class OrderedSum;

class Exchange : public std::enable_shared_from_this<Exchange> {
  public:
    using ChoosePeers =
        std::function<PeerChoice(const std::vector<Context>& contexts, const AddPair& add)>;
    /// Rank i computes the shards parts[i] of each batch, which follow each other. Probes ways
    /// between the devices. Throws Error(device) where there is none.
    ///
    /// With a group, `contexts` are the ranks of this process, which all other functions count from
    /// 0; parts are those of all processes, whose ranks follow each other. All processes construct
    /// it at once. Memory of peers is not asked for then.
    Exchange(std::vector<Context> contexts, int shards, std::vector<ShardRange> parts,
             std::shared_ptr<Barrier> barrier, AddPair add,
             std::shared_ptr<ProcessGroup> group = {}, const ChoosePeers& choose = choose_peers);
    /// Waits for copies from and to its memory, as after a failure and after share().
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    std::size_t size() const { return parts_.size(); }  ///< ranks of all processes
    int shards() const { return shards_; }
    const ShardRange& part(std::size_t rank) const { return parts_.at(number(rank)); }
    /// By what way the sums of a rank travel: for notes.
    std::string way(std::size_t rank) const;
    /// How the ranks of several processes add up, and why they share no memory of a host, in
    /// sentences for notes.
    std::string levels() const;
    const std::string& no_shared() const { return no_shared_; }
    /// Why kernels do not reach the memory of other devices; empty if they do or need not.
    const std::string& no_peers() const { return peers_.reason; }
    Barrier& barrier() { return *barrier_; }
    /// Lets the transport of several processes add sums of floats up in an order of its own, which
    /// depends on their number. It stays the tree's where the transport does not add, or there is
    /// one process. To be called before any step, in all processes.
    void allow_any_order();
    bool is_in_any_order() const { return any_order_; }
    /// Records what is moved and waited for. To be called before any step; null for no trace.
    void set_trace(std::shared_ptr<StepTrace> trace) { trace_ = std::move(trace); }

    /// A tensor of a rank: the sums of its shards that wait for others, by ShardTree::pending(),
    /// and where the mean over all shards is to be, which may be where the first of them is. All
    /// are row-major. The sums are overwritten.
    struct Term {
        std::vector<Tensor> waiting;
        Tensor mean;
    };
    /// Whether sums of this shape had better wait in a tensor of make_waiting().
    bool waits_in_reach(const Shape& shape, DType dtype) const;
    /// A tensor of a rank for sums that wait for others: where kernels of the others reach it, if
    /// it is large and such memory holds it, so that the exchange need not copy it. To be called by
    /// the rank's own thread.
    Tensor make_waiting(std::size_t rank, const Shape& shape, DType dtype);
    /// The largest tensor in bytes for which that is memory that kernels of the others reach.
    std::uint64_t largest_reached() const { return peers_.largest(); }
    /// Says how many groups of tensors each step of the rank has. Every rank adds a group by itself
    /// if the bytes of its tensors, times the number of other ranks, are at most `small`: to read
    /// all of it from them takes less time than to meet again for means. To be called before any
    /// step; all ranks say the same.
    void expect(std::size_t rank, std::size_t groups, std::uint64_t small = 1 << 20);
    /// To be called before a step writes to sums that wait: waits until all ranks of this
    /// process have received what the step before has left in their place.
    void begin(std::size_t rank);
    /// Begins to add up a group of tensors, which `ready` says are there. Returns at once. A step
    /// has groups 0, 1, ... in this order, which consist of the same tensors, by shape and type, in
    /// all steps of all ranks. Until finish() nobody else uses the tensors.
    void start(std::size_t rank, std::size_t group, std::vector<Term> terms,
               std::shared_ptr<EventImpl> ready);
    /// Waits until all groups of the step are added up and their means are where they were wanted.
    void finish(std::size_t rank);

    /// Gives a tensor of rank 0 to `tensor` of every rank. Processes wait without a deadline, since
    /// the first one may take an unknown time before.
    void broadcast(std::size_t rank, const Tensor& tensor);

    using Slice = ElementRange;
    /// Gives each rank's own slice of a tensor to all others. `slices` are by rank, and follow each
    /// other. Between two calls a rank adds up sums and waits for them by finish().
    void share(std::size_t rank, const Tensor& tensor, const std::vector<Slice>& slices);

    /// By which the ranks, each with one shard of the batch, give each other small values in the
    /// middle of a step: for the thread of one rank. It uses the barrier's lane Barrier::middle.
    /// With a group, nothing else may use the group meanwhile.
    std::unique_ptr<ShardMeeting> meeting(std::size_t rank);

  private:
    /// The number of a rank of this process among those of all.
    std::size_t number(std::size_t rank) const { return own_.begin + rank; }
    /// The numbers of a process's ranks.
    struct RankRange {
        std::size_t begin = 0, end = 0;
        std::size_t size() const { return end - begin; }
        bool has(std::size_t number) const { return begin <= number && number < end; }
    };
    using Values = std::vector<std::vector<double>>;  ///< of a meeting, by number
    void exchange_values(std::size_t turn, const std::string& what);
    void learn_numbers();
    /// Chooses the levels, and whether memory is shared.
    void choose_levels();
    std::size_t process_of(std::size_t number) const;
    /// Lets the first rank of this process do with other processes what is for all of its ranks,
    /// which wait for it. `what`: what it brings.
    void by_first(std::size_t rank, const std::string& what, const std::function<void()>& work);
    /// Objects by which processes give each other what is not a sum.
    void make_piece_exchanges();
    void share_among_processes(std::size_t rank, const Tensor& tensor,
                               const std::vector<Slice>& slices);
    /// Parts of a tensor begin at multiples of so many elements.
    static constexpr std::int64_t grain = 1024;
    /// What a rank sends and receives of a tensor in a level above the first: each message with all
    /// its sums.
    struct LevelMessages {
        LevelPlan::Division::Stage stage;
        StagingBuffer sent, received;
    };
    /// The buffers of a rank for one tensor.
    struct Buffers {
        std::vector<StagingBuffer>
            sums;            ///< its partial sums, where others of its memory read them
        Slice slice;         ///< its local slice: what it adds of those
        StagingBuffer mean;  ///< of its slice
        std::vector<LevelMessages> levels;  ///< from the second on
    };
    using Terms = std::vector<Term>;
    struct Group {
        std::vector<Term> terms;
        std::shared_ptr<EventImpl> ready;
    };
    /// What a rank has started and its mover has not finished.
    struct Started {
        std::mutex mutex;
        std::map<std::size_t, Group> groups;
        std::size_t next = 0;  ///< the first group that is not added up
        /// The end of those that the rank has made, at each barrier of add_neighbours(). Others may
        /// still read the one before.
        std::size_t offered[2] = {0, 0};
        std::size_t barriers = 0;
    };
    Group take(std::size_t rank, std::size_t group);
    void serve(std::size_t rank, std::size_t group);
    std::size_t find_ready(std::size_t rank, std::size_t group);
    /// Prepares finish() for the end of the step if `end` is that of its groups.
    void announce_end(std::size_t rank, std::size_t end);
    void add_up(std::size_t rank, std::size_t group, const std::vector<Term>& terms);
    /// The same for neighbouring groups at once, of one tensor each, which kernels of all reach.
    void add_neighbours(std::size_t rank, std::size_t group);
    void add_reached(std::size_t rank, std::size_t group, const Term& whole, const Slice& own);
    /// Memory for elements of others and partial sums, while a group is added up.
    Tensor staging(std::size_t rank, std::int64_t elements, DType dtype) {
        return staging_[rank].take(second_[rank], elements, dtype);
    }
    bool is_reached(std::size_t rank, const std::vector<Term>& terms) const;
    void make_buffers(std::size_t rank, std::size_t group, const Terms& terms);
    /// Where a tensor lies, if make_waiting() has put it within reach.
    std::optional<StagingBuffer> buffer_of(std::size_t rank, const Tensor& tensor) const;
    /// Elements whose sums a rank has on its device.
    struct Chunk {
        Slice range;
        std::vector<Tensor> sums;  ///< by LevelPlan::nodes()
    };
    using Chunks = std::vector<Chunk>;
    LevelPlan::Division divide(const Tensor& tensor) const;
    /// The local slice of a rank: what it keeps in the first level.
    static Slice slice_of(const LevelPlan::Division& division, std::size_t number);
    /// Whether each rank adds all of a group by itself.
    bool is_added_by_all(std::size_t rank, const Terms& terms) const;
    void send_sums(std::size_t rank, const Terms& terms, const std::vector<Buffers>& buffers);
    /// Elements of one of the rank's tensors.
    Tensor part_of(std::size_t rank, const Tensor& whole, const Slice& range) const {
        return elements_of(second_[rank], whole, range.begin, range.size());
    }
    /// Adds up some elements of the sums in its memory. If that completes the sums of all shards,
    /// their mean goes to `means`. Without these, partial sums take each other's place.
    Chunks add_sums(std::size_t rank, std::size_t group, std::size_t tensor, const Term& term,
                    const Slice& range, const std::vector<Tensor>& means);
    /// The same of its slice, whose mean goes to where the others read it.
    Chunks add_slice(std::size_t rank, std::size_t group, std::size_t tensor, const Term& term);
    void send_means(std::size_t rank, const Buffers& buffers, const Chunks& chunks);
    void receive_means(std::size_t rank, std::size_t group, std::size_t tensor, const Tensor& mean,
                       const Chunks& chunks);

    /// Waits for the processes of the host, and then reaches their buffers.
    void meet_on_host(std::size_t group, const Terms& terms, const std::string& what);
    /// Whether devices of all processes of a host find in shared memory what others have written
    /// there.
    std::vector<bool> find_shared_memory();
    /// For each process, of those whose hosts are to try it.
    std::vector<bool> shared_memory_works(bool pinned, const std::vector<bool>& tried);
    std::byte check_shared(bool pinned);
    /// Memory that this process shares, or that another one of the host does, as the driver is to
    /// know it.
    std::shared_ptr<std::byte> shared_memory(std::size_t process, std::uint64_t bytes);
    /// Makes such memory the buffers of a process's ranks.
    void share_buffers(std::size_t process, std::size_t group, const Terms& terms);
    /// Puts buffers of ranks into memory, one after the other, if that is not null. Returns its
    /// size.
    std::uint64_t lay_out(const RankRange& ranks, std::size_t group, const Terms& terms,
                          const StagingBuffer* memory);

    /// In place of all levels, where the transport adds.
    void add_in_any_order(std::size_t rank, std::size_t group, const Terms& terms,
                          const std::string& what);
    /// Levels above the first. The first rank of each process exchanges for all of its ranks.
    void make_levels(std::size_t rank, Buffers& buffers, const Tensor& tensor);
    void add_level(std::size_t rank, std::size_t level, std::size_t group, const Terms& terms,
                   std::vector<Chunks>& chunks, const std::string& what);
    void send_chunks(std::size_t rank, std::size_t level, const LevelMessages& messages,
                     const Chunks& chunks);
    Chunks add_chunks(std::size_t rank, std::size_t level, const LevelMessages& messages,
                      const Tensor& tensor, const Chunks& chunks);
    /// Elements of what a rank has, within one of its chunks.
    Tensor part_of(std::size_t rank, const Chunks& chunks, std::size_t node,
                   const Slice& range) const;
    /// Exchanges the messages of a level for all ranks of this process: sums, or the means that go
    /// back.
    void exchange_messages(std::size_t level, std::size_t group, const Terms& terms, bool means,
                           const std::string& what);
    void return_means(std::size_t rank, std::size_t group, const Terms& terms,
                      const std::string& what);
    Queue& queue(std::size_t rank);  ///< the second one

    std::vector<Context> contexts_;
    std::vector<Context> second_;  ///< beside these: what movers use
    int shards_;
    std::vector<ShardRange> parts_;
    std::vector<LevelPlan::Groups> process_levels_;
    std::unique_ptr<LevelPlan> plan_;
    std::vector<std::size_t> memory_;  ///< numbers of the ranks that share memory with this process
    bool shared_host_ = false;         ///< whether they are of several processes
    bool pins_shared_ = false;         ///< whether shared memory is made known to the driver
    std::string shared_way_;           ///< of any processes of the run
    std::string no_shared_;
    bool any_order_ = false;  ///< whether the transport adds
    std::shared_ptr<Barrier> barrier_;
    AddPair add_;
    std::shared_ptr<StepTrace> trace_;     ///< none where steps are not traced
    std::shared_ptr<ProcessGroup> group_;  ///< none where all ranks are of this process
    RankRange own_;                        ///< of this process's ranks
    std::vector<RankRange> processes_;     ///< of each process's
    std::vector<Way> ways_;
    PeerChoice peers_;
    std::vector<std::vector<std::vector<Buffers>>> buffers_;  ///< by number, group, tensor
    /// Memory that make_waiting() has made, by rank and by its place in the rank's context.
    std::vector<std::map<const void*, std::shared_ptr<PeerMemory>>> waiting_;
    /// By rank: its slice in share() without a group.
    std::vector<StagingBuffer> shared_;
    std::vector<std::int64_t> shared_size_;  ///< for how many elements there is memory
    /// By rank: when it has taken what share() gives, from memory of this object.
    std::vector<std::shared_ptr<EventImpl>> taken_;
    std::unique_ptr<PieceExchange> slices_;     ///< share() with a group: those of each process
    std::unique_ptr<PieceExchange> firsts_[2];  ///< broadcast(): parts of a tensor, in turns
    std::vector<std::size_t> turns_;            ///< by rank: parts so far
    /// Values that meetings exchange, and with a group where they lie for other processes, in
    /// turns: a rank comes to the barrier of the next meeting when it has read all values of this
    /// one.
    std::array<Values, 2> values_;
    std::unique_ptr<PieceExchange> value_pieces_[2];
    std::vector<std::unique_ptr<Started>> started_;     ///< by rank
    std::vector<std::uint64_t> small_;                  ///< by rank, as expect() says
    std::vector<std::atomic<std::uint64_t>> finished_;  ///< by rank: steps
    std::vector<StagingTensors> staging_;               ///< by rank
    std::vector<std::unique_ptr<Mover>> movers_;        ///< by rank; last, so that they end first
};

}  // namespace dlprim
