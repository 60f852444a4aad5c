// SPDX-License-Identifier: MIT
// scaled_dot_product_attention(), and what modules call in inference in place of their parts:
// multi-head attention and a whole layer of a transformer's encoder, here made of PyTorch's
// operators. In training the modules call these themselves.
#include "device/devices.hpp"
#include "device/generator.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace dlprim_torch {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;

bool shares_heads(const at::Tensor& query, const at::Tensor& key) {
    return query.dim() >= 3 && query.size(-3) != key.size(-3);
}

bool is_same_but_heads(const at::Tensor& a, const at::Tensor& b) {
    return a.dim() == b.dim() && a.scalar_type() == b.scalar_type() &&
           (a.dim() < 4 || a.sizes().slice(0, a.dim() - 3) == b.sizes().slice(0, b.dim() - 3));
}

/// Whether Attention computes it, or PyTorch's product, softmax and product. On CPUs the latter
/// keeps the weights for backward, which Attention would compute again.
bool is_fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
              const Maybe& mask, std::optional<double> scale, bool enable_gqa) {
    const dp::Traits& device = context(query.device().index()).traits();
    const at::ScalarType type = query.scalar_type();
    if (device.wide_vectors || device.host || scale.value_or(1) <= 0) return false;
    if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) return false;
    if (defined(mask) && mask->requires_grad()) return false;
    if (query.numel() == 0 || key.numel() == 0 || value.numel() == 0) return false;
    // While PyTorch traces a graph, it knows the result's layout only where there is a batch.
    if (query.dim() != 4 && query.unsafeGetTensorImpl()->is_python_dispatch()) return false;
    return is_same_but_heads(query, key) && is_same_but_heads(key, value) &&
           !shares_heads(key, value) && (enable_gqa || !shares_heads(query, key));
}

/// Which elements of a mask mean what: 0 is [queries, keys] for all, 1 is [batch, keys], and 2 has
/// the shape of the weights or can be broadcast to it.
at::Tensor as_weights(const at::Tensor& mask, std::optional<std::int64_t> type) {
    if (type == 1 && mask.dim() == 2) return mask.unsqueeze(1).unsqueeze(1);
    return mask;
}

/// The projections of query, key and value, each [batch, heads, length, features].
std::array<at::Tensor, 3> project(const std::array<const at::Tensor*, 3>& inputs,
                                  const at::Tensor& weight, const at::Tensor& bias,
                                  std::int64_t heads) {
    const auto by_heads = [&](const at::Tensor& all) {
        return all.view({all.size(0), all.size(1), heads, all.size(2) / heads}).transpose(1, 2);
    };
    std::array<at::Tensor, 3> made;
    if (inputs[0]->is_same(*inputs[1]) && inputs[1]->is_same(*inputs[2])) {
        const std::vector<at::Tensor> parts = at::linear(*inputs[0], weight, bias).chunk(3, -1);
        for (std::size_t i = 0; i < 3; ++i) made[i] = by_heads(parts[i]);
        return made;
    }
    const std::vector<at::Tensor> weights = weight.chunk(3), biases = bias.chunk(3);
    for (std::size_t i = 0; i < 3; ++i)
        made[i] = by_heads(at::linear(*inputs[i], weights[i], biases[i]));
    return made;
}

