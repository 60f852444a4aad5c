// SPDX-License-Identifier: MIT
// Language models written as folders of Hugging Face's. Of a model that is a folder already,
// config.json and the files that say how text becomes tokens are taken along; of a GGUF file they
// are made of what it says.
#include <dlprim/language_convert.hpp>

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/safetensors/writer.hpp"
#include "language/conversion.hpp"
#include "language/head_rows.hpp"
#include "language/tokenizer_json.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

namespace dlprim {

namespace language {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A folder that takes its name when it is whole, and vanishes otherwise.
class NewFolder {
  public:
    explicit NewFolder(const std::string& path)
        : path_(path), temporary_(cat(path, ".", getpid(), ".part")) {
        std::error_code error;
        const bool is_free = !fs::exists(path_, error) ||
                             (fs::is_directory(path_, error) && fs::is_empty(path_, error));
        if (!is_free || error)
            fail(ErrorKind::io, "'", path, "' exists and is no empty folder: give another name");
        if (!fs::create_directories(temporary_, error))
            fail(ErrorKind::io, "cannot create the folder '", temporary_, "': ", error.message());
    }
    ~NewFolder() {
        std::error_code ignored;
        fs::remove_all(temporary_, ignored);
    }
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;

    std::string file(const std::string& name) const { return cat(temporary_, "/", name); }
    void write(const std::string& name, const Json& json) const {
        write_file_atomically(file(name), json.dump(2) + "\n");
    }
    void commit() const {
        std::error_code error;
        fs::rename(temporary_, path_, error);
        if (error) fail(ErrorKind::io, "cannot create the folder '", path_, "': ", error.message());
    }

