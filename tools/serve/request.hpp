// SPDX-License-Identifier: MIT
// What OpenAI's API asks for: bodies of requests as a prompt and options, and answers as JSON.
// Bodies are hostile: what is wrong in one is an Error(invalid_argument) that names the member.
#pragma once

#include <dlprim/language.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::tools {

struct ServeLimits {
    std::int64_t length = 4096;    ///< the most tokens of an answer
    std::int64_t prompts = 16;     ///< the most prompts in one request
    std::int64_t inputs = 2048;    ///< the most texts of one request for embeddings
    std::int64_t messages = 2048;  ///< the most messages of a chat
};

struct ServeRequest {
    bool chat = false, stream = false, include_usage = false;
    std::vector<std::vector<std::int32_t>> prompts;
    GenerateOptions options;
};

/// `chat`: the body is of /v1/chat/completions, else of /v1/completions. Encodes prompts, which
/// does not touch what the model remembers. Throws Error(invalid_argument), what
/// LanguageModel::encode_chat() throws, and Error(unsupported) for members that ask for what there
/// is not.
ServeRequest parse_request(const LanguageModel& model, std::string_view body, bool chat,
                           const ServeLimits& limits);

/// Makes the objects of one answer.
class Answer {
  public:
    Answer(const LanguageModel& model, const ServeRequest& request, std::string model_name,
           std::string id, std::int64_t created);

    /// A part of a stream: the text of a piece, with its probabilities if asked for.
    nlohmann::ordered_json part(std::size_t index, const GeneratedPiece& piece) const;
    /// The first part of a chat's stream, and the last part of a prompt's.
    nlohmann::ordered_json opening() const;
    nlohmann::ordered_json closing(std::size_t index, const GenerateResult& result) const;
    /// The part behind all others, if asked for.
    nlohmann::ordered_json usage_part(const std::vector<GenerateResult>& results) const;
    /// The whole answer.
    nlohmann::ordered_json whole(const std::vector<GenerateResult>& results) const;

  private:
    nlohmann::ordered_json frame(bool is_part) const;
    nlohmann::ordered_json probabilities(
        const std::vector<std::int32_t>& tokens, const std::vector<double>& log_probabilities,
        const std::vector<std::vector<TokenProbability>>& others) const;

    const LanguageModel& model_;
    const ServeRequest& request_;
    std::string name_, id_;
    std::int64_t created_;
};

nlohmann::ordered_json usage_of(const std::vector<GenerateResult>& results);
/// An object as text. What is no UTF-8 is replaced.
std::string text_of_json(const nlohmann::ordered_json& json);
/// OpenAI's object for an error.
std::string error_json(std::string_view message, std::string_view type);

}  // namespace dlprim::tools
