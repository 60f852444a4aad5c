// SPDX-License-Identifier: MIT
// EmbeddingModel: vectors for texts from an encoder in a file, such as a BERT, on one device. Texts
// of like meaning have vectors of like direction.
//
//   dp::EmbeddingModel model(dp::Context("gpu"), "all-MiniLM-L6-v2");
//   const std::vector<float> rows = model.embed({"a cat", "a small animal"});
//
// docs/language.md says which files are read, and how features of tokens become one vector.
//
// Ownership: a model owns its weights on the device. It holds the file open, from which weights are
// read again for other sizes of a step.
//
// Threads: one thread at a time, for all nets and models of a context together
// (dlprim/context.hpp). Besides the thread that embeds, one other may call encode() and what tells
// facts of the file.
//
// Waiting: embedding waits for the device. The first step of each size plans and compiles, which
// can take minutes where no cache has the kernels. Sizes are powers of two.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/precision.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct EmbeddingModelOptions {
    /// The most tokens of a step, which several texts share. At least what one text may have; it is
    /// rounded up to a power of two.
    std::int64_t step_tokens = 2048;
    /// Of operators (dlprim/precision.hpp).
    Precision precision = Precision::fp32;
    /// As NetOptions::progress.
    std::function<void(std::string_view what, int done, int total)> progress = {};
};

struct EmbedOptions {
    /// Whether vectors are divided by their length, so that the product of two is the cosine of the
    /// angle between them.
    bool normalize = true;
    /// Whether texts with more than longest_text() tokens are cut; otherwise they are errors.
    bool truncate = false;
};

class EmbeddingModel {
  public:
    /// Reads the file's metadata and plans nothing. Throws Error(not_found), Error(io),
    /// Error(format) or Error(unsupported), which says what is wrong with the file, or that the
    /// model is no encoder, or what of it is not supported and what is.
    EmbeddingModel(const Context& context, const std::string& path,
                   const EmbeddingModelOptions& options = {});
    ~EmbeddingModel();
    EmbeddingModel(EmbeddingModel&&) noexcept;
    EmbeddingModel& operator=(EmbeddingModel&&) noexcept;

    const Context& context() const;
    std::string architecture() const;
    std::int64_t vocabulary() const;    ///< number of tokens
    std::int64_t features() const;      ///< of a vector
    std::int64_t longest_text() const;  ///< the most tokens of a text, special ones included

    /// The tokens of a text in UTF-8, with the special ones before and behind it. Names of special
    /// tokens in it are those tokens. With `truncate`, the text is cut so that all are at most
    /// longest_text(). Throws Error(invalid_argument) for text that is not UTF-8.
    std::vector<std::int32_t> encode(std::string_view text, bool truncate = false) const;

    /// The vectors of texts, [texts, features()]. Throws Error(invalid_argument) for a text that is
    /// too long or not UTF-8.
    std::vector<float> embed(const std::vector<std::string>& texts,
                             const EmbedOptions& options = {});
    /// The same of tokens as encode() gives them. Throws Error(invalid_argument) for a text without
    /// tokens, for a number that is no token, and for too many of them; `truncate` leaves out all
    /// behind the first longest_text().
    std::vector<float> embed_tokens(const std::vector<std::vector<std::int32_t>>& texts,
                                    const EmbedOptions& options = {});

    /// Device memory: the most that a step so far takes, with weights.
    std::uint64_t peak_bytes() const;

  private:
    class Impl;
    Impl& impl() const;
    std::unique_ptr<Impl> impl_;  ///< null when moved from
};

/// Whether the model in a file makes embeddings and no text. Throws as EmbeddingModel's constructor
/// for a file that is neither.
bool is_embedding_model(const std::string& path);

}  // namespace dlprim
