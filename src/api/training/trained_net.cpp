// SPDX-License-Identifier: MIT
// TrainedNet and TrainedSolver: what the two kinds of networks do each in its own way.
#include "api/training/trained_net.hpp"

#include "api/net_impl.hpp"
#include "api/placement/placed_checkpoint.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"

#include <utility>

namespace dlprim {

const Graph& TrainedNet::graph() const {
    // It has one of both.
    return one_ != nullptr ? Access::impl(*one_).base_graph() : Access::impl(*placed_).graph();
}

Precision TrainedNet::precision() const {
    return placed_ != nullptr ? Access::impl(*placed_).options().precision
                              : Access::impl(*one_).options().precision;
}

Shape TrainedNet::param_shape(const std::string& name) const {
    if (one_ != nullptr) return one_->param_shape(name);
    for (const Value& value : graph().values)
        if (value.role == Role::parameter && value.name == name) return value.spec.shape;
    fail(ErrorKind::not_found, "the network has no parameter '", name, "'");
}

std::optional<LabelInput> TrainedNet::label_input(const std::string& name) const {
    const auto in = [&](NetImpl& net) -> std::optional<LabelInput> {
        const auto& known = net.built().classes;
        const auto found = known.find(name);
        return found == known.end() ? std::nullopt : std::optional(found->second);
    };
    if (one_ != nullptr) return in(Access::impl(*one_));
    PlacedNetImpl& placed = Access::impl(*placed_);
    for (const int reader : placed.readers(name))
        if (auto label = in(Access::impl(placed.part(reader)))) return label;
    return std::nullopt;
}

Tensor TrainedNet::output(const std::string& name) const {
    return one_ != nullptr ? Access::impl(*one_).output(name) : Access::impl(*placed_).output(name);
}

std::map<std::string, std::string> TrainedNet::devices_of_operators() const {
    std::map<std::string, std::string> devices;
    if (placed_ == nullptr) return devices;
    for (const PlacedNet::Part& part : placed_->parts())
        for (const std::string& name : part.operators) devices[name] = part.device;
    return devices;
}

void TrainedNet::load_weights(std::map<std::string, HostTensor> values,
                              const std::string& source) const {
    if (one_ != nullptr)
        one_->load_weights(std::move(values), source);
    else
        Access::impl(*placed_).load_values(std::move(values), source, false);
}

void TrainedNet::save_weights(const std::string& path,
                              const std::optional<Preprocessing>& how) const {
    if (placed_ != nullptr)
        Access::impl(*placed_).save_weights(path, how ? &*how : nullptr);
    else if (how)
        one_->save_weights(path, *how);
    else
        one_->save_weights(path);
}

std::uint64_t TrainedSolver::steps() const {
    return placed_ != nullptr ? placed_->steps() : one_->steps();
}

void TrainedSolver::use_averages() const {
    if (placed_ != nullptr)
        placed_->use_averages();
    else
        one_->use_averages();
}

std::map<std::string, Tensor> TrainedSolver::averages() const {
    if (one_ != nullptr) return Access::impl(*one_).averages(SolverImpl::Receivers::first);
    std::map<std::string, Tensor> all;
    for (SolverImpl* const part : training_of(Access::impl(*placed_)).solvers)
        all.merge(part->averages(SolverImpl::Receivers::first));
    return all;
}

bool TrainedSolver::gather_states() const {
    return placed_ != nullptr || Access::impl(*one_).gather_states();
}

void TrainedSolver::write_checkpoint(Hdf5Writer& file,
                                     const std::map<std::string, double>& extra) const {
    if (placed_ != nullptr)
        dlprim::write_checkpoint(file, training_of(Access::impl(*placed_)), extra);
    else
        Access::impl(*one_).write_checkpoint(file, extra);
}

std::map<std::string, double> TrainedSolver::read_checkpoint(const Hdf5Reader& file) const {
    if (placed_ != nullptr)
        return dlprim::read_checkpoint(file, training_of(Access::impl(*placed_)));
    return Access::impl(*one_).read_checkpoint(file);
}

}  // namespace dlprim
