// SPDX-License-Identifier: MIT
// SolverCore: what a Solver points to: the options and the state of training, and its solvers of
// stages, each of which updates the parameters of one device. The solver of a net on one device is
// its only one (SolverImpl); that of a placed network has one for each stage that trains
// (api/placement/placed_solver_impl.hpp). Checkpoints are the same for all.
#pragma once

#include "api/net_core.hpp"
#include "formats/hdf5_file.hpp"

#include <dlprim/solver.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

class SolverCore {
  public:
    explicit SolverCore(const SolverOptions& how) : options(how), rate(how.learning_rate) {}
    virtual ~SolverCore() = default;
    SolverCore(const SolverCore&) = delete;
    SolverCore& operator=(const SolverCore&) = delete;

    const SolverOptions options;
    double rate;

    /// The solver, if its net is on one device; else null.
    virtual SolverImpl* alone() { return nullptr; }
    virtual NetCore& net() const = 0;
    virtual std::vector<SolverImpl*> solvers() = 0;  ///< of the stages that train
    /// Solver::step_if().
    virtual bool step(const std::function<bool()>& proceed) = 0;
    virtual void call_off(int back) = 0;
    virtual Tensor output_of_batch(const std::string& name) = 0;
    /// Sets random numbers to those of a shard of the step that was called off, and runs forward.
    /// As Net::first_nan().
    virtual std::string first_nan_of_shard(int shard) = 0;
    virtual int taken() const = 0;    ///< shards of a batch that lacks others
    virtual void forget_batch() = 0;  ///< drops them

    void set_rate(double value);
    std::uint64_t updates_so_far();
    /// Which of the processes that have parts of the states get a whole one. All of them call for
    /// it.
    enum class Receivers : std::uint8_t { first, all };
    /// The averages of the parameters, by name; empty without SolverOptions::average. They are the
    /// solver's own memory, or put together from parts.
    std::map<std::string, Tensor> averages(Receivers receivers);
    void use_averages();
    /// Before write_checkpoint(), to be called by all processes: puts together the states of which
    /// other processes have parts. Returns whether this is the process to write the checkpoint.
    bool gather_states();
    /// Writes what Solver::save_checkpoint() says into a file that may hold more. The caller
    /// commits it.
    void write_checkpoint(Hdf5Writer& file, const std::map<std::string, double>& extra);
    /// Reads it; of states in parts, those of this process. Whatever is wrong with the file is
    /// found before anything is changed.
    std::map<std::string, double> read_checkpoint(const Hdf5Reader& file);

  private:
    /// A state that checkpoints hold, and the solvers that have it.
    struct State {
        std::string name;
        std::vector<SolverImpl*> solvers;
    };
    std::vector<State> states();
    Shape shape_of(const State& state) const;
    std::vector<std::byte> read(const State& state) const;
    void write(const State& state, const std::vector<std::byte>& whole) const;
    /// Throws Error(format), Error(not_found) for states of another solver. Returns remarks.
    std::vector<std::string> check_states(const Hdf5Reader& file);
};

SolverCore& core_of(const Solver& solver);

}  // namespace dlprim
