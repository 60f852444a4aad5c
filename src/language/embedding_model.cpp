// SPDX-License-Identifier: MIT
// EmbeddingModel: file, tokenizer and encoder together.
#include <dlprim/embedding_model.hpp>

#include "base/text.hpp"
#include "language/architecture.hpp"
#include "language/encoder.hpp"
#include "language/network.hpp"
#include "language/tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dlprim {

using language::ModelFile;

namespace {

/// Throws if the model makes text, before its tokenizer is read.
std::shared_ptr<const ModelFile> open_encoder(const std::string& path) {
    std::shared_ptr<const ModelFile> file = language::open_model(path);
    language::find_encoder(*file);
    return file;
}

NetOptions net_options(const EmbeddingModelOptions& options) {
    NetOptions how;
    how.precision = options.precision;
    how.progress = options.progress;
    return how;
}

void normalize(float* row, std::int64_t features) {
    double sum = 0;
    for (std::int64_t i = 0; i < features; ++i)
        sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    if (sum == 0) return;
    const double factor = 1 / std::sqrt(sum);
    for (std::int64_t i = 0; i < features; ++i)
        row[i] = static_cast<float>(static_cast<double>(row[i]) * factor);
}

}  // namespace

class EmbeddingModel::Impl {
  public:
    Impl(const Context& device, const std::string& path, const EmbeddingModelOptions& options)
        : context(device),
          file(open_encoder(path)),
          sizes(file->sizes()),
          tokenizer(file->tokenizer(), sizes.vocabulary, path),
          encoder(device, file, sizes, checked(options.step_tokens), net_options(options)) {}

    const Context context;
    const std::shared_ptr<const ModelFile> file;
    const language::ModelSizes sizes;
    const language::Tokenizer tokenizer;
    language::Encoder encoder;

  private:
    static std::int64_t checked(std::int64_t tokens) {
        constexpr std::int64_t most = 1 << 16;
        require(tokens >= 1 && tokens <= most, "steps have 1 to ", most, " tokens, not ", tokens);
        return tokens;
    }
};

EmbeddingModel::EmbeddingModel(const Context& context, const std::string& path,
                               const EmbeddingModelOptions& options)
    : impl_(std::make_unique<Impl>(context, path, options)) {}
EmbeddingModel::~EmbeddingModel() = default;
EmbeddingModel::EmbeddingModel(EmbeddingModel&&) noexcept = default;
EmbeddingModel& EmbeddingModel::operator=(EmbeddingModel&&) noexcept = default;

EmbeddingModel::Impl& EmbeddingModel::impl() const {
    require(impl_ != nullptr,
            "this EmbeddingModel was moved from: use the one that it was moved to");
    return *impl_;
}

const Context& EmbeddingModel::context() const {
    return impl().context;
}

std::string EmbeddingModel::architecture() const {
    return impl().file->architecture();
}

std::int64_t EmbeddingModel::vocabulary() const {
    return impl().sizes.vocabulary;
}

std::int64_t EmbeddingModel::features() const {
    return impl().encoder.width();
}

std::int64_t EmbeddingModel::longest_text() const {
    return impl().encoder.longest();
}

std::vector<std::int32_t> EmbeddingModel::encode(std::string_view text, bool truncate) const {
    const language::Tokenizer& tokenizer = impl().tokenizer;
    std::vector<std::int32_t> tokens = tokenizer.encode(text);
    const bool begins = tokenizer.begin() >= 0, ends = tokenizer.separator() >= 0;
    const auto most = static_cast<std::size_t>(
        std::max<std::int64_t>(longest_text() - (begins ? 1 : 0) - (ends ? 1 : 0), 0));
    if (truncate && tokens.size() > most) tokens.resize(most);
    if (begins) tokens.insert(tokens.begin(), tokenizer.begin());
    if (ends) tokens.push_back(tokenizer.separator());
    return tokens;
}

std::vector<float> EmbeddingModel::embed(const std::vector<std::string>& texts,
                                         const EmbedOptions& options) {
    std::vector<std::vector<std::int32_t>> tokens;
    tokens.reserve(texts.size());
    for (const std::string& text : texts) {
        try {
            tokens.push_back(encode(text, options.truncate));
        } catch (const Error& error) {
            throw Error(error.kind(), cat("text ", tokens.size() + 1, ": ", error.what()));
        }
    }
    return embed_tokens(tokens, options);
}

std::vector<float> EmbeddingModel::embed_tokens(const std::vector<std::vector<std::int32_t>>& texts,
                                                const EmbedOptions& options) {
    const auto longest = static_cast<std::size_t>(longest_text());
    const auto is_long = [&](const auto& text) { return text.size() > longest; };
    std::vector<float> rows;
    if (options.truncate && std::any_of(texts.begin(), texts.end(), is_long)) {
        std::vector<std::vector<std::int32_t>> cut = texts;
        for (auto& text : cut) text.resize(std::min(text.size(), longest));
        rows = impl().encoder.embed(cut);
    } else {
        rows = impl().encoder.embed(texts);
    }
    if (options.normalize)
        for (std::size_t i = 0; i < texts.size(); ++i)
            normalize(rows.data() + i * static_cast<std::size_t>(features()), features());
    return rows;
}

std::uint64_t EmbeddingModel::peak_bytes() const {
    return impl().encoder.peak_bytes();
}

bool is_embedding_model(const std::string& path) {
    return language::find_architecture(language::open_model(path)->architecture()).encoder;
}

}  // namespace dlprim