Two multi_head_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         std::int64_t embed_dim, std::int64_t heads, const at::Tensor& qkv_weight,
                         const at::Tensor& qkv_bias, const at::Tensor& proj_weight,
                         const at::Tensor& proj_bias, const Maybe& mask, bool need_weights,
                         bool average_weights, std::optional<std::int64_t> mask_type) {
    TORCH_CHECK(query.dim() == 3 && query.size(2) == embed_dim,
                "Multi-head attention needs a query [batch, length, ", embed_dim, "], not ",
                query.sizes());
    TORCH_CHECK(heads > 0 && embed_dim % heads == 0,
                "`embed_dim` must divide evenly by `num_heads`, not ", embed_dim, " by ", heads);
    const c10::DeviceGuard guard(query.device());
    const auto [q, k, v] = project({&query, &key, &value}, qkv_weight, qkv_bias, heads);
    const double scale = 1 / std::sqrt(static_cast<double>(embed_dim / heads));
    const auto projected = [&](const at::Tensor& heads_of) {
        return at::linear(
            heads_of.transpose(1, 2).reshape({query.size(0), query.size(1), embed_dim}),
            proj_weight, proj_bias);
    };
    if (!need_weights && is_fused(q, k, v, mask, scale, false)) {
        Maybe places;
        if (defined(mask)) {
            places = as_weights(*mask, mask_type);
            if (places->scalar_type() == at::kBool) places = places->logical_not();
        }
        return {projected(at::scaled_dot_product_attention(q, k, v, places)), at::Tensor()};
    }
    at::Tensor weights = at::matmul(q * scale, k.transpose(-2, -1));
    if (defined(mask)) {
        const at::Tensor places = as_weights(*mask, mask_type);
        weights = places.scalar_type() == at::kBool
                      ? weights.masked_fill(places, -std::numeric_limits<double>::infinity())
                      : weights + places;
    }
    weights = weights.softmax(-1);
    const at::Tensor out = projected(at::matmul(weights, v));
    if (!need_weights) return {out, at::Tensor()};
    return {out, average_weights ? weights.mean(1) : weights};
}

at::Tensor encoder_layer(const at::Tensor& src, std::int64_t embed_dim, std::int64_t heads,
                         const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                         const at::Tensor& proj_weight, const at::Tensor& proj_bias, bool use_gelu,
                         bool norm_first, double eps, const at::Tensor& norm_weight_1,
                         const at::Tensor& norm_bias_1, const at::Tensor& norm_weight_2,
                         const at::Tensor& norm_bias_2, const at::Tensor& ffn_weight_1,
                         const at::Tensor& ffn_bias_1, const at::Tensor& ffn_weight_2,
                         const at::Tensor& ffn_bias_2, const Maybe& mask,
                         std::optional<std::int64_t> mask_type) {
    const auto attend = [&](const at::Tensor& x) {
        return std::get<0>(multi_head_attention(x, x, x, embed_dim, heads, qkv_weight, qkv_bias,
                                                proj_weight, proj_bias, mask, false, true,
                                                mask_type));
    };
    const auto feed = [&](const at::Tensor& x) {
        const at::Tensor inner = at::linear(x, ffn_weight_1, ffn_bias_1);
        return at::linear(use_gelu ? at::gelu(inner) : at::relu(inner), ffn_weight_2, ffn_bias_2);
    };
    const auto norm = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
        return at::layer_norm(x, {embed_dim}, weight, bias, eps);
    };
    if (norm_first) {
        const at::Tensor x = src + attend(norm(src, norm_weight_1, norm_bias_1));
        return x + feed(norm(x, norm_weight_2, norm_bias_2));
    }
    const at::Tensor x = norm(src + attend(src), norm_weight_1, norm_bias_1);
    return norm(x + feed(x), norm_weight_2, norm_bias_2);
}

std::int64_t choose_fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const Maybe& mask, double /*dropout*/, bool /*is_causal*/,
                          std::optional<double> scale, bool enable_gqa) {
    return static_cast<std::int64_t>(is_fused(query, key, value, mask, scale, enable_gqa)
                                         ? at::SDPBackend::overrideable
                                         : at::SDPBackend::math);
}

dp::ops::Attention attention_of(const at::Tensor& query, const at::Tensor& key, double dropout,
                                bool is_causal, std::optional<double> scale) {
    dp::ops::Attention options;
    options.scale = scale.value_or(0);
    options.is_causal = is_causal;
    options.enable_gqa = shares_heads(query, key);
    options.dropout_p = dropout;
    options.stream = 0;
    return options;
}

std::vector<dp::Tensor> views_of(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const at::Tensor& mask) {
    std::vector<dp::Tensor> views{view_of(query), view_of(key), view_of(value)};
    if (mask.defined()) views.push_back(view_of(mask));
    return views;
}

dp::ops::CallOptions in_precision_of(const at::Tensor& query) {
    dp::ops::CallOptions how;
    how.precision = precision_of(query.scalar_type());
    return how;
}

/// The keys of a call's random numbers, as tensors of the host.
Two drawn_keys(const at::Tensor& query) {
    const auto as_tensor = [](std::uint64_t key) {
        return at::scalar_tensor(static_cast<std::int64_t>(key), at::TensorOptions(at::kLong));
    };
    const auto [seed, step] = draw(std::nullopt, query.device().index());
    return {as_tensor(seed), as_tensor(step)};
}

