// SPDX-License-Identifier: MIT
// ModelFile: what a language model's file says, whatever its format: sizes, weights by GGUF's
// names, and the tokenizer's tables.
#pragma once

#include <dlprim/shape.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlprim::language {

/// Sizes that descriptions of architectures name, and how positions turn features.
struct ModelSizes {
    std::int64_t layers = 0, width = 0, hidden = 0, vocabulary = 0, context = 0;
    std::int64_t heads = 0, key_heads = 0, head_size = 0;
    std::int64_t rotary = 0;  ///< how many features of a head are turned
    double epsilon = 0, rotary_base = 0;
    double rotary_scale = 1;  ///< by which positions are divided
    /// By which the angles of each pair of features are divided, if there are any.
    std::vector<float> rotary_factors;
};

/// The tables of a tokenizer, as GGUF has them.
struct TokenizerTables {
    std::string model;                  ///< "gpt2" for byte-level BPE
    std::string splitter;               ///< how text is split before merging
    std::vector<std::string> tokens;    ///< by number
    std::vector<std::int64_t> kinds;    ///< of each token, by GGUF's codes; may be empty
    std::vector<std::string> merges;    ///< "left right", the first first
    std::optional<std::int64_t> begin;  ///< a special token
    std::vector<std::int64_t> ends;     ///< tokens with which a text ends
    bool add_begin = false;             ///< whether a text begins with `begin`
};

class ModelFile {
  public:
    virtual ~ModelFile() = default;
    virtual const std::string& path() const = 0;
    virtual std::string architecture() const = 0;
    /// Throws Error(format) for sizes that are missing or make no sense, and Error(unsupported).
    virtual ModelSizes sizes() const = 0;
    virtual TokenizerTables tokenizer() const = 0;
    /// The template in Jinja's language by which a chat becomes a prompt, if the model has one.
    virtual std::optional<std::string> chat_template() const = 0;
    /// The shape of a weight, or nothing if the file does not have it.
    virtual std::optional<Shape> shape(const std::string& weight) const = 0;
    /// Unpacks a weight to floats; `values` has room for its elements.
    virtual void read(const std::string& weight, float* values) const = 0;
};

/// Opens a model. Throws what GgufFile's constructor and find_architecture() throw.
std::unique_ptr<const ModelFile> open_model(const std::string& path);

}  // namespace dlprim::language
