// SPDX-License-Identifier: MIT
// Solver: trains a Net by SGD, Adam or AdamW. A step (forward, backward, update) is one plan, and
// the host does not wait within it.
//
// Methods: Adam is from Kingma and Ba 2015, AdamW from Loshchilov and Hutter 2019. Their
// definitions and constants are PyTorch's.
//
// Ownership: a Solver shares the network with its Net, and each may outlive the other. The solver's
// state lies in device memory of the network.
//
// Threads: one thread at a time, together with all nets of the context (dlprim/context.hpp).
//
// Waiting: step() enqueues work and returns. The calls below that read from the device say that
// they wait.
#pragma once

#include <dlprim/internal.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/solver_options.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace dlprim {

class SolverCore;

class Solver {
  public:
    /// Attaches to a net in training mode, and plans and compiles it. Tensors that the net handed
    /// out before are no longer its own, except parameters (dlprim/net.hpp). A net has one solver
    /// at a time: a new one starts without the state of the former, which must not be used any
    /// more. Throws Error(invalid_argument) for a net in another mode and for options out of range,
    /// and Error(unsupported) for trainable parameters that are not float.
    Solver(Net& net, const SolverOptions& options);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    const SolverOptions& options() const;
    /// Sets the rate from the next step on. Throws Error(invalid_argument) for a number that is
    /// negative or not finite.
    void set_learning_rate(double rate);
    double learning_rate() const;
    std::uint64_t steps() const;  ///< updates so far, including those that the loss scale skipped
    /// The factor of the loss, and so of the gradients that Net::gradient() shows; 1 without a loss
    /// scale, as in nets without operators of precision fp16. Waits for the device.
    double loss_scale();
    /// The tensor that holds this output of the whole batch after each later step: with S shards it
    /// has S times as many rows, those of the shards in their order, in memory of the output's
    /// device that is taken now. (Of a rank of a team, S is the number of its own shards.) Of a
    /// loss, which is a mean over the shards, and without shards it is Net::output(). Throws
    /// Error(not_found), and Error(invalid_argument) for an output without dimensions that is no
    /// loss.
    Tensor output_of_batch(const std::string& name);

    /// Enqueues forward, backward and, at every SolverOptions::accumulate-th call, the update, and
    /// returns. Throws as Net::forward() does.
    ///
    /// With SolverOptions::shards each call is for the next shard of a batch, whose inputs the net
    /// has. The call for the last one makes the update. Before it, losses and gradients are the
    /// shard's, and running statistics those of before the batch; after it all three are means over
    /// the shards. Shapes must not change within a batch. Dropout's random numbers are those of as
    /// many steps as there are shards.
    void step();
    /// Like step(), but calls `proceed` once forward is enqueued; it may read the loss, which
    /// waits. If it returns false, there is no backward and no update, and parameters, running
    /// statistics and solver state are as before the step. Returns the result of `proceed`; true if
    /// it is empty. False for a shard drops the shards of its batch before it, too: the next call
    /// is for the first shard of another batch. Not for a PlacedNet.
    bool step_if(const std::function<bool()>& proceed);
    /// For programs that read a loss only after later steps were enqueued, with
    /// SolverOptions::guard_loss: undoes the last `back` steps, 1 or 2, of which the first had a
    /// loss that was not finite. With shards, a step is here a whole batch, or the part of it that
    /// was computed. The state is then as if step_if() had been called for that one and
    /// `proceed` had returned false. Until the next step, random numbers are those of that step,
    /// for Net::first_nan(). Must not be called after a reshape() since that step. Throws
    /// Error(invalid_argument) without guard_loss, and where fewer steps were made.
    void call_off(int back);

    /// With SolverOptions::average: gives the parameters that are trained their averages, for good.
    /// Checkpoints of before hold both. Waits for the device. Throws Error(invalid_argument)
    /// without averages, or before the first update.
    void use_averages();

    /// Writes weights, solver state, step, seed, precisions and the chosen engines to one HDF5
    /// file, whole or not at all; Net::load_weights() reads it, too. `extra` holds numbers of the
    /// program's own, which load_checkpoint() returns; their names must not be empty or hold a
    /// comma. Waits for the device. Throws Error(io); Error(invalid_argument) for such a name,
    /// where parameters have no values (see Net::forward()), and between the shards of a batch.
    void save_checkpoint(const std::string& path, const std::map<std::string, double>& extra = {});
    /// Reads what save_checkpoint() wrote, the learning rate and the net's seed included, and
    /// returns its `extra`. Throws Error(not_found), Error(io), Error(format) for a file that is no
    /// checkpoint of such a net and solver, and Error(invalid_argument) where the net computes in
    /// another precision than the checkpoint's net did, or the solver has another number of shards;
    /// what() names both. If other engines are
    /// chosen, which may change the last bits, Net::notes() says so. A file without a record of
    /// precisions and engines is accepted.
    std::map<std::string, double> load_checkpoint(const std::string& path);

  private:
    friend class internal::Access;
    SolverImpl& impl() const;  ///< of a net on one device
    std::shared_ptr<SolverCore> impl_;
};

}  // namespace dlprim
