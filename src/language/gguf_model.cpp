// SPDX-License-Identifier: MIT
// Language models in GGUF files.
#include "base/text.hpp"
#include "formats/gguf/file.hpp"
#include "language/architecture.hpp"
#include "language/model_file.hpp"

namespace dlprim::language {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 24;  ///< of any size; kernels count in 32 bits

class GgufModel : public ModelFile {
  public:
    explicit GgufModel(const std::string& path) : file_(path) {}

    const std::string& path() const override { return file_.path(); }
    std::string architecture() const override {
        return file_.value<std::string>("general.architecture");
    }
    ModelSizes sizes() const override;
    TokenizerTables tokenizer() const override;
    std::optional<std::string> chat_template() const override {
        const std::string key = "tokenizer.chat_template";
        if (!file_.has(key)) return std::nullopt;
        return file_.value<std::string>(key);
    }
    std::optional<Shape> shape(const std::string& weight) const override {
        const auto found = file_.tensors().find(weight);
        if (found == file_.tensors().end()) return std::nullopt;
        return found->second.shape;
    }
    void read(const std::string& weight, float* values) const override {
        file_.read(file_.tensors().at(weight), values);
    }

  private:
    std::string key(const std::string& name) const { return architecture() + "." + name; }
    std::int64_t size(const std::string& name) const {
        const auto value = file_.value<std::int64_t>(key(name));
        if (value < 1 || value > largest)
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
    void set_rotary(ModelSizes& sizes) const;

    GgufFile file_;
};

void GgufModel::set_rotary(ModelSizes& sizes) const {
    sizes.rotary = size("rope.dimension_count", sizes.head_size);
    sizes.rotary_base = number("rope.freq_base", 10000);
    if (sizes.rotary > sizes.head_size || sizes.rotary % 2 != 0)
        fail(ErrorKind::format, "'", path(), "' turns ", sizes.rotary,
             " features of heads that have ", sizes.head_size);
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
    sizes.epsilon = number("attention.layer_norm_rms_epsilon", 1e-5);
    const std::optional<Shape> table = shape("token_embd.weight");
    if (!table || table->rank() != 2)
        fail(ErrorKind::format, "'", path(), "' has no table of embeddings 'token_embd.weight'");
    sizes.vocabulary = (*table)[0];
    if (sizes.head_size < 1 || sizes.heads % sizes.key_heads != 0)
        fail(ErrorKind::format, "'", path(), "' has ", sizes.heads, " heads and ", sizes.key_heads,
             " heads of keys, of which the former is no multiple");
    set_rotary(sizes);
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
    const std::string begin = prefix + "bos_token_id";
    if (file_.has(begin)) tables.begin = file_.value<std::int64_t>(begin);
    for (const char* name : {"eos_token_id", "eot_token_id"})
        if (file_.has(prefix + name))
            tables.ends.push_back(file_.value<std::int64_t>(prefix + name));
    tables.add_begin = file_.value_or(prefix + "add_bos_token", false);
    return tables;
}

}  // namespace

std::unique_ptr<const ModelFile> open_model(const std::string& path) {
    auto model = std::make_unique<const GgufModel>(path);
    find_architecture(model->architecture());  // throws before a size of another one is missing
    return model;
}

}  // namespace dlprim::language
