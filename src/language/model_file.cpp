// SPDX-License-Identifier: MIT
// Models in files: what all formats have in common.
#include "language/model_file.hpp"

#include "base/text.hpp"
#include "language/gguf_model.hpp"
#include "language/hugging_face_model.hpp"

#include <cmath>
#include <filesystem>

namespace dlprim::language {

void complete_sizes(ModelSizes& sizes, std::int64_t window, const Attrs& own,
                    const std::string& path) {
    if (own.has("rotary")) sizes.rotary = own.integer("rotary");
    if (own.has("windowed_rotary_base") && sizes.windowed_rotary_base == 0)
        sizes.windowed_rotary_base = own.number("windowed_rotary_base");
    if (sizes.head_size < 1 || sizes.heads % sizes.key_heads != 0)
        fail(ErrorKind::format, "'", path, "' has ", sizes.heads, " heads and ", sizes.key_heads,
             " heads of keys, of which the former is no multiple");
    if (sizes.rotary > sizes.head_size || sizes.rotary % 2 != 0)
        fail(ErrorKind::format, "'", path, "' turns ", sizes.rotary,
             " features of heads that have ", sizes.head_size);
    if (sizes.attention_scale == 0)
        sizes.attention_scale = 1 / std::sqrt(static_cast<double>(sizes.head_size));
    if (window > 0 && sizes.windows.empty() && own.has("windows")) {
        const Ints pattern = own.ints("windows");
        for (std::int64_t i = 0; i < sizes.layers; ++i)
            sizes.windows.push_back(window * pattern[static_cast<std::size_t>(i) % pattern.size()]);
    }
    sizes.windows.resize(static_cast<std::size_t>(sizes.layers), 0);
}

void read_table_sizes(const ModelFile& file, ModelSizes& sizes) {
    const std::optional<Shape> table = file.shape("token_embd.weight");
    if (!table || table->rank() != 2)
        fail(ErrorKind::format, "'", file.path(),
             "' has no table of embeddings 'token_embd.weight'");
    sizes.vocabulary = (*table)[0];
    const std::optional<Shape> types = file.shape("token_types.weight");
    if (types && types->rank() == 2) sizes.token_types = (*types)[0];
}

std::map<std::string, double> named_sizes(const ModelSizes& sizes, std::int64_t layer) {
    const auto query = static_cast<double>(sizes.heads * sizes.head_size);
    const auto key = static_cast<double>(sizes.key_heads * sizes.head_size);
    const auto width = static_cast<double>(sizes.width), hidden = static_cast<double>(sizes.hidden);
    const bool in_layer = layer < std::ssize(sizes.windows);  // not in the steps after the layers
    const auto window = in_layer ? sizes.windows[static_cast<std::size_t>(layer)] : 0;
    return {{"vocabulary", static_cast<double>(sizes.vocabulary)},
            {"context", static_cast<double>(sizes.context)},
            {"token_types", static_cast<double>(sizes.token_types)},
            {"width", width},
            {"root_of_width", std::sqrt(width)},
            {"hidden", hidden},
            {"gate_up_width", 2 * hidden},
            {"head_size", static_cast<double>(sizes.head_size)},
            {"query_width", query},
            {"key_width", key},
            {"query_key_width", query + key},
            {"qkv_width", query + 2 * key},
            {"epsilon", sizes.epsilon},
            {"attention_scale", sizes.attention_scale},
            {"attention_cap", sizes.attention_cap},
            {"logit_cap", sizes.logit_cap},
            {"window", static_cast<double>(window)}};
}

std::unique_ptr<const ModelFile> open_model(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error) ? open_hugging_face(path) : open_gguf(path);
}

}  // namespace dlprim::language
