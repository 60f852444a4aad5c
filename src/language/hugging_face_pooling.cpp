// SPDX-License-Identifier: MIT
// Pooling in folders of Hugging Face's models.
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"
#include "language/hugging_face_model.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace dlprim::language {

namespace {

bool exists(const std::string& file) {
    std::error_code error;
    return std::filesystem::exists(file, error);
}

/// The folder of the module that pools, within the model's.
std::string pooling_folder(const std::string& folder) {
    const std::string path = folder + "/modules.json";
    std::string found = "1_Pooling";
    if (!exists(path)) return found;
    const JsonDocument document(read_file(path), path);
    for (const JsonView& module : document.root().array()) {
        const std::string& type = module.at("type").text();
        const std::string kind = type.substr(type.rfind('.') + 1);
        if (kind == "Pooling") {
            found = module.at("path").text();
            if (found.find("..") != std::string::npos || found.starts_with('/'))
                module.at("path").fail("leads out of the model's folder");
        } else if (kind != "Transformer" && kind != "Normalize") {
            fail(ErrorKind::unsupported, "'", path, "' has a module of the type '", type,
                 "'; supported are Transformer, Pooling and Normalize");
        }
    }
    return found;
}

struct Mode {
    const char *key, *name;  ///< in older and in newer files
    Pooling::By by;
};
constexpr Mode modes[] = {{"pooling_mode_mean_tokens", "mean", Pooling::By::mean},
                          {"pooling_mode_cls_token", "cls", Pooling::By::first},
                          {"pooling_mode_lasttoken", "lasttoken", Pooling::By::last}};

[[noreturn]] void not_supported(const std::string& path, const std::string& mode) {
    fail(ErrorKind::unsupported, "'", path, "' pools by '", mode,
         "'; supported is one of mean, cls and lasttoken");
}

Pooling::By read_mode(const JsonView& config, const std::string& path) {
    if (const auto named = config.find_value("pooling_mode")) {
        const std::string mode = named->is_text() ? named->text() : "several modes";
        for (const Mode& one : modes)
            if (mode == one.name) return one.by;
        not_supported(path, mode);
    }
    std::optional<Pooling::By> by;
    for (const auto& member : config.object()) {
        const std::string& key = member.first;
        if (!key.starts_with("pooling_mode_") || !member.second.boolean()) continue;
        const auto* const found = std::find_if(std::begin(modes), std::end(modes),
                                               [&](const Mode& one) { return key == one.key; });
        if (found == std::end(modes) || by) not_supported(path, key);
        by = found->by;
    }
    return by.value_or(Pooling::By::mean);
}

}  // namespace

Pooling read_pooling(const std::string& folder) {
    Pooling how;
    const std::string path = cat(folder, "/", pooling_folder(folder), "/config.json"),
                      sizes = folder + "/sentence_bert_config.json";
    if (exists(path)) how.by = read_mode(JsonDocument(read_file(path), path).root(), path);
    if (exists(sizes)) {
        const JsonDocument document(read_file(sizes), sizes);
        const auto longest = document.root().find_value("max_seq_length");
        if (longest && longest->integer() < 1) longest->fail("must be 1 or more");
        if (longest) how.longest = longest->integer();
    }
    return how;
}

}  // namespace dlprim::language
