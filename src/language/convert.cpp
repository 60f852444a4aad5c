// SPDX-License-Identifier: MIT
// Language models written as GGUF files.
#include <dlprim/language_convert.hpp>

#include "base/text.hpp"
#include "formats/gguf/writer.hpp"
#include "language/adapter.hpp"
#include "language/conversion.hpp"
#include "language/network.hpp"
#include "language/splitter.hpp"
#include "language/wordpiece.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace dlprim {

namespace language {

namespace {

constexpr const char* factors_tensor = "rope_freqs.weight";

void add_sizes(const ModelSizes& sizes, const std::string& name,
               std::map<std::string, GgufValue>& metadata) {
    const auto set = [&](const char* key, GgufValue value) {
        metadata[cat(name, ".", key)] = std::move(value);
    };
    const auto set_positive = [&](const char* key, double value) {
        if (value > 0) set(key, value);
    };
    set("block_count", sizes.layers);
    set("embedding_length", sizes.width);
    set("feed_forward_length", sizes.hidden);
    set("context_length", sizes.context);
    set("vocab_size", sizes.vocabulary);
    set("attention.head_count", sizes.heads);
    set("attention.head_count_kv", sizes.key_heads);
    set("attention.key_length", sizes.head_size);
    set("attention.value_length", sizes.head_size);
    set("attention.layer_norm_rms_epsilon", sizes.epsilon);
    set("attention.layer_norm_epsilon", sizes.epsilon);
    set("attention.scale", sizes.attention_scale);
    set_positive("attn_logit_softcapping", sizes.attention_cap);
    set_positive("final_logit_softcapping", sizes.logit_cap);
    const std::int64_t window = *std::max_element(sizes.windows.begin(), sizes.windows.end());
    if (window > 0) set("attention.sliding_window", window);
    if (sizes.rotary == 0) return;
    set("rope.dimension_count", sizes.rotary);
    set("rope.freq_base", sizes.rotary_base);
    set_positive("rope.freq_base_swa", sizes.windowed_rotary_base);
    if (sizes.rotary_scale != 1) {
        set("rope.scaling.type", std::string("linear"));
        set("rope.scaling.factor", sizes.rotary_scale);
    }
}

void add_pooling(const ModelFile& file, const std::string& name,
                 std::map<std::string, GgufValue>& metadata) {
    const Pooling how = file.pooling();
    const std::int64_t kind = how.by == Pooling::By::mean    ? 1
                              : how.by == Pooling::By::first ? 2
                                                             : 3;
    metadata[name + ".pooling_type"] = kind;  // 1: mean, 2: the first token, 3: the last one
    metadata[name + ".attention.causal"] = false;
}

/// Scores by which tokens merge in the order of a table of merges.
std::vector<double> scores_of(const TokenizerTables& tables) {
    if (!tables.scores.empty()) return tables.scores;
    std::map<std::string, double> ranks;
    for (const std::string& merge : tables.merges) {
        std::string both = merge;
        both.erase(std::min(both.find(' ', 1), both.size() - 1), 1);
        ranks.emplace(std::move(both), -static_cast<double>(ranks.size()) - 1);
    }
    std::vector<double> scores;
    for (const std::string& token : tables.tokens) {
        const auto found = ranks.find(token);
        scores.push_back(found == ranks.end() ? 0 : found->second);
    }
    return scores;
}

/// GGUF has no words for the rules, which readers know, and guess by has_capitals().
void add_word_piece(const TokenizerTables& tables, std::map<std::string, GgufValue>& metadata) {
    WordPieceRules known;
    known.lower = known.strip_accents = !has_capitals(tables);
    if (tables.word_piece != known)
        fail(ErrorKind::unsupported,
             "the way in which this model's WordPiece changes text cannot be said in GGUF files");
    metadata["tokenizer.ggml.unknown_token_id"] = tables.unknown.value();
}

/// GGUF has one word for all that is done with white space, and what ends a text is its separator.
void add_unigram(const TokenizerTables& tables, std::map<std::string, GgufValue>& metadata) {
    const UnigramRules& rules = tables.unigram;
    const std::string& map = rules.characters;
    metadata["tokenizer.ggml.remove_extra_whitespaces"] =
        rules.strip_right || rules.join_spaces || rules.split_spaces;
    if (!map.empty())
        metadata["tokenizer.ggml.precompiled_charsmap"] =
            std::vector<std::uint8_t>(map.begin(), map.end());
    if (tables.unknown) metadata["tokenizer.ggml.unknown_token_id"] = *tables.unknown;
    metadata["tokenizer.ggml.add_eos_token"] = tables.separator.has_value();
    if (tables.separator) metadata["tokenizer.ggml.eos_token_id"] = *tables.separator;
}

void add_tokenizer(const TokenizerTables& tables, std::map<std::string, GgufValue>& metadata) {
    const auto set = [&](const char* key, GgufValue value) {
        metadata[cat("tokenizer.ggml.", key)] = std::move(value);
    };
    set("model", tables.model);
    set("tokens", tables.tokens);
    if (!tables.kinds.empty()) set("token_type", tables.kinds);
    if (tables.model == "bert") {
        add_word_piece(tables, metadata);
    } else if (tables.model == "gpt2") {
        set("pre", tables.patterns.empty()
                       ? tables.splitter
                       : name_of_splitter(tables.patterns, tables.whole_pieces));
        set("merges", tables.merges);
    } else {
        set("scores", scores_of(tables));
        set("add_space_prefix", tables.space != TokenizerTables::Space::none);
    }
    if (tables.begin) set("bos_token_id", *tables.begin);
    if (tables.separator) {
        set("seperator_token_id", *tables.separator);  // as GGUF spells it
        set("add_sep_token", true);
    }
    if (!tables.ends.empty()) set("eos_token_id", tables.ends[0]);
    if (tables.ends.size() > 1) set("eot_token_id", tables.ends[1]);
    set("add_bos_token", tables.add_begin);
    if (tables.model == "t5") add_unigram(tables, metadata);
}

}  // namespace

std::shared_ptr<const ModelFile> open_with_adapter(const std::string& model,
                                                   const std::string& adapter) {
    std::shared_ptr<const ModelFile> file = open_model(model);
    if (adapter.empty()) return file;
    Adapter read = Adapter::read(adapter, *file);
    return merged(std::move(file), std::move(read));
}

std::set<std::string> weights_of(const ModelFile& file, const ModelSizes& sizes,
                                 const Architecture& architecture) {
    std::set<std::string> names;
    for (const auto& op :
         make_network(architecture, file, sizes, {.capacity = 1, .positions = 2}).operators)
        for (const std::string& name : op.params)
            if (name != cosines && name != sines) names.insert(name);
    return names;
}

}  // namespace language

