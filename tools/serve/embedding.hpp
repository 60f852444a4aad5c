// SPDX-License-Identifier: MIT
// What OpenAI's API asks for at /v1/embeddings, and answers.
#pragma once

#include "serve/request.hpp"

#include <dlprim/embedding_model.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::tools {

struct EmbeddingRequest {
    std::vector<std::vector<std::int32_t>> texts;
    bool base64 = false;  ///< vectors are the bytes of their floats
};

/// Encodes texts. Throws Error(invalid_argument), which names the member, and Error(unsupported).
EmbeddingRequest parse_embedding_request(const EmbeddingModel& model, std::string_view body,
                                         const ServeLimits& limits);

/// The answer. `rows` are the vectors of all texts.
nlohmann::ordered_json embedding_answer(const EmbeddingRequest& request,
                                        const std::vector<float>& rows, std::int64_t features,
                                        const std::string& model_name);

}  // namespace dlprim::tools
