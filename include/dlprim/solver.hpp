// SPDX-License-Identifier: MIT
// Solver: trains a Net: SGD, Adam, AdamW. A step (forward, backward, update) is one plan and needs
// no wait; hyperparameters that change live in a device buffer.
//
// Adam: Kingma and Ba 2015; AdamW: Loshchilov and Hutter 2019; definitions and constants as
// PyTorch's.
#pragma once

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
    /// Attaches to a net in training mode; the net plans anew. One solver per net. The solver
    /// shares the network with the Net: it goes on with it when the Net is moved, and keeps it when
    /// the Net is gone.
    Solver(Net& net, const SolverOptions& options);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    const SolverOptions& options() const;
    void set_learning_rate(double rate);  ///< from the next step on
    double learning_rate() const;
    std::uint64_t steps() const;  ///< updates done, those left out by the loss scale counted
    /// What the loss, and so gradients as they lie in memory, are multiplied by now; 1 where
    /// nothing is of fp16. Waits for the device.
    double loss_scale();

    /// Enqueues forward, backward and, at every accumulate-th call, the update. Throws as
    /// Net::forward().
    void step();
    /// The same, asking `proceed` after forward has been enqueued (it may read the loss, which
    /// waits): where it returns false, parameters and solver state stay as they are. Returns what
    /// it returned.
    bool step_if(const std::function<bool()>& proceed);
    /// With options.guard_loss, where a loss of one of the last steps, read late, was not finite:
    /// as if `proceed` had returned false for the step `back` steps ago (1 the last, at most 2) and
    /// there had been none since. Random numbers are that step's until the next, for
    /// Net::first_nan(). Not across a reshape().
    void call_off(int back);

    /// Weights, solver state, step and seed, precisions and the engines chosen in one HDF5 file
    /// that load_weights() reads too. Written whole or not at all. `extra` numbers are kept beside
    /// and given back by load_checkpoint(). Throws Error(invalid_argument) where parameters have no
    /// values (see Net::forward()).
    void save_checkpoint(const std::string& path, const std::map<std::string, double>& extra = {});
    /// Throws Error(invalid_argument) that names both where the net computes in another precision
    /// than the checkpoint's did. Where engines are others, which may change the last bits,
    /// Net::notes() says so. Files of versions that recorded neither are taken as they are.
    std::map<std::string, double> load_checkpoint(const std::string& path);

  private:
    std::shared_ptr<NetImpl> net_;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
