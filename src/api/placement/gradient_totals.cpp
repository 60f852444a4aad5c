// SPDX-License-Identifier: MIT
// GradientTotals.
#include "api/placement/gradient_totals.hpp"

#include "train/update.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>

namespace dlprim {

namespace {

/// The gradients that the update reads, a piece a row.
Tensor gradients_of(const SolverImpl& solver) {
    NetImpl& net = *solver.shared_net;
    const Executor& executor = *net.built().executor;
    const char* const name = solver.options.accumulate > 1 ? "@accumulated" : "@gradients";
    const Tensor all = executor.tensor(executor.plan().graph.find(name));
    const std::int64_t piece = Graph::block_grain;
    return Access::tensor(net.context(), Access::buffer(all), all.byte_offset(),
                          Shape{all.shape().numel() / piece, piece}, DType::f32);
}

/// What the program makes of each tensor, one after the other. Devices work at once.
std::vector<float> results(const char* program, const std::vector<Tensor>& tensors) {
    std::vector<Tensor> made;
    made.reserve(tensors.size());
    for (const Tensor& tensor : tensors) made.push_back(ops::pointwise(program, {tensor}).at(0));
    std::vector<float> all;
    for (const Tensor& tensor : made) {
        const std::vector<float> own = tensor.to_floats();
        all.insert(all.end(), own.begin(), own.end());
    }
    return all;
}

}  // namespace

void GradientTotals::share() const {
    if (solvers_.empty() || !(norm_ || overflow_)) return;
    std::vector<Tensor> gradients;
    for (const SolverImpl* const solver : solvers_) gradients.push_back(gradients_of(*solver));
    if (norm_) share_norm(gradients);
    if (overflow_) share_overflow(gradients);
}

void GradientTotals::share_norm(const std::vector<Tensor>& gradients) const {
    const std::vector<float> pieces = results(squares_of_pieces, gradients);
    Tensor all(gradients.front().context(), Shape{static_cast<std::int64_t>(pieces.size()), 1});
    all.copy_from(pieces);
    set("@squares", ops::pointwise(sum_of_pieces, {all}).at(0).to_floats().at(0));
}

void GradientTotals::share_overflow(const std::vector<Tensor>& gradients) const {
    const std::vector<float> bad = results(find_overflow, gradients);
    set("@overflow", *std::max_element(bad.begin(), bad.end()));
}

void GradientTotals::set(const char* scalar, double value) const {
    for (SolverImpl* const solver : solvers_)
        solver->shared_net->built().executor->set_scalar(scalar, value);
}

}  // namespace dlprim
