// SPDX-License-Identifier: MIT
// What modules call in inference in place of their parts: multi-head attention and a whole layer of
// a transformer's encoder, here made of PyTorch's operators. In training the modules call these
// themselves, and scaled_dot_product_attention() is PyTorch's product, softmax and product.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

namespace dlprim_torch {
namespace {

using Maybe = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

bool defined(const Maybe& tensor) {
    return tensor && tensor->defined();
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
    at::Tensor weights = at::matmul(q * scale, k.transpose(-2, -1));
    if (defined(mask)) {
        const at::Tensor places = as_weights(*mask, mask_type);
        weights = places.scalar_type() == at::kBool
                      ? weights.masked_fill(places, -std::numeric_limits<double>::infinity())
                      : weights + places;
    }
    weights = weights.softmax(-1);
    const at::Tensor joined =
        at::matmul(weights, v).transpose(1, 2).reshape({query.size(0), query.size(1), embed_dim});
    const at::Tensor out = at::linear(joined, proj_weight, proj_bias);
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

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_native_multi_head_attention", multi_head_attention);
    m.impl("_transformer_encoder_layer_fwd", encoder_layer);
}

}  // namespace
}  // namespace dlprim_torch
