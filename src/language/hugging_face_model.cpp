// SPDX-License-Identifier: MIT
// Models in folders as Hugging Face's. Weights get GGUF's names and values by the description of
// the architecture, so that the rest of the library has one set of both.
#include "language/hugging_face_model.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"
#include "formats/safetensors/file.hpp"
#include "language/architecture.hpp"
#include "language/head_rows.hpp"
#include "language/hugging_face_tokenizer.hpp"
#include "language/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <list>

namespace dlprim::language {

namespace {

using Source = Architecture::HuggingFace::Source;

class HuggingFaceModel : public ModelFile {
  public:
    explicit HuggingFaceModel(const std::string& folder);

    const std::string& path() const override { return folder_; }
    std::string architecture() const override { return name_; }
    ModelSizes sizes() const override;
    TokenizerTables tokenizer() const override {
        return read_tokenizer(folder_, config_.root(), sizes().vocabulary);
    }
    Pooling pooling() const override { return read_pooling(folder_); }
    std::optional<std::string> chat_template() const override {
        return read_chat_template(folder_);
    }
    std::optional<Shape> shape(const std::string& weight) const override;
    std::string stored_name(const std::string& weight) const override {
        return find(weight).value().tensor->name;
    }
    void read(const std::string& weight, float* values) const override;

  private:
    /// A tensor, the file that has it, and what becomes of its values.
    struct Place {
        const SafetensorsFile* file;
        const SafetensorsTensor* tensor;
        const Source* source;
    };
    void add_file(const std::string& name);
    void open_weights();
    std::optional<Place> find(const std::string& weight) const;
    /// The row of the table of positions that the first token of a text has.
    std::int64_t first_position() const {
        const Attrs& own = architecture_->models.at(name_);
        return own.has("first_position") ? own.integer("first_position") : 0;
    }
    /// How many rows of the tensor are left out.
    std::int64_t rows_before(const Place& place) const {
        return place.source->positions ? std::min(first_position(), place.tensor->shape[0]) : 0;
    }
    /// A value of config.json by the name of a size; nothing if it is absent or null.
    std::optional<JsonView> value(const std::string& size, const std::string& usual) const;
    std::int64_t whole(const std::string& size, const std::string& usual,
                       std::optional<std::int64_t> otherwise = {}) const;
    double number(const std::string& size, const std::string& usual, double otherwise) const;
    void check_expectations() const;
    std::vector<std::int64_t> windows(std::int64_t window, std::int64_t layers) const;