  private:
    std::string path_, temporary_;
};

/// What a folder has beside its configuration and its weights.
constexpr const char* other_files[] = {"generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer.model",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.txt",
                                       "vocab.json",
                                       "merges.txt",
                                       "chat_template.jinja",
                                       "modules.json",
                                       "1_Pooling/config.json",
                                       "sentence_bert_config.json",
                                       "config_sentence_transformers.json"};

void set_type(Json& config, bool half) {
    config.erase("dtype");
    config["torch_dtype"] = half ? "float16" : "float32";
}

void copy_files(const std::string& from, const NewFolder& to, bool half) {
    Json config = Json::parse(read_file(from + "/config.json"));
    set_type(config, half);
    to.write("config.json", config);
    for (const std::string name : other_files) {
        std::error_code error;
        if (!fs::exists(cat(from, "/", name), error)) continue;
        fs::create_directories(fs::path(to.file(name)).parent_path(), error);
        write_file_atomically(to.file(name), read_file(cat(from, "/", name)));
    }
}

/// The class and the type of the model that the description of its architecture has for folders.
std::pair<std::string, std::string> class_of(const ModelFile& file, const ModelSizes& sizes,
                                             const Architecture& architecture) {
    const std::string name = file.architecture();
    const bool has_windows = std::any_of(sizes.windows.begin(), sizes.windows.end(),
                                         [](std::int64_t window) { return window > 0; });
    const auto& written = architecture.hugging_face.written;
    auto found = has_windows ? written.find(name + " with windows") : written.end();
    if (found == written.end()) found = written.find(name);
    const bool lacks_types = architecture.encoder && sizes.token_types == 0;
    if (found == written.end() || lacks_types)
        fail(ErrorKind::unsupported, "'", file.path(), "', a model of the architecture ", name,
             lacks_types ? " without types of tokens" : "",
             ", cannot be written as a folder of Hugging Face's");
    return {found->second.at(0), found->second.at(1)};
}

/// A number of GGUF, which is a float, as the double with the fewest digits.
double decimal(double value) {
    char text[64];
    const char* const end =
        std::to_chars(std::begin(text), std::end(text), static_cast<float>(value)).ptr;
    std::from_chars(std::begin(text), end, value);
    return value;
}

void add_rotary(const ModelFile& file, const ModelSizes& sizes, Json& config) {
    if (!sizes.rotary_factors.empty())
        fail(ErrorKind::unsupported, "'", file.path(),
             "' scales positions by factors for each pair of features, and does not say by which "
             "method they were found, as config.json must");
    config["head_dim"] = sizes.head_size;
    config["rope_theta"] = decimal(sizes.rotary_base);
    if (sizes.rotary != sizes.head_size)
        config["partial_rotary_factor"] =
            static_cast<double>(sizes.rotary) / static_cast<double>(sizes.head_size);
    if (sizes.windowed_rotary_base > 0)
        config["rope_local_base_freq"] = decimal(sizes.windowed_rotary_base);
    if (sizes.rotary_scale != 1)
        config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", decimal(sizes.rotary_scale)}};
    config["attention_bias"] = file.shape("blk.0.attn_q.bias").has_value();
    config["mlp_bias"] = file.shape("blk.0.ffn_up.bias").has_value();
}

void add_windows(const ModelSizes& sizes, Json& config) {
    const std::int64_t window = *std::max_element(sizes.windows.begin(), sizes.windows.end());
    if (window == 0) {
        config["sliding_window"] = nullptr;
        return;
    }
    config["sliding_window"] = window;
    config["use_sliding_window"] = true;
    for (const std::int64_t own : sizes.windows)
        config["layer_types"].push_back(own > 0 ? "sliding_attention" : "full_attention");
}

/// Factors and caps of attention, which classes have values of their own for where there are none.
void add_scores(const ModelSizes& sizes, Json& config) {
    const auto or_null = [](double cap) { return cap > 0 ? Json(decimal(cap)) : Json(nullptr); };
    config["attn_logit_softcapping"] = or_null(sizes.attention_cap);
    config["final_logit_softcapping"] = or_null(sizes.logit_cap);
    const double scalar = 1 / (sizes.attention_scale * sizes.attention_scale);
    const bool is_whole = std::abs(scalar - std::round(scalar)) < 1e-5 * scalar;
    config["query_pre_attn_scalar"] =
        is_whole ? Json(static_cast<std::int64_t>(std::round(scalar))) : Json(scalar);
}

/// What the model must have by its description: "gelu", or true and false.
void add_expected(const Architecture& architecture, Json& config) {
    for (const auto& [key, values] : architecture.hugging_face.expects)
        if (values[0] == "true" || values[0] == "false")
            config[key] = values[0] == "true";
        else
            config[key] = values[0];
}

Json config_of(const ModelFile& file, const ModelSizes& sizes, const Architecture& architecture) {
    const auto [name, type] = class_of(file, sizes, architecture);
    Json config{{"architectures", {name}}, {"model_type", type}};
    const auto set = [&](const char* size, const char* usual, Json value) {
        const auto own = architecture.hugging_face.sizes.find(size);
        const bool usually = own == architecture.hugging_face.sizes.end();
        config[usually ? usual : own->second.front()] = std::move(value);
    };
    set("layers", "num_hidden_layers", sizes.layers);
    set("width", "hidden_size", sizes.width);
    set("hidden", "intermediate_size", sizes.hidden);
    set("context", "max_position_embeddings", sizes.context);
    set("heads", "num_attention_heads", sizes.heads);
    set("epsilon", "rms_norm_eps", decimal(sizes.epsilon));
    config["vocab_size"] = sizes.vocabulary;
    if (sizes.token_types > 0) config["type_vocab_size"] = sizes.token_types;
    add_expected(architecture, config);
    if (sizes.rotary > 0) {
        set("key_heads", "num_key_value_heads", sizes.key_heads);
        add_rotary(file, sizes, config);
        add_windows(sizes, config);
        add_scores(sizes, config);
    }
    config["tie_word_embeddings"] = !file.shape("output.weight");
    return config;
}

/// tokenizer.json and what stands beside it, and the tokens in config.json.
void write_tokenizer(const ModelFile& file, const NewFolder& to, Json& config) {
    const TokenizerTables tables = file.tokenizer();
    to.write("tokenizer.json", tokenizer_json(tables));
    const auto name = [&](std::int64_t token) {
        return tables.tokens.at(static_cast<std::size_t>(token));
    };
    Json how{{"tokenizer_class", "PreTrainedTokenizerFast"}};
    if (const auto chat = file.chat_template()) how["chat_template"] = *chat;
    if (tables.separator || tables.model == "bert") {
        if (tables.begin) how["cls_token"] = name(*tables.begin);
        if (tables.separator) how["sep_token"] = name(*tables.separator);
        if (tables.unknown) how["unk_token"] = name(*tables.unknown);
    } else {
        if (tables.begin) how["bos_token"] = name(*tables.begin);
        if (!tables.ends.empty()) how["eos_token"] = name(tables.ends[0]);
        config["bos_token_id"] = tables.begin ? Json(*tables.begin) : Json(nullptr);
        config["pad_token_id"] = nullptr;  // some classes have one that is no token of small models
        if (tables.ends.size() == 1) config["eos_token_id"] = tables.ends[0];
        if (tables.ends.size() != 1) config["eos_token_id"] = tables.ends;
    }
    to.write("tokenizer_config.json", how);
}

void write_pooling(const ModelFile& file, const ModelSizes& sizes, const NewFolder& to) {
    const Pooling::By by = file.pooling().by;
    std::error_code ignored;  // writing says what is wrong
    fs::create_directories(to.file("1_Pooling"), ignored);
    to.write("1_Pooling/config.json", {{"word_embedding_dimension", sizes.width},
                                       {"pooling_mode_cls_token", by == Pooling::By::first},
                                       {"pooling_mode_mean_tokens", by == Pooling::By::mean},
                                       {"pooling_mode_lasttoken", by == Pooling::By::last}});
    Json modules = Json::array();
    for (const auto& [kind, path] :
         {std::pair("Transformer", ""), {"Pooling", "1_Pooling"}, {"Normalize", "2_Normalize"}})
        modules.push_back({{"idx", modules.size()},
                           {"name", cat(modules.size())},
                           {"path", path},
                           {"type", cat("sentence_transformers.models.", kind)}});
    to.write("modules.json", modules);
}

void write_configuration(const ModelFile& file, const ModelSizes& sizes,
                         const Architecture& architecture, bool half, const NewFolder& to) {
    Json config = config_of(file, sizes, architecture);
    set_type(config, half);
    write_tokenizer(file, to, config);
    if (architecture.encoder) write_pooling(file, sizes, to);
    to.write("config.json", config);
}

/// A tensor of the folder, and where its values come from.
struct Target {
    std::string weight;
    Shape shape;  ///< of the weight
    const Architecture::HuggingFace::Source* source;
    std::int64_t before = 0;  ///< rows of zeros in front, for positions that no token has
};

/// The opposite of HuggingFaceModel::read().
void read_target(const ModelFile& file, const Architecture& architecture, std::int64_t head,
                 const Target& target, float* values) {
    const Shape& shape = target.shape;
    const auto count = static_cast<std::size_t>(shape.numel());
    const std::int64_t columns = shape.product(1, shape.rank());
    float* const own = values + target.before * columns;
    std::fill(values, own, 0.0f);
    file.read(target.weight, own);
    if (target.source->add != 0)
        for (std::size_t i = 0; i < count; ++i) own[i] -= target.source->add;
    if (interleaves(architecture, file.architecture(), *target.source))
        part_halves(own, shape[0], columns, head);
    if (!target.source->transpose || shape.rank() != 2) return;
    const std::vector<float> rows(own, own + count);
    for (std::int64_t i = 0; i < shape[0]; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            own[j * shape[0] + i] = rows[static_cast<std::size_t>(i * columns + j)];
}

void write_weights(const ModelFile& file, const ModelSizes& sizes, const Architecture& architecture,
                   bool half, const std::string& path) {
    const Attrs& own = architecture.models.at(file.architecture());
    const std::int64_t first = own.has("first_position") ? own.integer("first_position") : 0;
    FloatTensors contents;
    std::map<std::string, Target> targets;
    for (const std::string& weight : weights_of(file, sizes, architecture)) {
        const auto known = hugging_face_weight(architecture, weight);
        if (!known)
            fail(ErrorKind::unsupported, "the description of the architecture ", architecture.name,
                 " does not say what folders call '", weight, "'");
        const std::string stored = file.stored_name(weight);
        const std::string name = stored.empty() ? known->names.front() : stored;
        Target target{weight, file.shape(weight).value(), known->source};
        Shape shape = target.shape;
        if (known->source->transpose && shape.rank() == 2) shape = Shape{shape[1], shape[0]};
        if (known->source->positions) {
            target.before = first;
            shape = shape.with(0, shape[0] + first);
        }
        contents.tensors.push_back({name, shape, half && shape.rank() > 1});
        targets.emplace(name, std::move(target));
    }
    contents.read = [&](const FloatTensors::Tensor& tensor, float* values) {
        read_target(file, architecture, sizes.head_size, targets.at(tensor.name), values);
    };
    write_safetensors(path, contents);
}

}  // namespace

}  // namespace language

void convert_to_hugging_face(const std::string& model, const std::string& folder, bool half,
                             const std::string& adapter) {
    using namespace language;
    const std::shared_ptr<const ModelFile> file = open_with_adapter(model, adapter);
    const ModelSizes sizes = file->sizes();
    const Architecture& architecture = find_architecture(file->architecture());
    std::string path = folder;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    const NewFolder made(path);
    std::error_code error;
    if (fs::is_directory(model, error))
        copy_files(model, made, half);
    else
        write_configuration(*file, sizes, architecture, half, made);
    write_weights(*file, sizes, architecture, half, made.file("model.safetensors"));
    made.commit();
}

}  // namespace dlprim
