// SPDX-License-Identifier: MIT
// Session: steps of a language model, and the memory that they share.
#include "language/session.hpp"

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

constexpr std::int64_t least_capacity = 256;

}  // namespace

Session::Session(const Context& context, std::shared_ptr<const ModelFile> file,
                 const ModelSizes& sizes, const SessionOptions& options)
    : context_(context),
      file_(std::move(file)),
      architecture_(find_decoder(*file_)),
      sizes_(sizes),
      most_(options.context),
      piece_(options.piece),
      cached_(options.half_cache ? DType::f16 : DType::f32) {
    require(most_ >= 1 && most_ <= sizes.context, "a context of ", most_,
            " tokens was asked for; the model has one of ", sizes.context);
    require(piece_ >= 1 && piece_ <= 4096, "prompts are read in pieces of 1 to 4096 tokens, not ",
            piece_);
    require(options.sequences >= 1 && options.sequences <= 4096,
            "a session remembers 1 to 4096 sequences, not ", options.sequences);
    past_.assign(static_cast<std::size_t>(options.sequences), 0);
    capacity_ = std::min(least_capacity, most_);
    const auto describe = [this](const NetOptions& now) {
        StepSizes step{1, 1, sequences(), capacity_, most_ + piece_, cached_};
        if (const auto places = now.input_shapes.find("places"); places != now.input_shapes.end()) {
            step.batch = places->second[0];
            step.count = now.input_shapes.at("tokens")[0] / step.batch;
        }
        return make_network(architecture_, *file_, sizes_, step);
    };
    NetOptions how = options.net;
    how.mode = Mode::inference;
    const auto impl = std::make_shared<NetImpl>(context, describe(how), how);
    impl->describe_by(describe);
    supply(*impl, std::make_shared<ModelWeights>(file_, sizes_));
    net_ = Access::handle<Net>(impl);
    bind_cache();
}

void Session::bind_cache() {
    const Shape all{2 * sizes_.layers, sequences(), sizes_.key_heads, capacity_, sizes_.head_size};
    Tensor cache(context_, all, cached_);
    const std::int64_t past = *std::max_element(past_.begin(), past_.end());
    if (past > 0) {
        Tensor begin = cache.slice(3, 0, past);
        cache_.slice(3, 0, past).copy_to(begin);
    }
    cache_ = std::move(cache);
    std::map<std::string, Tensor> inputs;
    const auto part = [&](std::int64_t i) {
        return cache_.slice(0, i, i + 1).reshape({all[1], all[2], all[3], all[4]});
    };
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
        inputs[keys_input(layer)] = part(2 * layer);
        inputs[values_input(layer)] = part(2 * layer + 1);
    }
    NetImpl& impl = Access::impl(*net_);
    impl.read_inputs_from(std::move(inputs));
    const std::int64_t batch = batch_, count = count_;
    batch_ = count_ = 0;
    set_shape(batch, count);
}

void Session::set_shape(std::int64_t batch, std::int64_t count) {
    if (batch == batch_ && count == count_) return;
    Access::impl(*net_).reshape(
        0, {{"tokens", Shape{batch * count}}, {"places", Shape{batch, 2}}, {"last", Shape{batch}}});
    batch_ = batch;
    count_ = count;
    last_.clear();
}

void Session::check_sequence(std::int64_t sequence) const {
    require(sequence >= 0 && sequence < sequences(), "there is no sequence ", sequence, ", only ",
            sequences());
}

void Session::check_token(std::int32_t token) const {
    require(token >= 0 && token < sizes_.vocabulary, "token ", token,
            " is none of the vocabulary of ", sizes_.vocabulary);
}

std::int64_t Session::past(std::int64_t sequence) const {
    check_sequence(sequence);
    return past_[static_cast<std::size_t>(sequence)];
}

void Session::forget_from(std::int64_t past, std::int64_t sequence) {
    require(past >= 0 && past <= this->past(sequence), "tokens from number ", past,
            " on are to be forgotten, of ", this->past(sequence), " that were read");
    past_[static_cast<std::size_t>(sequence)] = past;
}

