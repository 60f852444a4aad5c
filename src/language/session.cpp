// SPDX-License-Identifier: MIT
// Session: steps of a language model, and the memory that they share.
#include "language/session.hpp"

#include "api/net_impl.hpp"
#include "base/blocks.hpp"
#include "base/text.hpp"
#include "language/network.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace dlprim::language {

namespace {

constexpr std::int64_t least_capacity = 256;

/// Weights of a file. Matrices that products read in blocks are read as they are stored, and others
/// are unpacked to float, whenever one is needed.
class ModelWeights : public ParamSource {
  public:
    ModelWeights(std::shared_ptr<const ModelFile> file, const ModelSizes& sizes)
        : file_(std::move(file)), sizes_(sizes) {}

    void check(const Value& parameter) const {
        if (is_table(parameter)) return;
        const Shape shape = file_->shape(parameter.name).value();
        const std::string blocks = file_->blocks(parameter.name);
        Shape wanted = parameter.spec.shape;
        if (!blocks.empty())
            wanted = Shape{wanted[0], block_weights(block_type(blocks), wanted[1])};
        if (shape != wanted)
            fail(ErrorKind::format, "tensor '", parameter.name, "' of '", file_->path(),
                 "' has shape ", shape.str(), ", by the model's sizes it has ", wanted.str());
    }
    void read(const Value& parameter, std::vector<std::byte>& data) override {
        const auto count = static_cast<std::size_t>(parameter.spec.shape.numel());
        data.resize(count * size_of(parameter.spec.dtype));
        if (parameter.spec.dtype == DType::u8)
            return file_->read_blocks(parameter.name, data.data(), data.size());
        auto* values = reinterpret_cast<float*>(data.data());
        if (is_table(parameter))
            fill_rotary_table(sizes_, parameter.name == sines, parameter.spec.shape[0], values);
        else
            file_->read(parameter.name, values);
    }

  private:
    static bool is_table(const Value& parameter) {
        return parameter.name == cosines || parameter.name == sines;
    }

    std::shared_ptr<const ModelFile> file_;
    ModelSizes sizes_;
};

}  // namespace

Session::Session(const Context& context, std::shared_ptr<const ModelFile> file,
                 const ModelSizes& sizes, const SessionOptions& options)
    : context_(context),
      file_(std::move(file)),
      architecture_(find_architecture(file_->architecture())),
      sizes_(sizes),
      most_(options.context),
      piece_(options.piece) {
    require(most_ >= 1 && most_ <= sizes.context, "a context of ", most_,
            " tokens was asked for; the model has one of ", sizes.context);
    require(piece_ >= 1 && piece_ <= 4096, "prompts are read in pieces of 1 to 4096 tokens, not ",
            piece_);
    capacity_ = std::min(least_capacity, most_);
    const auto describe = [this](const NetOptions& now) {
        const auto tokens = now.input_shapes.find("tokens");
        const std::int64_t count = tokens == now.input_shapes.end() ? 1 : tokens->second[0];
        return make_network(architecture_, *file_, sizes_, {count, capacity_, most_ + piece_});
    };
    NetOptions how = options.net;
    how.mode = Mode::inference;
    const auto impl = std::make_shared<NetImpl>(context, describe(how), how);
    impl->describe_by(describe);
    const auto weights = std::make_shared<ModelWeights>(file_, sizes_);
    for (const auto& [name, parameter] : impl->params()) weights->check(parameter.value);
    impl->set_source(weights);
    net_ = Access::handle<Net>(impl);
    bind_cache();
}

void Session::bind_cache() {
    const Shape all{2 * sizes_.layers, sizes_.key_heads, capacity_, sizes_.head_size};
    Tensor cache(context_, all);
    cache.fill(0);
    if (past_ > 0) {
        Tensor begin = cache.slice(2, 0, past_);
        cache_.slice(2, 0, past_).copy_to(begin);
    }
    cache_ = std::move(cache);
    std::map<std::string, Tensor> inputs;
    const auto part = [&](std::int64_t i) {
        return cache_.slice(0, i, i + 1).reshape({all[1], all[2], all[3]});
    };
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
        inputs[keys_input(layer)] = part(2 * layer);
        inputs[values_input(layer)] = part(2 * layer + 1);
    }
    NetImpl& impl = Access::impl(*net_);
    impl.read_inputs_from(std::move(inputs));
    impl.reshape(0, {{"tokens", Shape{count_}}});
}

void Session::set_count(std::int64_t count) {
    if (count == count_) return;
    Access::impl(*net_).reshape(0, {{"tokens", Shape{count}}});
    count_ = count;
}

void Session::forget_from(std::int64_t past) {
    require(past >= 0 && past <= past_, "tokens from number ", past, " on are to be forgotten, of ",
            past_, " that were read");
    past_ = past;
}

void Session::reserve(std::int64_t tokens) {
    require(tokens <= most_, tokens, " tokens do not fit into the context of ", most_);
    if (tokens <= capacity_) return;
    const auto doubled = std::bit_ceil(static_cast<std::uint64_t>(tokens));
    capacity_ = std::min(static_cast<std::int64_t>(doubled), most_);
    bind_cache();
}

void Session::step(std::span<const std::int32_t> tokens) {
    const auto real = static_cast<std::int64_t>(tokens.size());
    tokens_.assign(tokens.begin(), tokens.end());
    tokens_.resize(static_cast<std::size_t>(count_), 0);
    const auto past = static_cast<float>(past_);
    const auto last = static_cast<std::int32_t>(real - 1);
    net_->set_input("tokens", tokens_.data(), tokens_.size() * sizeof tokens_[0]);
    net_->set_input("past", &past, sizeof past);
    net_->set_input("last", &last, sizeof last);
    net_->forward();
    Tensor rows = cache_.slice(2, past_, past_ + real);
    net_->output("remember").slice(2, 0, real).copy_to(rows);
    past_ += real;
}

std::vector<float> Session::read(std::span<const std::int32_t> tokens) {
    require(!tokens.empty(), "there are no tokens to read");
    for (const std::int32_t token : tokens)
        require(token >= 0 && token < sizes_.vocabulary, "token ", token,
                " is none of the vocabulary of ", sizes_.vocabulary);
    reserve(past_ + static_cast<std::int64_t>(tokens.size()));
    while (!tokens.empty()) {
        // A step of a piece takes as long as several of one token.
        const bool one = static_cast<std::int64_t>(tokens.size()) <= piece_ / 8;
        set_count(one ? 1 : piece_);
        const std::size_t real = std::min(tokens.size(), static_cast<std::size_t>(count_));
        step(tokens.first(real));
        tokens = tokens.subspan(real);
    }
    std::vector<float> logits = net_->output("logits").to_floats();
    peak_bytes_ = std::max(peak_bytes_, net_->planned_peak_bytes());
    return logits;
}

}  // namespace dlprim::language
