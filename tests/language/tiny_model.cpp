// SPDX-License-Identifier: MIT
// TinyLlama: the reference follows the definition, one loop for each sum.
#include "tiny_model.hpp"

#include "base/blocks.hpp"
#include "check/fill.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace dlprim::testing {

namespace {

constexpr double epsilon = 1e-5, rotary_base = 1000;

std::size_t at(std::int64_t index) {
    return static_cast<std::size_t>(index);
}

}  // namespace

TinyLlama::TinyLlama(const TinySizes& sizes, unsigned seed) : sizes_(sizes), seed_(seed) {
    const std::int64_t q = sizes.heads * sizes.head_size, k = sizes.key_heads * sizes.head_size;
    add("token_embd.weight", {sizes.vocabulary, sizes.width}, 1);
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
        const std::string layer = "blk." + std::to_string(i) + ".";
        add(layer + "attn_norm.weight", {sizes.width}, 0.2, 1);
        add(layer + "attn_q.weight", {q, sizes.width}, 0.3);
        add(layer + "attn_k.weight", {k, sizes.width}, 0.3);
        add(layer + "attn_v.weight", {k, sizes.width}, 0.3);
        if (sizes.biases) {
            add(layer + "attn_q.bias", {q}, 0.5);
            add(layer + "attn_k.bias", {k}, 0.5);
            add(layer + "attn_v.bias", {k}, 0.5);
        }
        if (sizes.head_norms) {
            add(layer + "attn_q_norm.weight", {sizes.head_size}, 0.2, 1);
            add(layer + "attn_k_norm.weight", {sizes.head_size}, 0.2, 1);
        }
        add(layer + "attn_output.weight", {sizes.width, q}, 0.3);
        add(layer + "ffn_norm.weight", {sizes.width}, 0.2, 1);
        add(layer + "ffn_gate.weight", {sizes.hidden, sizes.width}, 0.3);
        add(layer + "ffn_up.weight", {sizes.hidden, sizes.width}, 0.3);
        add(layer + "ffn_down.weight", {sizes.width, sizes.hidden}, 0.3);
    }
    add("output_norm.weight", {sizes.width}, 0.2, 1);
    if (!sizes.tied) add("output.weight", {sizes.vocabulary, sizes.width}, 1);
}

void TinyLlama::add(const std::string& name, std::vector<std::int64_t> shape, double deviation,
                    double mean) {
    Weight& weight = weights_[name];
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    weight.sizes.assign(shape.rbegin(), shape.rend());
    std::mt19937 random(seed_++);
    if (!sizes_.blocks.empty() && shape.size() == 2) {
        const GgufType& type = block_type(sizes_.blocks);
        const Shape bytes = block_shape(type, shape[0], shape[1]);
        weight.blocks = random_blocks(type, at(bytes.numel()), random, deviation);
        weight.values = unpack_blocks(type, weight.blocks);
        return;
    }
    std::normal_distribution<float> normal(static_cast<float>(mean), static_cast<float>(deviation));
    for (std::int64_t i = 0; i < count; ++i) weight.values.push_back(normal(random));
}

GgufWriter TinyLlama::writer() const {
    GgufWriter writer;
    const auto size = [&](const std::string& name, std::int64_t value) {
        writer.key(sizes_.architecture + "." + name, static_cast<std::uint32_t>(value));
    };
    writer.key("general.architecture", sizes_.architecture);
    size("block_count", sizes_.layers);
    size("embedding_length", sizes_.width);
    size("feed_forward_length", sizes_.hidden);
    size("context_length", sizes_.context);
    size("attention.head_count", sizes_.heads);
    size("attention.head_count_kv", sizes_.key_heads);
    size("attention.key_length", sizes_.head_size);
    writer.key(sizes_.architecture + ".attention.layer_norm_rms_epsilon",
               static_cast<float>(epsilon));
    writer.key(sizes_.architecture + ".rope.freq_base", static_cast<float>(rotary_base));
    for (const auto& [name, weight] : weights_) {
        if (weight.blocks.empty())
            writer.tensor(name, weight.sizes, weight.values);
        else
            writer.tensor(
                name, weight.sizes, block_type(sizes_.blocks).code,
                {reinterpret_cast<const char*>(weight.blocks.data()), weight.blocks.size()});
    }
    return writer;
}

TinyLlama::Rows TinyLlama::product(const Rows& x, const std::string& name) const {
    const Weight& weight = weights_.at(name + ".weight");
    const std::size_t inputs = weight.sizes[0], outputs = weight.sizes[1];
    const auto bias = weights_.find(name + ".bias");
    Rows y(x.size(), std::vector<double>(outputs));
    for (std::size_t row = 0; row < x.size(); ++row)
        for (std::size_t o = 0; o < outputs; ++o) {
            double sum = bias == weights_.end() ? 0 : bias->second.values[o];
            for (std::size_t i = 0; i < inputs; ++i)
                sum += x[row][i] * weight.values[o * inputs + i];
            y[row][o] = sum;
        }
    return y;
}