    const std::string folder_;
    const JsonDocument config_;
    std::string name_;  ///< of the architecture, as GGUF has it
    const Architecture* architecture_ = nullptr;
    std::list<SafetensorsFile> files_;
    std::map<std::string, std::pair<const SafetensorsFile*, const SafetensorsTensor*>> tensors_;
};

JsonDocument read_config(const std::string& folder) {
    const std::string path = folder + "/config.json";
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        fail(ErrorKind::not_found, "the folder '", folder,
             "' has no config.json, which a language model's folder has");
    return JsonDocument(read_file(path), path);
}

HuggingFaceModel::HuggingFaceModel(const std::string& folder)
    : folder_(folder), config_(read_config(folder)) {
    const std::vector<JsonView> classes = config_.root().at("architectures").array();
    if (classes.empty()) config_.root().at("architectures").fail("names no class");
    const std::string& name = classes[0].name();
    architecture_ = &find_hugging_face_architecture(name);
    name_ = architecture_->hugging_face.models.at(name);
    check_expectations();
    open_weights();
}

void HuggingFaceModel::check_expectations() const {
    for (const auto& [key, values] : architecture_->hugging_face.expects) {
        const std::optional<JsonView> found = config_.root().find_value(key);
        if (!found) continue;
        const std::string text = found->is_text()   ? found->text()
                                 : found->boolean() ? "true"
                                                    : "false";
        if (std::find(values.begin(), values.end(), text) == values.end())
            fail(ErrorKind::unsupported, "'", folder_, "/config.json' says that ", key, " is '",
                 text, "'; of the architecture ", name_, " models with ", join(values, ", "),
                 " are supported");
    }
}

void HuggingFaceModel::add_file(const std::string& name) {
    const SafetensorsFile& file = files_.emplace_back(folder_ + "/" + name);
    for (const auto& [tensor, place] : file.tensors())
        if (!tensors_.emplace(tensor, std::pair(&file, &place)).second)
            fail(ErrorKind::format, "'", folder_, "' has tensor '", tensor, "' in two files");
}

/// One file, or those that the index names.
void HuggingFaceModel::open_weights() {
    const std::string whole = "model.safetensors",
                      index = folder_ + "/model.safetensors.index.json";
    std::error_code error;
    if (!std::filesystem::exists(index, error)) return add_file(whole);
    const JsonDocument document(read_file(index), index, {.bytes = std::size_t{64} << 20});
    std::map<std::string, std::string> wanted;
    std::map<std::string, bool> names;
    for (const auto& [tensor, file] : document.root().at("weight_map").object()) {
        if (file.name().find('/') != std::string::npos)
            file.fail("names a file outside the model's folder");
        names[file.name()] = true;
        wanted[tensor] = file.name();
    }
    for (const auto& [name, used] : names) add_file(name);
    for (const auto& [tensor, name] : wanted) {
        const auto found = tensors_.find(tensor);
        if (found == tensors_.end() || found->second.first->path() != folder_ + "/" + name)
            fail(ErrorKind::format, index, ": tensor '", tensor, "' is not in '", name, "'");
    }
}

/// Older files call weight and bias of a norm gamma and beta.
std::string older_name(std::string name) {
    for (const auto& [now, before] : {std::pair(".weight", ".gamma"), {".bias", ".beta"}})
        if (name.ends_with(now)) return name.replace(name.rfind('.'), std::string::npos, before);
    return name;
}

std::optional<HuggingFaceModel::Place> HuggingFaceModel::find(const std::string& weight) const {
    const auto known = hugging_face_weight(*architecture_, weight);
    if (!known) return std::nullopt;
    for (const std::string& name : known->names)
        for (const std::string& spelled : {name, older_name(name)}) {
            const auto found = tensors_.find(spelled);
            if (found != tensors_.end())
                return Place{found->second.first, found->second.second, known->source};
        }
    return std::nullopt;
}

std::optional<Shape> HuggingFaceModel::shape(const std::string& weight) const {
    const std::optional<Place> place = find(weight);
    if (!place) return std::nullopt;
    const Shape& shape = place->tensor->shape;
    if (shape.rank() != 2) return shape;
    if (place->source->transpose) return Shape{shape[1], shape[0]};
    return Shape{shape[0] - rows_before(*place), shape[1]};
}

void HuggingFaceModel::read(const std::string& weight, float* values) const {
    const Place place = find(weight).value();
    const Shape& shape = place.tensor->shape;
    const Source& source = *place.source;
    if (source.transpose && shape.rank() == 2) {
        std::vector<float> rows(static_cast<std::size_t>(shape.numel()));
        place.file->read(*place.tensor, rows.data());
        for (std::int64_t i = 0; i < shape[0]; ++i)
            for (std::int64_t j = 0; j < shape[1]; ++j)
                values[j * shape[0] + i] = rows[static_cast<std::size_t>(i * shape[1] + j)];
    } else if (const std::int64_t before = rows_before(place); before > 0) {
        std::vector<float> rows(static_cast<std::size_t>(shape.numel()));
        place.file->read(*place.tensor, rows.data());
        std::copy(rows.begin() + before * shape.product(1, shape.rank()), rows.end(), values);
    } else {
        place.file->read(*place.tensor, values);
    }
    if (interleaves(*architecture_, name_, source))
        interleave_halves(values, shape[0], shape.product(1, shape.rank()), sizes().head_size);
    if (source.add != 0)
        for (std::int64_t i = 0; i < shape.numel(); ++i) values[i] += source.add;
}

std::optional<JsonView> HuggingFaceModel::value(const std::string& size,
                                                const std::string& usual) const {
    const auto own = architecture_->hugging_face.sizes.find(size);
    if (own == architecture_->hugging_face.sizes.end()) return config_.root().find_value(usual);
    for (const std::string& key : own->second)
        if (const auto found = config_.root().find_value(key)) return found;
    return std::nullopt;
}

std::int64_t HuggingFaceModel::whole(const std::string& size, const std::string& usual,
                                     std::optional<std::int64_t> otherwise) const {
    const std::optional<JsonView> found = value(size, usual);
    if (!found && otherwise) return *otherwise;
    if (!found) config_.root().at(usual).fail("must be a number");
    if (found->integer() < 1 || found->integer() > largest_size)
        found->fail(cat("is ", found->integer(), ", and must be from 1 to ", largest_size));
    return found->integer();
}

double HuggingFaceModel::number(const std::string& size, const std::string& usual,
                                double otherwise) const {
    const std::optional<JsonView> found = value(size, usual);
    if (!found) return otherwise;
    if (!(found->number() > 0 && found->number() < 1e30))
        found->fail(cat("is ", found->number(), ", and must be above 0"));
    return found->number();
}

std::vector<std::int64_t> HuggingFaceModel::windows(std::int64_t window,
                                                    std::int64_t layers) const {
    std::vector<std::int64_t> all;
    if (const auto types = config_.root().find("layer_types"); types && types->is_array())
        for (const JsonView& type : types->array()) {
            if (type.text() != "sliding_attention" && type.text() != "full_attention")
                type.fail(cat("is '", type.text(),
                              "'; supported are sliding_attention and full_attention"));
            all.push_back(type.text() == "sliding_attention" ? window : 0);
        }
    else if (const auto first = config_.root().find("max_window_layers"); first && window > 0)
        for (std::int64_t i = 0; i < layers; ++i) all.push_back(i >= first->integer() ? window : 0);
    return all;
}

ModelSizes HuggingFaceModel::sizes() const {
    ModelSizes sizes;
    sizes.layers = whole("layers", "num_hidden_layers");
    sizes.width = whole("width", "hidden_size");
    sizes.hidden = whole("hidden", "intermediate_size", 4 * sizes.width);
    sizes.context = whole("context", "max_position_embeddings");
    sizes.heads = whole("heads", "num_attention_heads");
    sizes.key_heads = whole("key_heads", "num_key_value_heads", sizes.heads);
    sizes.head_size = whole("head_size", "head_dim", sizes.width / sizes.heads);
    const Attrs& own = architecture_->models.at(name_);
    sizes.epsilon =
        number("epsilon", "rms_norm_eps", own.has("epsilon") ? own.number("epsilon") : 1e-5);
    sizes.attention_cap = number("attention_cap", "attn_logit_softcapping", 0);
    sizes.logit_cap = number("logit_cap", "final_logit_softcapping", 0);
    if (const double scalar = number("attention_scalar", "query_pre_attn_scalar", 0); scalar > 0)
        sizes.attention_scale = 1 / std::sqrt(scalar);
    read_table_sizes(*this, sizes);
    sizes.context -= first_position();
    read_rotary(config_.root(), sizes);
    const auto use = config_.root().find("use_sliding_window");
    const std::int64_t window = use && !use->boolean() ? 0 : whole("window", "sliding_window", 0);
    sizes.windows = windows(window, sizes.layers);
    if (!sizes.windows.empty() && std::ssize(sizes.windows) != sizes.layers)
        config_.root()
            .at("layer_types")
            .fail(cat("has ", sizes.windows.size(), " types for ", sizes.layers, " layers"));
    complete_sizes(sizes, window, own, path());
    return sizes;
}

}  // namespace

std::unique_ptr<const ModelFile> open_hugging_face(const std::string& path) {
    return std::make_unique<const HuggingFaceModel>(path);
}

}  // namespace dlprim::language
