// SPDX-License-Identifier: MIT
// NetImpl: a network description, its parameters' memory, and the plans made of it, one for each
// set of input shapes.
#pragma once

#include "exec/executor.hpp"
#include "graph/description.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class NetImpl {
  public:
    NetImpl(const Context& context, NetDescription description, const NetOptions& options);

    /// One plan and what is bound to it.
    struct Built {
        std::unique_ptr<Executor> executor;
        std::map<std::string, Tensor> inputs, outputs, output_gradients, gradients;
        std::map<std::string, ValueId> params;
        std::map<std::string, std::int64_t> classes;  ///< label inputs and their number of classes
        std::vector<std::pair<std::string, double>> losses;
        bool ran_forward = false;
    };

    /// What is known of a parameter before anything is planned.
    struct Param {
        Value value;
        int order = 0;
    };

    const Context& context() const { return context_; }
    const NetOptions& options() const { return options_; }
    const std::map<std::string, Param>& params() const { return params_; }
    std::vector<std::string> param_names() const;
    /// Throws Error(not_found) offering the nearest name.
    const TensorSpec& input_spec(const std::string& name) const;

    /// The current plan, made now if it has not been; parameters are initialised if nothing else
    /// has filled them.
    Built& built();
    bool is_built() const { return current_ != nullptr; }
    /// Plans anew with a solver's update.
    void attach_solver(const SolverOptions& solver);
    void reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes);

    Tensor param(const std::string& name);
    void params_changed();
    /// The seed of dropout from the next forward on.
    void set_seed(std::uint64_t seed);
    void mark_filled() { filled_ = true; }
    void initialize(std::string_view method);

    void forward();
    void backward();
    /// Where an engine fails at its first run, the net plans anew without it and goes on.
    void run(Part part);

    std::uint64_t step_count = 0;  ///< training forwards done: keys dropout

    const Graph& base_graph() const { return base_; }

  private:
    Graph make_graph() const;
    /// `before`: a plan of the same shapes, whose inputs and outputs the new one takes over.
    std::unique_ptr<Built> make_built(const Built* before = nullptr);
    std::string plan_key() const;

    Context context_;
    NetDescription description_;
    NetOptions options_;
    std::optional<SolverOptions> solver_;
    Graph base_;  ///< as described, before any pass
    std::map<std::string, Param> params_;
    BlockStore store_;
    std::map<std::string, std::unique_ptr<Built>> plans_;
    Built* current_ = nullptr;
    bool filled_ = false;
};

}  // namespace dlprim