void convert_to_gguf(const std::string& model, const std::string& path, bool half,
                     const std::string& adapter) {
    using namespace language;
    const std::shared_ptr<const ModelFile> file = open_with_adapter(model, adapter);
    const ModelSizes sizes = file->sizes();
    const std::string name = file->architecture();
    const Architecture& architecture = find_architecture(name);
    const Attrs& own = architecture.models.at(name);
    const std::string written = own.has("gguf") ? own.text("gguf") : name;
    GgufContents contents;
    contents.metadata["general.architecture"] = written;
    contents.metadata["general.file_type"] = std::int64_t{half};
    add_sizes(sizes, written, contents.metadata);
    if (architecture.encoder) add_pooling(*file, written, contents.metadata);
    ModelSizes back = sizes;  // GGUF has one window, and the description says which layers have it
    back.windows.clear();
    complete_sizes(back, *std::max_element(sizes.windows.begin(), sizes.windows.end()), own, model);
    if (back.windows != sizes.windows)
        fail(ErrorKind::unsupported, "'", model, "' has windows of attention in other layers than ",
             "GGUF files of the architecture ", name);
    add_tokenizer(file->tokenizer(), contents.metadata);
    if (const auto chat = file->chat_template())
        contents.metadata["tokenizer.chat_template"] = *chat;
    for (const std::string& weight : weights_of(*file, sizes, architecture)) {
        const Shape shape = file->shape(weight).value();
        contents.tensors.push_back({weight, shape, half && shape.rank() > 1});
    }
    const std::vector<float>& turned = sizes.rotary_factors;
    if (!turned.empty())
        contents.tensors.push_back({factors_tensor, Shape{std::ssize(turned)}, false});
    contents.read = [&](const GgufContents::Tensor& tensor, float* values) {
        if (tensor.name == factors_tensor)
            std::copy(turned.begin(), turned.end(), values);
        else
            file->read(tensor.name, values);
    };
    write_gguf(path, contents);
}

}  // namespace dlprim
