// SPDX-License-Identifier: MIT
// Language models in GGUF files.
#include "language/gguf_model.hpp"

#include "base/text.hpp"
#include "formats/gguf/file.hpp"
#include "language/architecture.hpp"
#include "language/wordpiece.hpp"

#include <algorithm>
#include <list>
#include <map>

namespace dlprim::language {

namespace {

class GgufModel : public ModelFile {
  public:
    explicit GgufModel(const std::string& path) : file_(path) {
        add_tensors(file_);
        if (file_.value_or<std::int64_t>("split.count", 1) > 1) open_parts();
    }

    const std::string& path() const override { return file_.path(); }
    std::string architecture() const override {
        return file_.value<std::string>("general.architecture");
    }
    ModelSizes sizes() const override;
    TokenizerTables tokenizer() const override;
    Pooling pooling() const override;
    std::optional<std::string> chat_template() const override {
        const std::string key = "tokenizer.chat_template";
        if (!file_.has(key)) return std::nullopt;
        return file_.value<std::string>(key);
    }
    std::optional<Shape> shape(const std::string& weight) const override {
        const auto found = tensors_.find(weight);
        if (found == tensors_.end()) return std::nullopt;
        return found->second.tensor->shape;
    }
    void read(const std::string& weight, float* values) const override {
        const Place& place = tensors_.at(weight);
        place.file->read(*place.tensor, values);
    }
    std::string blocks(const std::string& weight) const override {
        const GgufTensor& tensor = *tensors_.at(weight).tensor;
        const GgufType* type = find_gguf_type(tensor.type);
        if (type == nullptr || type->bytes == sizeof(float) || tensor.shape.rank() != 2 ||
            tensor.shape[1] % block_size(*type).weights != 0)
            return {};
        return std::string(type->option);
    }
    void read_blocks(const std::string& weight, std::byte* data, std::size_t bytes) const override {
        const Place& place = tensors_.at(weight);
        place.file->read_stored(*place.tensor, data, bytes);
    }

  private:
    std::string key(const std::string& name) const { return architecture() + "." + name; }
    std::int64_t size(const std::string& name) const {
        const auto value = file_.value<std::int64_t>(key(name));
        if (value < 1 || value > largest_size)
            fail(ErrorKind::format, "'", path(), "' says that ", key(name), " is ", value);
        return value;
    }
    std::int64_t size(const std::string& name, std::int64_t otherwise) const {
        return file_.has(key(name)) ? size(name) : otherwise;
    }
    double number(const std::string& name, double otherwise) const {
        const auto value = file_.value_or<double>(key(name), otherwise);
        if (!(value > 0 && value < 1e30))
            fail(ErrorKind::format, "'", path(), "' says that ", key(name), " is ", value);
        return value;
    }
    /// 0 if there is none.
    double positive(const std::string& name) const {
        return file_.has(key(name)) ? number(name, 0) : 0;
    }
    void set_rotary(ModelSizes& sizes) const;
    void set_word_piece(TokenizerTables& tables) const;
    void set_unigram(TokenizerTables& tables) const;
    void add_tensors(const GgufFile& file);
    void open_parts();

