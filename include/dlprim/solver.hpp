// SPDX-License-Identifier: MIT
// Solver: trains a Net by SGD, Adam or AdamW. A step (forward, backward, update) is one plan, and
// the host does not wait in it: hyperparameters that change lie in a device buffer.
//
// Adam: Kingma and Ba 2015; AdamW: Loshchilov and Hutter 2019; definitions and constants as
// PyTorch's.
//
// Ownership: a Solver shares the network with its Net, and each may outlive the other's handle. The
// solver's state lies in device memory of the network.
//
// Threads: as for the Net: one thread at a time, for all nets of a context together.
//
// Waiting: step() enqueues work and returns. What reads from the device waits, as the calls below
// say.
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

class Solver {
  public:
    /// Attaches to a net in training mode, which then plans anew. A net takes one solver. The
    /// solver shares the network with the Net: it follows the Net when that is moved, and keeps the
    /// network alive when the Net is gone. Throws Error(invalid_argument) for a net in another
    /// mode, for one that has a solver, and for options out of range.
    Solver(Net& net, const SolverOptions& options);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    const SolverOptions& options() const;
    void set_learning_rate(double rate);  ///< from the next step on
    double learning_rate() const;
    std::uint64_t steps() const;  ///< updates so far, including those that the loss scale skipped
    /// The factor on the loss, and so on gradients in memory; 1 where nothing is of precision fp16.
    /// Waits for the device.
    double loss_scale();

    /// Enqueues forward, backward and, at every SolverOptions::accumulate-th call, the update, and
    /// returns. Throws as Net::forward() does.
    void step();
    /// Like step(), but calls `proceed` once forward is enqueued; it may read the loss, which
    /// waits. If it returns false, parameters and solver state stay as they are. Returns its
    /// result.
    bool step_if(const std::function<bool()>& proceed);
    /// For programs that read losses late, with SolverOptions::guard_loss: undoes the steps since a
    /// loss that was not finite. The state is then as if `proceed` had returned false in the step
    /// `back` steps ago (1 is the last one, 2 the most) and no step had followed. Until the next
    /// step, random numbers are those of that step, for Net::first_nan(). Not across a reshape().
    void call_off(int back);

    /// Writes weights, solver state, step, seed, precisions and the chosen engines to one HDF5
    /// file, whole or not at all; Net::load_weights() reads it, too. `extra` holds numbers of the
    /// program's, which load_checkpoint() returns. Waits for the device. Throws Error(io);
    /// Error(invalid_argument) where parameters have no values (see Net::forward()).
    void save_checkpoint(const std::string& path, const std::map<std::string, double>& extra = {});
    /// Reads what save_checkpoint() wrote, and returns its `extra`. Throws Error(invalid_argument)
    /// where the net computes in another precision than the checkpoint's net did, and names both.
    /// If other engines are chosen, which may change the last bits, Net::notes() says so. Files of
    /// versions that recorded neither are accepted.
    std::map<std::string, double> load_checkpoint(const std::string& path);

  private:
    std::shared_ptr<NetImpl> net_;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
