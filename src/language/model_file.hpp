// SPDX-License-Identifier: MIT
// ModelFile: what a language model's file says, whatever its format: sizes, weights by GGUF's
// names, and the tokenizer's tables.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language {

/// The largest that any size may be, since kernels count in 32 bits.
inline constexpr std::int64_t largest_size = std::int64_t{1} << 24;

/// Sizes that descriptions of architectures name, and how positions turn features.
struct ModelSizes {
    std::int64_t layers = 0, width = 0, hidden = 0, vocabulary = 0, context = 0;
    std::int64_t heads = 0, key_heads = 0, head_size = 0;
    std::int64_t token_types = 0;  ///< rows of the table of kinds of tokens, if there is one
    std::int64_t rotary = 0;       ///< how many features of a head are turned
    double epsilon = 0, rotary_base = 0;
    double rotary_scale = 1;  ///< by which positions are divided
    /// The base of layers that have a window, which scale nothing; 0: they are as the others.
    double windowed_rotary_base = 0;
    /// By which the angles of each pair of features are divided, if there are any.
    std::vector<float> rotary_factors;
    double attention_scale = 0;  ///< factor of attention's scores
    double attention_cap = 0;    ///< c: scores s become c tanh(s / c); 0: they stay
    double logit_cap = 0;        ///< the same of logits
    /// Of each layer: how many of the newest tokens, itself included, a token sees; 0: all.
    std::vector<std::int64_t> windows;
};

/// Checks sizes that a file gave, and fills in those that follow from others. `window` is that of
/// the layers that have one, and `own` are the values that stand with the model's name in the
/// description of its architecture. Throws Error(format), which begins with `path`.
void complete_sizes(ModelSizes& sizes, std::int64_t window, const Attrs& own,
                    const std::string& path);

/// The values that steps of a description name in layer `layer`, by their names without '$'.
std::map<std::string, double> named_sizes(const ModelSizes& sizes, std::int64_t layer);

/// Kinds of tokens, by GGUF's codes.
namespace token_kind {
inline constexpr std::int64_t plain = 1, unknown = 2, control = 3, user_defined = 4, unused = 5,
                              byte = 6;
}
inline constexpr std::string_view space_mark = "\u2581";  ///< SentencePiece's sign for a space

/// What WordPiece does to a text before it looks words up (wordpiece.hpp).
struct WordPieceRules {
    bool clean = true;          ///< control characters are left out
    bool chinese = true;        ///< each Chinese character is a word
    bool strip_accents = true;  ///< characters lose their marks
    bool lower = true;
    std::int64_t longest_word = 100;  ///< in characters; a longer one is unknown
    bool operator==(const WordPieceRules&) const = default;
};

/// What Unigram does to a text before it looks for tokens (unigram.hpp), in this order.
struct UnigramRules {
    std::string characters;   ///< a table of CharacterMap, by which they are replaced; may be empty
    bool strip_left = false;  ///< the white space that the text begins with is left out
    bool strip_right = false;   ///< that at its end
    bool join_spaces = false;   ///< several spaces are one
    bool split_spaces = false;  ///< white space ends words, and is left out
    /// Whether text is read as SentencePiece itself reads it, where Hugging Face's tokenizers
    /// differ: the longest entry of the table is taken at each place, signs for spaces at the end
    /// are left out as spaces are, and the name of a byte's token in a text is not that token.
    bool as_sentencepiece = false;
};

/// The tables of a tokenizer, as GGUF has them.
struct TokenizerTables {
    /// "gpt2" for byte-level BPE, "llama" for SentencePiece's, "t5" for Unigram, "bert" for
    /// WordPiece.
    std::string model;
    std::string splitter;               ///< how text is split before merging; else by `patterns`
    std::vector<std::string> patterns;  ///< regular expressions, as Splitter's constructor has them
    bool whole_pieces = false;          ///< with `patterns`: Splitter::takes_whole_pieces()
    bool composed = false;              ///< whether text is brought into Unicode's form NFC
    std::vector<std::string> tokens;    ///< by number
    std::vector<std::int64_t> kinds;    ///< of each token, by its number; may be empty
    std::vector<std::string> merges;    ///< "left right", the first first
    std::vector<double> scores;         ///< of each token, if there are no merges
    /// What gets a space in front: nothing, each part of a text between special tokens, or the
    /// same or the first part alone where it begins with none.
    enum class Space { none, each, each_without, first_without } space = Space::none;
    /// Of each special token that takes the white space beside it along: at the left, at the right.
    std::map<std::int64_t, std::pair<bool, bool>> strips;
    std::optional<std::int64_t> begin;  ///< a special token
    std::vector<std::int64_t> ends;     ///< tokens with which a text ends
    bool add_begin = false;             ///< whether a text begins with `begin`
    /// A special token behind each text that an encoder reads.
    std::optional<std::int64_t> separator;
    std::optional<std::int64_t> unknown;  ///< if no token has this kind
    WordPieceRules word_piece = {};
    UnigramRules unigram = {};
};

/// How an encoder's features of tokens become one row for a text.
struct Pooling {
    enum class By {
        mean,  ///< over the text's tokens, special ones included
        first,
        last,
    } by = By::mean;
    std::int64_t longest = 0;  ///< the most tokens of a text; 0: as many as there are positions
};

class ModelFile {
  public:
    virtual ~ModelFile() = default;
    virtual const std::string& path() const = 0;
    virtual std::string architecture() const = 0;
    /// Throws Error(format) for sizes that are missing or make no sense, and Error(unsupported).
    virtual ModelSizes sizes() const = 0;
    virtual TokenizerTables tokenizer() const = 0;
    /// Throws Error(unsupported) for another way than those of Pooling::By.
    virtual Pooling pooling() const { return {}; }
    /// The template in Jinja's language by which a chat becomes a prompt, if the model has one.
    virtual std::optional<std::string> chat_template() const = 0;
    /// The shape of a weight, or nothing if the file does not have it.
    virtual std::optional<Shape> shape(const std::string& weight) const = 0;
    /// What the file calls a weight, if that is another name; else an empty text.
    virtual std::string stored_name(const std::string& /*weight*/) const { return {}; }
    /// Unpacks a weight to floats; `values` has room for its elements.
    virtual void read(const std::string& weight, float* values) const = 0;
    /// The type of blocks in which products and tables can read a matrix as it is stored
    /// (base/blocks.hpp), or an empty text for what is to be unpacked.
    virtual std::string blocks(const std::string& /*weight*/) const { return {}; }
    /// Reads so many bytes of such a matrix.
    virtual void read_blocks(const std::string& /*weight*/, std::byte* /*data*/,
                             std::size_t /*bytes*/) const {}
    /// By which the products of an adapter (adapter.hpp) are multiplied.
    virtual double adapter_scale() const { return 1; }
};

/// Sets the sizes that shapes of tables tell. Throws Error(format) for a file without a table of
/// embeddings.
void read_table_sizes(const ModelFile& file, ModelSizes& sizes);

/// Opens a model: a GGUF file, or a folder with config.json and safetensors files as Hugging Face's
/// models have them. Throws what the constructors of GgufFile and SafetensorsFile and
/// find_architecture() throw.
std::unique_ptr<const ModelFile> open_model(const std::string& path);

}  // namespace dlprim::language
