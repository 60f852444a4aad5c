// SPDX-License-Identifier: MIT
// Collectives: collective operations of ranks on tensors of their devices, over any Channel. A
// tensor moves in chunks, several of which are under way at once. Of an all_reduce a rank sends
// chunk i in one step, and in the same step adds up its slice of chunk i - 1, publishes that of
// chunk i - 2 and takes the other slices of chunk i - 3, so that copies in both directions and
// additions run at once:
//
//     chunk              0        1        2        3
//     send               step 0   step 1   step 2   step 3     all but its own slice
//     add its own slice           step 1   step 2   step 3     of all ranks, as OrderedSum does
//     publish that                         step 2   step 3
//     take the others'                              step 3
//
// All ranks have to call the same. Each first writes what it calls as a note, and where these
// differ, all throw.
//
// Threads: one at a time.
#pragma once

#include "collective/communicator/channel.hpp"
#include "collective/processes/level_plan.hpp"

#include <dlprim/error.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// How elements of several ranks become one. All that is enqueued is on the tensors' context.
struct RankReduction {
    /// out = a op b; `out` may be one of them.
    std::function<void(const Tensor& a, const Tensor& b, const Tensor& out)> combine;
    /// Changes the result of all ranks; may be empty.
    std::function<void(const Tensor& result)> complete;
};

class Collectives {
  public:
    using Deadline = Channel::Deadline;
    /// What all ranks throw where their calls differ.
    class Mismatch : public Error {
      public:
        explicit Mismatch(const std::string& text) : Error(ErrorKind::invalid_argument, text) {}
    };
    explicit Collectives(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
    Channel& channel() const { return *channel_; }

    // `call` says what is called: in messages its first line, and the second one where that does
    // not tell calls of ranks apart. Tensors are row-major and of one context.

    void barrier(const std::string& call, Deadline deadline);
    /// Puts the result into the tensors of all ranks, or of the root alone: -1 is none.
    void all_reduce(const Tensor& tensor, const RankReduction& reduction, int root,
                    const std::string& call, Deadline deadline);
    /// Puts the result of parts[rank] of all ranks into `out`. Parts stay as they are.
    void reduce_scatter(const std::vector<Tensor>& parts, const Tensor& out,
                        const RankReduction& reduction, const std::string& call, Deadline deadline);
    void broadcast(const Tensor& tensor, std::size_t root, const std::string& call,
                   Deadline deadline);
    void all_gather(const Tensor& own, const std::vector<Tensor>& all, const std::string& call,
                    Deadline deadline);
    /// Puts inputs[q] of rank p into outputs[p] of rank q. Tensors are bytes of the context;
    /// undefined ones are none.
    void all_to_all(const Context& context, const std::vector<Tensor>& inputs,
                    const std::vector<Tensor>& outputs, const std::string& call, Deadline deadline);

  private:
    /// A tensor cut in chunks, which all ranks cut alike, and a chunk in slices.
    struct Cut {
        std::int64_t elements = 0, each = 1, chunks = 0;
        std::uint64_t size = 1;  ///< bytes of an element
        std::size_t ranks = 1;
        /// `most`: bytes of a chunk.
        Cut(const Tensor& tensor, std::size_t parts, std::uint64_t most = Channel::chunk_bytes);
        ElementRange chunk(std::int64_t index) const;
        ElementRange slice(std::int64_t index, std::size_t rank) const;
        /// How far a range begins behind its chunk, and its length, in bytes.
        std::uint64_t offset(std::int64_t index, const ElementRange& range) const {
            return bytes({chunk(index).begin, range.begin});
        }
        std::uint64_t bytes(const ElementRange& range) const {
            return static_cast<std::uint64_t>(range.size()) * size;
        }
        bool has(std::int64_t index) const { return index >= 0 && index < chunks; }
    };
    CopyQueues& queues(const Context& context);
    /// Throws Mismatch, in all ranks, unless all call the same.
    void agree(const std::string& call, Deadline deadline);
    /// Makes so many steps: `work(queues, i)` enqueues what is done in step i.
    void run(const Context& context, std::int64_t steps, Deadline deadline,
             const std::function<void(CopyQueues& queues, std::int64_t step)>& work);
    /// Reduces elements of all ranks to `out`. They lie in the chunks of the step before from a
    /// byte on, except for this rank's, if `own` has them, which is overwritten.
    void reduce(CopyQueues& queues, std::uint64_t begin, const Tensor& own, const Tensor& out,
                const RankReduction& reduction) const;
    /// Gives `own` to all other ranks, and takes all[q] from rank q. Either may be undefined, where
    /// nothing is given or taken. Tensors are of the context, and cut alike.
    void gather(const Context& context, const Cut& cut, const Tensor& own,
                const std::vector<Tensor>& all, const std::string& call, Deadline deadline);
    /// Sends to each other rank what of a chunk it adds.
    void send_slices(const Cut& cut, std::int64_t index, const Tensor& whole);
    /// Sends its slice of the result to all ranks, or to the root.
    void send_result(const Cut& cut, std::int64_t index, const Tensor& whole, int root);
    /// Sends a part to each rank, and takes such parts: of `bytes(p, q)` each, in places of
    /// `most` bytes.
    void send_parts(std::uint64_t most,
                    const std::function<std::uint64_t(std::size_t from, std::size_t to)>& bytes);
    /// How many bytes each rank sends to each, by sender and receiver. Throws Mismatch where
    /// another number is expected.
    std::vector<std::vector<std::uint64_t>> exchange_sizes(const std::vector<Tensor>& inputs,
                                                           const std::vector<Tensor>& outputs,
                                                           Deadline deadline);

    std::unique_ptr<Channel> channel_;
    struct Opened {
        Context context;  ///< kept, so that its key is not used again
        std::unique_ptr<CopyQueues> queues;
    };
    std::map<const void*, Opened> opened_;
};

}  // namespace dlprim
