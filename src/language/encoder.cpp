// SPDX-License-Identifier: MIT
// Encoder: steps of several texts.
#include "language/encoder.hpp"

#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "language/model_weights.hpp"
#include "language/network.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace dlprim::language {

namespace {

constexpr std::int64_t least_tokens = 16;

/// Places for texts in a step of so many tokens.
std::int64_t places_in(std::int64_t tokens) {
    return tokens / 8;
}

std::int64_t rounded(std::int64_t tokens) {
    return std::max(least_tokens,
                    static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(tokens))));
}

}  // namespace

Encoder::Encoder(const Context& context, std::shared_ptr<const ModelFile> file,
                 const ModelSizes& sizes, std::int64_t tokens, const NetOptions& options)
    : file_(std::move(file)),
      sizes_(sizes),
      pooling_(file_->pooling()),
      longest_(pooling_.longest > 0 ? std::min(pooling_.longest, sizes.context) : sizes.context),
      most_(rounded(std::max(tokens, longest_))),
      count_(most_) {
    const Architecture& architecture = find_encoder(*file_);
    const auto describe = [this, &architecture](const NetOptions& now) {
        StepSizes step{.count = most_, .positions = sizes_.context};
        const auto given = now.input_shapes.find("tokens");
        if (given != now.input_shapes.end()) step.count = given->second[0];
        step.sequences = places_in(step.count) + 1;
        return make_network(architecture, *file_, sizes_, step);
    };
    NetOptions how = options;
    how.mode = Mode::inference;
    const auto impl = std::make_shared<NetImpl>(context, describe(how), how);
    impl->describe_by(describe);
    supply(*impl, std::make_shared<ModelWeights>(file_, sizes_));
    net_ = Access::handle<Net>(impl);
}

void Encoder::check(const std::vector<std::int32_t>& text, std::size_t number) const {
    require(!text.empty(), "text ", number, " has no tokens");
    require(std::ssize(text) <= longest_, "text ", number, " has ", text.size(),
            " tokens, and the model reads at most ", longest_,
            ": shorten it, or let it be truncated");
    for (const std::int32_t token : text)
        require(token >= 0 && token < sizes_.vocabulary, "token ", token,
                " is none of the vocabulary of ", sizes_.vocabulary);
}

float Encoder::share(std::int64_t place, std::int64_t length) const {
    if (pooling_.by == Pooling::By::mean) return 1 / static_cast<float>(length);
    return place == (pooling_.by == Pooling::By::first ? 0 : length - 1) ? 1 : 0;
}

void Encoder::step(std::span<const std::vector<std::int32_t>> texts, std::int64_t tokens,
                   float* rows) {
    const std::int64_t count = std::max(rounded(tokens), rounded(8 * std::ssize(texts)));
    const std::int64_t sequences = places_in(count) + 1;
    if (count != count_)
        Access::impl(*net_).reshape(0, {{"tokens", Shape{count}},
                                        {"positions", Shape{count}},
                                        {"lengths", Shape{sequences + 1}},
                                        {"shares", Shape{sequences, count}}});
    count_ = count;
    std::vector<std::int32_t> all, positions, lengths{0};
    std::vector<float> shares(static_cast<std::size_t>(sequences * count), 0.F);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::int64_t length = std::ssize(texts[i]);
        for (std::int64_t place = 0; place < length; ++place) {
            shares[i * static_cast<std::size_t>(count) + all.size()] = share(place, length);
            all.push_back(texts[i][static_cast<std::size_t>(place)]);
            positions.push_back(static_cast<std::int32_t>(place));
        }
        lengths.push_back(static_cast<std::int32_t>(all.size()));
    }
    lengths.resize(static_cast<std::size_t>(sequences), lengths.back());
    lengths.push_back(static_cast<std::int32_t>(count));
    all.resize(static_cast<std::size_t>(count), 0);
    positions.resize(static_cast<std::size_t>(count), 0);
    const auto set = [&](const char* name, const auto& values) {
        net_->set_input(name, values.data(), values.size() * sizeof values[0]);
    };
    set("tokens", all);
    set("positions", positions);
    set("lengths", lengths);
    set("shares", shares);
    net_->forward();
    const std::vector<float> made = net_->output("embeddings").to_floats();
    std::copy_n(made.begin(), std::ssize(texts) * width(), rows);
    peak_bytes_ = std::max(peak_bytes_, net_->planned_peak_bytes());
}

std::vector<float> Encoder::embed(std::span<const std::vector<std::int32_t>> texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) check(texts[i], i + 1);
    std::vector<float> rows(texts.size() * static_cast<std::size_t>(width()));
    for (std::size_t begin = 0; begin < texts.size();) {
        std::size_t end = begin;
        std::int64_t tokens = 0;
        while (end < texts.size() && static_cast<std::int64_t>(end - begin) < places_in(most_) &&
               tokens + std::ssize(texts[end]) <= most_)
            tokens += std::ssize(texts[end++]);
        step(texts.subspan(begin, end - begin), tokens,
             rows.data() + begin * static_cast<std::size_t>(width()));
        begin = end;
    }
    return rows;
}

}  // namespace dlprim::language