void Session::share(std::int64_t from, std::int64_t to, std::int64_t tokens) {
    check_sequence(to);
    require(tokens >= 0 && tokens <= past(from), tokens, " tokens of sequence ", from,
            " are to be shared, of ", past(from), " that were read");
    if (tokens > 0 && from != to) {
        const auto begin = [&](std::int64_t sequence) {
            return cache_.slice(1, sequence, sequence + 1).slice(3, 0, tokens);
        };
        Tensor copy = begin(to);
        begin(from).copy_to(copy);
    }
    past_[static_cast<std::size_t>(to)] = tokens;
}

void Session::reserve(std::int64_t tokens) {
    require(tokens <= most_, tokens, " tokens do not fit into the context of ", most_);
    if (tokens <= capacity_) return;
    const auto doubled = std::bit_ceil(static_cast<std::uint64_t>(tokens));
    const std::int64_t before = capacity_;
    capacity_ = std::min(static_cast<std::int64_t>(doubled), most_);
    try {
        bind_cache();
    } catch (...) {
        capacity_ = before;
        throw;
    }
}

void Session::step(std::int64_t real) {
    std::vector<std::int32_t> last;
    for (std::int64_t i = 0; i < batch_; ++i)
        last.push_back(static_cast<std::int32_t>(i * count_ + real - 1));
    net_->set_input("tokens", tokens_.data(), tokens_.size() * sizeof tokens_[0]);
    net_->set_input("places", places_.data(), places_.size() * sizeof places_[0]);
    // A write takes the host longer than several launches, and steps of one token have equal ones.
    if (last != last_) net_->set_input("last", last.data(), last.size() * sizeof last[0]);
    last_ = std::move(last);
    net_->forward();
}

std::span<const float> Session::logits() {
    const Tensor output = net_->output("logits");
    // Into memory that the device writes itself: other copies take as long as the whole step.
    std::unique_ptr<Readback>& readback = readbacks_[output.bytes()];
    if (!readback) readback = Access::impl(context_).make_readback(output.bytes());
    readback->read({Access::buffer(output).get(), output.byte_offset()});
    const auto* logits = reinterpret_cast<const float*>(readback->take());
    peak_bytes_ = std::max(peak_bytes_, net_->planned_peak_bytes());
    return {logits, static_cast<std::size_t>(output.shape().numel())};
}

std::span<const float> Session::read(std::span<const std::int32_t> tokens, std::int64_t sequence) {
    require(!tokens.empty(), "there are no tokens to read");
    for (const std::int32_t token : tokens) check_token(token);
    reserve(past(sequence) + std::ssize(tokens));
    std::int64_t& past = past_[static_cast<std::size_t>(sequence)];
    while (!tokens.empty()) {
        set_shape(1, fills_piece(std::ssize(tokens)) ? piece_ : 1);
        const std::int64_t real = std::min(std::ssize(tokens), count_);
        tokens_.assign(tokens.begin(), tokens.begin() + real);
        tokens_.resize(static_cast<std::size_t>(count_), 0);
        places_ = {static_cast<std::int32_t>(sequence), static_cast<std::int32_t>(past)};
        step(real);
        past += real;
        tokens = tokens.subspan(static_cast<std::size_t>(real));
    }
    return logits();
}

std::span<const float> Session::read_next(std::span<const Next> next) {
    require(!next.empty(), "there are no tokens to read");
    std::int64_t longest = 0;
    std::vector<char> named(past_.size(), 0);
    for (const Next& each : next) {
        check_token(each.token);
        longest = std::max(longest, past(each.sequence) + 1);
        char& before = named[static_cast<std::size_t>(each.sequence)];
        require(before == 0, "sequence ", each.sequence, " is named twice");
        before = 1;
    }
    reserve(longest);
    set_shape(sequences(), 1);
    tokens_.clear();
    places_.clear();
    for (std::int64_t i = 0; i < batch_; ++i) {
        // Rows that nobody asked for are the first one again, and write the same.
        const Next& each = next[i < std::ssize(next) ? static_cast<std::size_t>(i) : 0];
        tokens_.push_back(each.token);
        places_.insert(places_.end(), {static_cast<std::int32_t>(each.sequence),
                                       static_cast<std::int32_t>(past(each.sequence))});
    }
    step(1);
    for (const Next& each : next) ++past_[static_cast<std::size_t>(each.sequence)];
    return logits().first(next.size() * static_cast<std::size_t>(sizes_.vocabulary));
}

}  // namespace dlprim::language
