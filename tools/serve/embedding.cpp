// SPDX-License-Identifier: MIT
// Bodies of /v1/embeddings.
#include "serve/embedding.hpp"

#include "serve/body.hpp"

#include <dlprim/error.hpp>

#include <cstring>

namespace dlprim::tools {

namespace {

std::vector<std::vector<std::int32_t>> texts_of(const EmbeddingModel& model, const Json& body,
                                                const ServeLimits& limits) {
    const bool truncate = truth(body, "truncate", false);
    const Json* const input = find(body, "input");
    const bool list = input != nullptr && input->is_array() && !input->empty();
    if (input == nullptr || (!input->is_string() && !list))
        refuse("'input' is a text, tokens, or a list of these");
    const auto encode = [&](const Json& one) { return model.encode(text(one, "input"), truncate); };
    if (input->is_string()) return {encode(*input)};
    if (input->front().is_number()) return {token_list(*input, "input")};
    if (std::ssize(*input) > limits.inputs)
        refuse("'input' has more than " + std::to_string(limits.inputs) + " texts");
    std::vector<std::vector<std::int32_t>> texts;
    for (const Json& one : *input)
        texts.push_back(one.is_array() ? token_list(one, "input") : encode(one));
    return texts;
}

std::string base64(const float* values, std::int64_t count) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<unsigned char> bytes(static_cast<std::size_t>(count) * sizeof(float));
    std::memcpy(bytes.data(), values, bytes.size());
    std::string made;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t there = std::min<std::size_t>(3, bytes.size() - at);
        unsigned three = 0;
        for (std::size_t i = 0; i < 3; ++i) three = three << 8 | (i < there ? bytes[at + i] : 0U);
        for (std::size_t i = 0; i < 4; ++i)
            made += i <= there ? digits[three >> (18 - 6 * i) & 63] : '=';
    }
    return made;
}

}  // namespace

EmbeddingRequest parse_embedding_request(const EmbeddingModel& model, std::string_view body_text,
                                         const ServeLimits& limits) {
    const Json body = parse_body(body_text);
    EmbeddingRequest request;
    if (const Json* const format = find(body, "encoding_format")) {
        if (*format != "float" && *format != "base64")
            refuse("'encoding_format' is \"float\" or \"base64\"");
        request.base64 = *format == "base64";
    }
    constexpr std::int64_t any = std::int64_t{1} << 30;
    if (integer(body, "dimensions", model.features(), 1, any) != model.features())
        throw Error(ErrorKind::unsupported, "'dimensions' other than the model's " +
                                                std::to_string(model.features()) +
                                                " is not supported");
    request.texts = texts_of(model, body, limits);
    return request;
}

nlohmann::ordered_json embedding_answer(const EmbeddingRequest& request,
                                        const std::vector<float>& rows, std::int64_t features,
                                        const std::string& model_name) {
    Json data = Json::array();
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < request.texts.size(); ++i) {
        const float* const row = rows.data() + i * static_cast<std::size_t>(features);
        Json embedding;
        if (request.base64)
            embedding = base64(row, features);
        else
            embedding = std::vector<float>(row, row + features);
        data.push_back(
            {{"object", "embedding"}, {"index", i}, {"embedding", std::move(embedding)}});
        tokens += request.texts[i].size();
    }
    return {{"object", "list"},
            {"data", std::move(data)},
            {"model", model_name},
            {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace dlprim::tools