    struct Place {
        const GgufFile* file;
        const GgufTensor* tensor;
    };
    const GgufFile file_;
    std::list<GgufFile> parts_;  ///< of a model in several files, but the first
    std::map<std::string, Place> tensors_;
};

void GgufModel::add_tensors(const GgufFile& file) {
    for (const auto& [name, tensor] : file.tensors())
        if (!tensors_.emplace(name, Place{&file, &tensor}).second)
            fail(ErrorKind::format, "'", file.path(), "' has tensor '", name,
                 "', which another part of the model has, too");
}

/// The other parts of a model whose first one is named NAME-00001-of-00003.gguf.
void GgufModel::open_parts() {
    const std::string& path = file_.path();
    const auto count = file_.value<std::int64_t>("split.count");
    const auto five = [](std::int64_t number) {
        const std::string digits = cat(number);
        return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
    };
    const std::string rest = cat("-of-", five(count), ".gguf"), end = cat("-", five(1), rest);
    if (!path.ends_with(end) || file_.value_or<std::int64_t>("split.no", 0) != 0)
        fail(ErrorKind::format, "'", path, "' is one of ", count,
             " parts of a model; give the first one, whose name ends with ", end);
    const std::string stem = path.substr(0, path.size() - end.size());
    for (std::int64_t i = 1; i < count; ++i) {
        const GgufFile& part = parts_.emplace_back(cat(stem, "-", five(i + 1), rest));
        if (part.value<std::int64_t>("split.no") != i ||
            part.value<std::int64_t>("split.count") != count)
            fail(ErrorKind::format, "'", part.path(), "' is not part ", i + 1, " of ", count);
        add_tensors(part);
    }
    const auto all = file_.value_or("split.tensors.count", std::ssize(tensors_));
    if (all != std::ssize(tensors_))
        fail(ErrorKind::format, "'", path, "' has ", tensors_.size(),
             " tensors in all of its parts, and says that they are ", all);
}

void GgufModel::set_rotary(ModelSizes& sizes) const {
    sizes.rotary = size("rope.dimension_count", sizes.head_size);
    sizes.rotary_base = number("rope.freq_base", 10000);
    sizes.windowed_rotary_base = positive("rope.freq_base_swa");
    const auto scaling = file_.value_or<std::string>(key("rope.scaling.type"), "none");
    if (scaling == "linear")
        sizes.rotary_scale = number("rope.scaling.factor", 1);
    else if (scaling != "none")
        fail(ErrorKind::unsupported, "'", path(), "' scales positions by the method '", scaling,
             "'; supported are none and linear");
    const std::string factors = "rope_freqs.weight";
    if (const auto of = shape(factors)) {
        if (of->numel() != sizes.rotary / 2)
            fail(ErrorKind::format, "'", path(), "' has ", of->numel(), " factors in '", factors,
                 "', the model has ", sizes.rotary / 2, " pairs of features");
        sizes.rotary_factors.resize(static_cast<std::size_t>(of->numel()));
        read(factors, sizes.rotary_factors.data());
    }
}

ModelSizes GgufModel::sizes() const {
    ModelSizes sizes;
    sizes.layers = size("block_count");
    sizes.width = size("embedding_length");
    sizes.hidden = size("feed_forward_length");
    sizes.context = size("context_length");
    sizes.heads = size("attention.head_count");
    sizes.key_heads = size("attention.head_count_kv", sizes.heads);
    sizes.head_size = size("attention.key_length", sizes.width / sizes.heads);
    sizes.epsilon =
        number("attention.layer_norm_rms_epsilon", number("attention.layer_norm_epsilon", 1e-5));
    read_table_sizes(*this, sizes);
    set_rotary(sizes);
    sizes.attention_scale = positive("attention.scale");
    sizes.attention_cap = positive("attn_logit_softcapping");
    sizes.logit_cap = positive("final_logit_softcapping");
    const Attrs& own = find_architecture(architecture()).models.at(architecture());
    complete_sizes(sizes, size("attention.sliding_window", 0), own, path());
    return sizes;
}

TokenizerTables GgufModel::tokenizer() const {
    const std::string prefix = "tokenizer.ggml.";
    TokenizerTables tables;
    tables.model = file_.value<std::string>(prefix + "model");
    tables.splitter = file_.value_or<std::string>(prefix + "pre", "default");
    tables.tokens = file_.value<std::vector<std::string>>(prefix + "tokens");
    tables.kinds = file_.value_or<std::vector<std::int64_t>>(prefix + "token_type", {});
    tables.merges = file_.value_or<std::vector<std::string>>(prefix + "merges", {});
    if (tables.model == "llama") {
        tables.scores = file_.value<std::vector<double>>(prefix + "scores");
        if (file_.value_or(prefix + "add_space_prefix", true))
            tables.space = TokenizerTables::Space::each;
    }
    const std::string begin = prefix + "bos_token_id";
    if (file_.has(begin)) tables.begin = file_.value<std::int64_t>(begin);
    for (const char* name : {"eos_token_id", "eot_token_id"})
        if (file_.has(prefix + name))
            tables.ends.push_back(file_.value<std::int64_t>(prefix + name));
    tables.add_begin = file_.value_or(prefix + "add_bos_token", tables.model == "llama");
    if (tables.model == "t5") {
        set_unigram(tables);
        return tables;
    }
    if (tables.model == "bert") set_word_piece(tables);
    const std::string separator = prefix + "seperator_token_id";  // as GGUF spells it
    if (!file_.value_or(prefix + "add_sep_token", tables.model == "bert"))
        tables.separator.reset();
    else if (file_.has(separator))
        tables.separator = file_.value<std::int64_t>(separator);
    return tables;
}

/// What GGUF files of WordPiece need not say: the numbers of special tokens, and whether text is
/// lower-cased, which it is where no token has a capital letter.
void GgufModel::set_word_piece(TokenizerTables& tables) const {
    const std::string prefix = "tokenizer.ggml.";
    constexpr std::int64_t unknown = 100, begin = 101, separator = 102;  // of the first BERT
    tables.unknown = file_.value_or(prefix + "unknown_token_id", unknown);
    if (!tables.begin) tables.begin = file_.value_or(prefix + "cls_token_id", begin);
    tables.add_begin = file_.value_or(prefix + "add_bos_token", true);
    tables.separator = separator;
    tables.word_piece.lower = !has_capitals(tables);
    tables.word_piece.strip_accents = tables.word_piece.lower;
}

/// Texts of Unigram end with the token for their end unless the file says otherwise; what it says
/// of a separator is meant for pairs of texts.
void GgufModel::set_unigram(TokenizerTables& tables) const {
    const std::string prefix = "tokenizer.ggml.", map = prefix + "precompiled_charsmap";
    tables.scores = file_.value<std::vector<double>>(prefix + "scores");
    if (file_.value_or(prefix + "add_space_prefix", false))
        tables.space = TokenizerTables::Space::each_without;
    const bool shortened = file_.value_or(prefix + "remove_extra_whitespaces", false);
    UnigramRules& rules = tables.unigram;
    rules.as_sentencepiece = true;
    rules.strip_left = rules.strip_right = rules.join_spaces = shortened;
    for (const std::int64_t byte : file_.value_or<std::vector<std::int64_t>>(map, {}))
        rules.characters += static_cast<char>(byte);
    if (file_.has(prefix + "unknown_token_id"))
        tables.unknown = file_.value<std::int64_t>(prefix + "unknown_token_id");
    if (file_.value_or(prefix + "add_eos_token", true) && !tables.ends.empty())
        tables.separator = tables.ends.front();
}

Pooling GgufModel::pooling() const {
    Pooling how;
    const auto kind = file_.value_or<std::int64_t>(key("pooling_type"), 1);
    if (kind > 3)
        fail(ErrorKind::unsupported, "'", path(), "' says that ", key("pooling_type"), " is ", kind,
             "; supported are 1 (mean), 2 (first token) and 3 (last token)");
    if (kind == 2) how.by = Pooling::By::first;
    if (kind == 3) how.by = Pooling::By::last;
    return how;
}

}  // namespace

std::unique_ptr<const ModelFile> open_gguf(const std::string& path) {
    auto model = std::make_unique<const GgufModel>(path);
    find_architecture(model->architecture());  // throws before a size of another one is missing
    return model;
}

}  // namespace dlprim::language
