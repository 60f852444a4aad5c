// SPDX-License-Identifier: MIT
// TrainedNet and TrainedSolver: what a run trains, which is a Net with its Solver, or a PlacedNet
// with its PlacedSolver. They point to these, and own nothing. Only what both can do is here.
#pragma once

#include "api/label_inputs.hpp"
#include "formats/hdf5_file.hpp"
#include "graph/graph.hpp"

#include <dlprim/net.hpp>
#include <dlprim/placed_net.hpp>
#include <dlprim/preprocessing.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

class TrainedNet {
    template <typename Call>
    auto of(Call call) const {
        return placed_ != nullptr ? call(*placed_) : call(*one_);
    }

  public:
    TrainedNet(Net& net) : one_(&net) {}           // NOLINT(google-explicit-constructor)
    TrainedNet(PlacedNet& net) : placed_(&net) {}  // NOLINT(google-explicit-constructor)

    // As those of a Net.
    std::vector<std::string> input_names() const {
        return of([](auto& net) { return net.input_names(); });
    }
    std::vector<std::string> output_names() const {
        return of([](auto& net) { return net.output_names(); });
    }
    std::vector<std::string> loss_names() const {
        return of([](auto& net) { return net.loss_names(); });
    }
    std::vector<std::string> param_names() const {
        return of([](auto& net) { return net.param_names(); });
    }
    bool is_trainable(const std::string& param) const {
        return of([&](auto& net) { return net.is_trainable(param); });
    }
    Shape input_shape(const std::string& name) const {
        return of([&](auto& net) { return net.input_shape(name); });
    }
    DType input_dtype(const std::string& name) const {
        return of([&](auto& net) { return net.input_dtype(name); });
    }
    std::int64_t label_classes(const std::string& name) const {
        return of([&](auto& net) { return net.label_classes(name); });
    }
    /// Also before it has values.
    Tensor output(const std::string& name) const;
    Tensor param(const std::string& name) const {
        return of([&](auto& net) { return net.param(name); });
    }
    void set_input(const std::string& name, const void* data, std::uint64_t bytes) const {
        of([&](auto& net) { net.set_input(name, data, bytes); });
    }
    void initialize(std::string_view method) const {
        of([&](auto& net) { net.initialize(method); });
    }
    void load_weights(const std::string& path) const {
        of([&](auto& net) { net.load_weights(path); });
    }
    void params_changed() const {
        of([](auto& net) { net.params_changed(); });
    }
    void forward() const {
        of([](auto& net) { net.forward(); });
    }
    std::vector<std::string> notes() const {
        return of([](auto& net) { return net.notes(); });
    }

    /// Before any pass.
    const Graph& graph() const;
    Precision precision() const;  ///< NetOptions::precision
    Shape param_shape(const std::string& name) const;
    /// What the labels may be, if the input holds labels. Plans the net.
    std::optional<LabelInput> label_input(const std::string& name) const;
    /// By operator, of a placed network; else empty.
    std::map<std::string, std::string> devices_of_operators() const;
    /// Sets all parameters; `source` names the values in messages.
    void load_weights(std::map<std::string, HostTensor> values, const std::string& source) const;
    /// With the preprocessing, if there is one.
    void save_weights(const std::string& path, const std::optional<Preprocessing>& how) const;

  private:
    Net* one_ = nullptr;
    PlacedNet* placed_ = nullptr;
};

class TrainedSolver {
  public:
    TrainedSolver(Solver& solver) : one_(&solver) {}  // NOLINT(google-explicit-constructor)
    TrainedSolver(PlacedSolver& solver)
        : placed_(&solver) {}  // NOLINT(google-explicit-constructor)

    std::uint64_t steps() const;
    void use_averages() const;
    /// As those of a SolverImpl, for the first process of several.
    std::map<std::string, Tensor> averages() const;
    bool gather_states() const;
    void write_checkpoint(Hdf5Writer& file, const std::map<std::string, double>& extra) const;
    std::map<std::string, double> read_checkpoint(const Hdf5Reader& file) const;

  private:
    Solver* one_ = nullptr;
    PlacedSolver* placed_ = nullptr;
};

}  // namespace dlprim