dp::ops::CallOptions with_keys(dp::ops::CallOptions how, double dropout, const at::Tensor& seed,
                               const at::Tensor& step) {
    if (dropout == 0) return how;
    how.training = true;
    how.seed = static_cast<std::uint64_t>(seed.item<std::int64_t>());
    how.step = static_cast<std::uint64_t>(step.item<std::int64_t>());
    return how;
}

/// A new tensor of heads in the order in which `like` lies, as PyTorch's own rule for tracing says.
/// What read the old one as rows of a projection, and what made it, then needs no copy of the new.
at::Tensor heads_like(const at::Tensor& like, at::IntArrayRef sizes) {
    if (sizes == like.sizes()) return at::empty_like(like);
    const auto dims = static_cast<std::size_t>(like.dim());
    std::vector<std::int64_t> order(dims), place(dims), in_order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return like.stride(a) > like.stride(b);
    });
    for (std::size_t i = 0; i < dims; ++i) {
        place[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
        in_order[i] = sizes[static_cast<std::size_t>(order[i])];
    }
    return at::empty(in_order, like.options()).permute(place);
}

using Fused = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt,
                         at::Tensor, at::Tensor, at::Tensor>;

/// The logarithms of sums, which are the second result, stay empty: backward computes them again.
/// It draws the same random numbers for dropout by the keys among the results.
Fused fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const Maybe& mask, double dropout, bool is_causal, bool /*debug*/,
                      std::optional<double> scale) {
    const c10::DeviceGuard guard(query.device());
    std::vector<std::int64_t> sizes = query.sizes().vec();
    sizes.back() = value.size(-1);
    const at::Tensor out = heads_like(query, sizes);
    const at::Tensor none = at::empty({0}, query.options().dtype(at::kFloat));
    at::Tensor seed = none, step = none;
    if (dropout > 0) std::tie(seed, step) = drawn_keys(query);
    call_into({out}, attention_of(query, key, dropout, is_causal, scale),
              views_of(query, key, value, mask.value_or(at::Tensor())), {},
              with_keys(in_precision_of(query), dropout, seed, step));
    return {out, none, none, none, query.size(-2), key.size(-2), seed, step, none};
}

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Four fused_attention_backward(const at::Tensor& dy, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& mask,
                              std::array<bool, 4> wanted, const at::Tensor& /*out*/,
                              const at::Tensor& /*logsumexp*/, const at::Tensor& /*cum_seq_q*/,
                              const at::Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/,
                              c10::SymInt /*max_k*/, double dropout, bool is_causal,
                              const at::Tensor& seed, const at::Tensor& step,
                              std::optional<double> scale) {
    const c10::DeviceGuard guard(query.device());
    dp::ops::CallOptions how = with_keys(in_precision_of(query), dropout, seed, step);
    const std::vector<dp::Tensor> inputs = views_of(query, key, value, mask);
    how.wanted.assign(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    std::array<at::Tensor, 4> gradients;
    how.out.resize(inputs.size());
    for (std::size_t i = 0; const at::Tensor* const given : {&query, &key, &value}) {
        const at::Tensor place = heads_like(*given, given->sizes());
        if (wanted[i] && !place.is_contiguous()) how.out[i] = view_of(gradients[i] = place);
        ++i;
    }
    const std::vector<dp::Tensor> made = gradients_of(
        attention_of(query, key, dropout, is_causal, scale), inputs, {}, {view_of(dy)}, how);
    for (std::size_t i = 0; i < made.size(); ++i)
        if (wanted[i] && made[i].defined() && !gradients[i].defined())
            gradients[i] = new_tensor(made[i], query.device());
    return {gradients[0], gradients[1], gradients[2], gradients[3]};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_scaled_dot_product_fused_attention_overrideable", fused_attention);
    m.impl("_scaled_dot_product_fused_attention_overrideable_backward", fused_attention_backward);
    m.impl("_native_multi_head_attention", multi_head_attention);
    m.impl("_transformer_encoder_layer_fwd", encoder_layer);
}

}  // namespace
}  // namespace dlprim_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &dlprim_torch::choose_fused)
}  // namespace at::native
