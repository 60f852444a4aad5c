// SPDX-License-Identifier: MIT
// Adapters in files as peft writes them.
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"
#include "formats/safetensors/file.hpp"
#include "formats/safetensors/writer.hpp"
#include "language/adapter.hpp"
#include "language/head_rows.hpp"
#include "language/products.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <set>

namespace dlprim::language {

namespace {

constexpr const char* config_name = "/adapter_config.json";
constexpr const char* weights_name = "/adapter_model.safetensors";

/// Of a matrix of the product, in the file.
std::string tensor_name(const Product& product, char letter) {
    return cat("base_model.model.", product.module, ".lora_", letter, ".weight");
}

/// Whether a value says that a feature is used which is not supported.
bool is_used(const std::optional<JsonView>& value) {
    if (!value) return false;
    if (value->is_array()) return !value->array().empty();
    if (value->is_object()) return !value->object().empty();
    return value->boolean();
}

void check_kind(const JsonView& config) {
    if (config.at("peft_type").text() != "LORA")
        fail(ErrorKind::unsupported, config.at("peft_type").text(),
             " adapters are not supported; LORA is");
    for (const char* feature : {"use_dora", "rank_pattern", "alpha_pattern", "modules_to_save"})
        if (is_used(config.find_value(feature)))
            config.at(feature).fail("is a feature of adapters that is not supported");
    if (const auto bias = config.find_value("bias"); bias && bias->text() != "none")
        bias->fail(cat("is '", bias->text(), "'; adapters with 'none' are supported"));
}

AdapterOptions read_options(const JsonView& config, double& scale) {
    check_kind(config);
    AdapterOptions options;
    options.rank = config.at("r").integer();
    if (options.rank < 1 || options.rank > 65536) config.at("r").fail("must be from 1 to 65536");
    options.alpha = config.at("lora_alpha").number();
    const auto rooted = config.find_value("use_rslora");
    const auto rank = static_cast<double>(options.rank);
    scale = options.alpha / (rooted && rooted->boolean() ? std::sqrt(rank) : rank);
    return options;
}

/// The ends of modules' names, or whole names where not all with that end are changed.
std::vector<std::string> targets_of(const Adapter& adapter, const std::vector<Product>& products) {
    std::set<std::string> partly;
    const auto end_of = [](const Product& product) {
        return product.module.substr(product.module.rfind('.') + 1);
    };
    for (const Product& product : products)
        if (!adapter.products.count(product.weight)) partly.insert(end_of(product));
    std::set<std::string> targets;
    for (const Product& product : products)
        if (adapter.products.count(product.weight))
            targets.insert(partly.count(end_of(product)) ? product.module : end_of(product));
    return {targets.begin(), targets.end()};
}

}  // namespace

Adapter Adapter::read(const std::string& given, const ModelFile& model) {
    const std::string folder = given.ends_with(".safetensors")
                                   ? std::filesystem::path(given).parent_path().string()
                                   : given;
    const std::string path = folder + config_name;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        fail(ErrorKind::not_found, "the folder '", folder,
             "' has no adapter_config.json, which an adapter's folder has");
    const JsonDocument config(read_file(path), path);
    Adapter adapter;
    adapter.options = read_options(config.root(), adapter.scale);
    const SafetensorsFile file(folder + weights_name);
    const auto other = [&](const auto&... why) {
        fail(ErrorKind::invalid_argument, "the adapter '", folder, "' is for another model than '",
             model.path(), "': ", why...);
    };
    std::size_t used = 0;
    const std::int64_t head = model.sizes().head_size;
    for (const Product& product : products_of(model)) {
        const auto down = file.tensors().find(tensor_name(product, 'A')),
                   up = file.tensors().find(tensor_name(product, 'B')), none = file.tensors().end();
        if (down == none && up == none) continue;
        if (down == none || up == none)
            fail(ErrorKind::format, "'", file.path(), "' has one of two matrices for '",
                 product.module, "'");
        const std::int64_t rank = adapter.options.rank;
        const Shape down_shape{rank, product.inputs}, up_shape{product.outputs, rank};
        if (down->second.shape != down_shape || up->second.shape != up_shape)
            other("for '", product.module, "' it has matrices ", down->second.shape.str(), " and ",
                  up->second.shape.str(), ", and the model needs ", down_shape.str(), " and ",
                  up_shape.str());
        Matrices& m = adapter.products[product.weight];
        m = {down_shape, up_shape, std::vector<float>(static_cast<std::size_t>(down_shape.numel())),
             std::vector<float>(static_cast<std::size_t>(up_shape.numel()))};
        file.read(down->second, m.down_values.data());
        file.read(up->second, m.up_values.data());
        if (product.interleaved) interleave_halves(m.up_values.data(), product.outputs, rank, head);
        used += 2;
    }
    std::set<std::string> known;
    for (const Product& product : products_of(model))
        for (const char letter : {'A', 'B'}) known.insert(tensor_name(product, letter));
    for (const auto& [name, tensor] : file.tensors())
        if (!known.count(name)) other("the model has no product for its tensor '", name, "'");
    if (used == 0) fail(ErrorKind::format, "'", file.path(), "' has no matrices");
    return adapter;
}

void Adapter::write(const std::string& folder, const ModelFile& model,
                    const std::string& base) const {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(ErrorKind::io, "cannot create '", folder, "': ", error.message());
    const std::vector<Product> all = products_of(model);
    bool transposed = false;
    FloatTensors contents;
    std::map<std::string, std::pair<const Product*, bool>> sources;  ///< and whether it is B
    for (const Product& product : all) {
        const auto found = products.find(product.weight);
        if (found == products.end()) continue;
        transposed = transposed || product.transposed;
        contents.tensors.push_back({tensor_name(product, 'A'), found->second.down});
        contents.tensors.push_back({tensor_name(product, 'B'), found->second.up});
        sources[tensor_name(product, 'A')] = {&product, false};
        sources[tensor_name(product, 'B')] = {&product, true};
    }
    const std::int64_t head = model.sizes().head_size;
    contents.read = [&](const FloatTensors::Tensor& tensor, float* values) {
        const auto& [product, is_up] = sources.at(tensor.name);
        const Matrices& m = products.at(product->weight);
        const std::vector<float>& from = is_up ? m.up_values : m.down_values;
        std::copy(from.begin(), from.end(), values);
        if (is_up && product->interleaved) part_halves(values, m.up[0], m.up[1], head);
    };
    write_safetensors(folder + weights_name, contents);
    const nlohmann::ordered_json config{{"peft_type", "LORA"},
                                        {"task_type", "CAUSAL_LM"},
                                        {"base_model_name_or_path", base},
                                        {"r", options.rank},
                                        {"lora_alpha", options.alpha},
                                        {"lora_dropout", options.dropout},
                                        {"target_modules", targets_of(*this, all)},
                                        {"bias", "none"},
                                        {"fan_in_fan_out", transposed},
                                        {"inference_mode", true}};
    write_file_atomically(folder + config_name, config.dump(2) + "\n");
}

}  // namespace dlprim::language
