// SPDX-License-Identifier: MIT
// Draws of positions: by their weights, and all in a random order. Nothing waits: weights that are
// no probabilities are an error of the next wait, as an index out of range is.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <optional>

namespace dlprim_torch {
namespace {

using Generator = std::optional<at::Generator>;

/// Has the next wait throw where a row of weights is not one of probabilities: the kernel that
/// reads a single number finds an index out of range, which stands for the sentence
/// (device/errors.hpp).
void refuse_later(const at::Tensor& weights) {
    std::vector<std::int64_t> sizes = weights.sizes().vec();
    sizes.back() = 1;
    const at::TensorOptions options = weights.options();
    const at::Tensor valid = at::empty(sizes, options), most = at::empty(sizes, options);
    pointwise_into({valid, most}, "y0 = min[-1](x0 >= 0 && !isinf(x0)); y1 = max[-1](x0)",
                   {weights});
    const at::Tensor index = at::empty(sizes, options.dtype(at::kLong));
    pointwise_into({index}, "y0 = x0 == 0 ? p0 : x1 > 0 ? 0 : p1", {valid, most},
                   {static_cast<double>(index_of(Refusal::probabilities)),
                    static_cast<double>(index_of(Refusal::distribution))});
    results_of(dp::ops::Gather{}, {view_of(at::zeros({1}, options)), view_of(index.view({-1}))});
}

/// Each weight over an exponential number: the largest of these are a draw without replacement.
at::Tensor drawn_once(const at::Tensor& weights, std::int64_t count, const Generator& generator) {
    const at::Tensor races = weights / at::empty_like(weights).exponential_(1, generator);
    if (count == 1) return races.argmax(-1, true);
    return std::get<1>(at::topk(races, count, -1));
}

/// Where numbers below the sum of all weights lie in the weights' running sums.
at::Tensor drawn_again(const at::Tensor& weights, std::int64_t count, const Generator& generator) {
    const at::Tensor sums = weights.cumsum(-1);
    std::vector<std::int64_t> sizes = weights.sizes().vec();
    sizes.back() = count;
    const at::Tensor numbers = at::rand(sizes, generator, weights.options());
    const at::Tensor below = at::empty_like(numbers);
    // A product that is rounded up to the sum would be a position behind the last.
    pointwise_into({below}, "v = x0 * x1; y0 = v < x1 ? v : 0",
                   {numbers, sums.narrow(-1, weights.size(-1) - 1, 1)});
    return count_below(sums, below, true).clamp_max(weights.size(-1) - 1);
}

at::Tensor multinomial(const at::Tensor& self, c10::SymInt symbolic, bool replacement,
                       Generator generator) {
    const std::int64_t count = symbolic.expect_int();
    TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
    TORCH_CHECK(
        self.is_floating_point(),
        "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
    TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
    TORCH_CHECK(replacement || count <= self.size(-1),
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    const c10::DeviceGuard guard(self.device());
    if (self.numel() == 0) {
        std::vector<std::int64_t> sizes = self.sizes().vec();
        sizes.back() = count;
        return at::empty(sizes, self.options().dtype(at::kLong));
    }
    // Half types would lose small weights in the sums of many.
    const at::Tensor weights = self.element_size() == 2 ? self.to(at::kFloat) : self.contiguous();
    refuse_later(weights);
    return replacement && count > 1 ? drawn_again(weights, count, generator)
                                    : drawn_once(weights, count, generator);
}

at::Tensor& multinomial_out(const at::Tensor& self, c10::SymInt count, bool replacement,
                            Generator generator, at::Tensor& out) {
    TORCH_CHECK(out.scalar_type() == at::kLong,
                "multinomial expects Long tensor out, got: ", out.scalar_type());
    bring(out, multinomial(self, std::move(count), replacement, std::move(generator)));
    return out;
}

/// The order in which random numbers of 63 bits are sorted.
at::Tensor& randperm_out(c10::SymInt symbolic, Generator generator, at::Tensor& out) {
    const std::int64_t count = symbolic.expect_int();
    TORCH_CHECK(count >= 0, "n must be non-negative, got", count);
    const c10::DeviceGuard guard(out.device());
    at::native::resize_output(out, {count});
    if (count == 0) return out;
    const at::Tensor keys = at::empty({count}, out.options().dtype(at::kLong)).random_(generator);
    return out.copy_(std::get<1>(at::sort(keys)));
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("multinomial", multinomial);
    m.impl("multinomial.out", multinomial_out);
    m.impl("randperm.generator_out", randperm_out);
}

}  // namespace
}  // namespace dlprim_torch