TinyLlama::Rows TinyLlama::norm(const Rows& x, const std::string& name) const {
    const std::vector<float>& weight = weights_.at(name + ".weight").values;
    Rows y = x;
    for (std::vector<double>& row : y) {
        double squares = 0;
        for (const double value : row) squares += value * value;
        const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) +
                                           static_cast<double>(static_cast<float>(epsilon)));
        for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * weight[i];
    }
    return y;
}

void TinyLlama::norm_heads(Rows& x, const std::string& name) const {
    if (!sizes_.head_norms) return;
    const auto size = static_cast<std::ptrdiff_t>(sizes_.head_size);
    for (std::vector<double>& row : x)
        for (auto head = row.begin(); head != row.end(); head += size) {
            const Rows normed = norm({std::vector<double>(head, head + size)}, name);
            std::copy(normed[0].begin(), normed[0].end(), head);
        }
}

/// Turns pairs of features of each head by an angle that grows with the row's number.
void TinyLlama::turn(Rows& x) const {
    const std::size_t size = at(sizes_.head_size);
    const bool neighbours = sizes_.architecture == "llama";
    for (std::size_t position = 0; position < x.size(); ++position)
        for (std::size_t i = 0; i < x[position].size() / 2; ++i) {
            const std::size_t head = i / (size / 2) * size, pair = i % (size / 2);
            const double angle =
                static_cast<double>(position) *
                std::pow(rotary_base, -2.0 * static_cast<double>(pair) / static_cast<double>(size));
            double& a = x[position][head + (neighbours ? 2 * pair : pair)];
            double& b = x[position][head + (neighbours ? 2 * pair + 1 : pair + size / 2)];
            const double turned = a * std::cos(angle) - b * std::sin(angle);
            b = a * std::sin(angle) + b * std::cos(angle);
            a = turned;
        }
}

TinyLlama::Rows TinyLlama::attention(const Rows& q, const Rows& k, const Rows& v) const {
    const std::size_t d = at(sizes_.head_size), group = at(sizes_.heads / sizes_.key_heads);
    Rows y(q.size(), std::vector<double>(q[0].size()));
    for (std::size_t row = 0; row < q.size(); ++row)
        for (std::size_t head = 0; head < at(sizes_.heads); ++head) {
            const std::size_t from = head * d, of = head / group * d;
            std::vector<double> weights;
            double total = 0;
            for (std::size_t other = 0; other <= row; ++other) {
                double score = 0;
                for (std::size_t i = 0; i < d; ++i) score += q[row][from + i] * k[other][of + i];
                weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
                total += weights.back();
            }
            for (std::size_t other = 0; other <= row; ++other)
                for (std::size_t i = 0; i < d; ++i)
                    y[row][from + i] += weights[other] / total * v[other][of + i];
        }
    return y;
}

std::vector<std::vector<double>> TinyLlama::logits(const std::vector<std::int32_t>& tokens) const {
    const std::vector<float>& table = weights_.at("token_embd.weight").values;
    const auto width = static_cast<std::ptrdiff_t>(sizes_.width);
    Rows x;
    for (const std::int32_t token : tokens)
        x.emplace_back(table.begin() + token * width, table.begin() + (token + 1) * width);
    const auto add_to = [](Rows& to, const Rows& more) {
        for (std::size_t row = 0; row < to.size(); ++row)
            for (std::size_t i = 0; i < to[row].size(); ++i) to[row][i] += more[row][i];
    };
    for (std::int64_t i = 0; i < sizes_.layers; ++i) {
        const std::string layer = "blk." + std::to_string(i) + ".";
        const Rows h = norm(x, layer + "attn_norm");
        Rows q = product(h, layer + "attn_q"), k = product(h, layer + "attn_k");
        norm_heads(q, layer + "attn_q_norm");
        norm_heads(k, layer + "attn_k_norm");
        turn(q);
        turn(k);
        add_to(x, product(attention(q, k, product(h, layer + "attn_v")), layer + "attn_output"));
        const Rows g = norm(x, layer + "ffn_norm");
        Rows gate = product(g, layer + "ffn_gate");
        const Rows up = product(g, layer + "ffn_up");
        for (std::size_t row = 0; row < gate.size(); ++row)
            for (std::size_t j = 0; j < gate[row].size(); ++j)
                gate[row][j] *= up[row][j] / (1 + std::exp(-gate[row][j]));
        add_to(x, product(gate, layer + "ffn_down"));
    }
    return product(norm(x, "output_norm"), sizes_.tied ? "token_embd" : "output");
}

}  // namespace dlprim::testing
