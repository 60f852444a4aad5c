// SPDX-License-Identifier: MIT
// Bodies of OpenAI's API.
#include "serve/request.hpp"

#include "serve/body.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::tools {

namespace {

/// Members that would change an answer, and that are not there here.
void refuse_unsupported(const Json& body, bool chat) {
    const auto asks = [&](const char* name) {
        const Json* const value = find(body, name);
        if (value == nullptr) return false;
        if (value->is_boolean()) return value->get<bool>();
        if (value->is_number()) return value->get<double>() != 0;
        return !value->empty();
    };
    std::vector<const char*> names{"frequency_penalty", "presence_penalty", "logit_bias"};
    names.push_back(chat ? "tools" : "echo");
    names.push_back(chat ? "functions" : "suffix");
    for (const char* const name : names)
        if (asks(name))
            throw Error(ErrorKind::unsupported, std::string("'") + name + "' is not supported");
    for (const char* const name : {"n", "best_of"})
        if (integer(body, name, 1, 1, 1 << 20) != 1)
            throw Error(ErrorKind::unsupported,
                        std::string("'") + name + "' other than 1 is not supported");
    const Json* const format = find(body, "response_format");
    if (format != nullptr && (!format->is_object() || format->value("type", Json()) != "text"))
        throw Error(ErrorKind::unsupported,
                    "'response_format' other than {\"type\": \"text\"} is not supported");
}

std::vector<std::string> stop_texts(const Json& body) {
    constexpr std::size_t most = 16, longest = 1000;
    std::vector<std::string> stop;
    const Json* const value = find(body, "stop");
    if (value == nullptr) return stop;
    if (value->is_string()) {
        stop.push_back(text(*value, "stop"));
    } else if (value->is_array() && value->size() <= most) {
        for (const Json& one : *value) stop.push_back(text(one, "stop"));
    } else {
        refuse("'stop' is a text or a list of up to 16");
    }
    for (const std::string& one : stop)
        if (one.empty() || one.size() > longest) refuse("a text of 'stop' has 1 to 1000 bytes");
    return stop;
}

GenerateOptions options_of(const Json& body, bool chat, const ServeLimits& limits) {
    GenerateOptions options;
    const std::int64_t usual = chat ? limits.length : std::min<std::int64_t>(16, limits.length);
    // A larger number asks for all that there is.
    constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
    const std::int64_t length = integer(body, "max_tokens", usual, 1, any);
    options.length =
        std::min(limits.length, integer(body, "max_completion_tokens", length, 1, any));
    options.temperature = number(body, "temperature", 1);
    options.top_p = number(body, "top_p", 1);
    options.top_k = integer(body, "top_k", 0, 0, any);
    options.min_p = number(body, "min_p", 0);
    options.repetition_penalty = number(body, "repetition_penalty", 1);
    options.seed = static_cast<std::uint64_t>(integer(
        body, "seed", 1, std::numeric_limits<std::int64_t>::min() / 4, std::int64_t{1} << 62));
    options.stop = stop_texts(body);
    constexpr std::int64_t most_alternatives = 20;
    if (chat) {
        options.log_probabilities = truth(body, "logprobs", false);
        options.alternatives = integer(body, "top_logprobs", 0, 0, most_alternatives);
        if (options.alternatives > 0 && !options.log_probabilities)
            refuse("'top_logprobs' needs 'logprobs'");
    } else {
        options.log_probabilities = find(body, "logprobs") != nullptr;
        options.alternatives = integer(body, "logprobs", 0, 0, most_alternatives);
    }
    return options;
}

/// The text of a message: a text, or a list of parts that are texts.
std::string content_of(const Json& message) {
    const Json* const content = find(message, "content");
    if (content == nullptr) return "";
    if (content->is_string()) return content->get<std::string>();
    if (!content->is_array()) refuse("'content' is a text or a list of parts");
    std::string all;
    for (const Json& part : *content) {
        if (!part.is_object() || part.value("type", Json()) != "text" ||
            find(part, "text") == nullptr)
            throw Error(ErrorKind::unsupported,
                        "parts of 'content' other than texts are not supported");
        all += text(*find(part, "text"), "text");
    }
    return all;
}

std::vector<std::int32_t> chat_prompt(const LanguageModel& model, const Json& body,
                                      const ServeLimits& limits) {
    const Json* const messages = find(body, "messages");
    if (messages == nullptr || !messages->is_array() || messages->empty() ||
        std::ssize(*messages) > limits.messages)
        refuse("'messages' is a list of 1 to " + std::to_string(limits.messages) + " messages");
    std::vector<ChatMessage> chat;
    for (const Json& message : *messages) {
        if (!message.is_object() || find(message, "role") == nullptr)
            refuse("a message is an object with 'role' and 'content'");
        chat.push_back({text(*find(message, "role"), "role"), content_of(message)});
    }
    ChatOptions options;
    if (const Json* const variables = find(body, "chat_template_kwargs")) {
        if (!variables->is_object()) refuse("'chat_template_kwargs' is an object");
        for (const char* const name : {"messages", "bos_token", "eos_token"})
            if (variables->contains(name))
                refuse(std::string("'chat_template_kwargs' sets '") + name + "'");
        options.variables = variables->dump();
    }
    return model.encode_chat(chat, options);
}

std::vector<std::vector<std::int32_t>> plain_prompts(const LanguageModel& model, const Json& body,
                                                     const ServeLimits& limits) {
    const Json* const prompt = find(body, "prompt");
    const bool list = prompt != nullptr && prompt->is_array() && !prompt->empty();
    if (prompt == nullptr || (!prompt->is_string() && !list))
        refuse("'prompt' is a text, tokens, or a list of these");
    if (prompt->is_string()) return {model.encode(prompt->get<std::string>())};
    if (prompt->front().is_number()) return {token_list(*prompt, "prompt")};
    if (std::ssize(*prompt) > limits.prompts)
        refuse("'prompt' has more than " + std::to_string(limits.prompts) + " prompts");
    std::vector<std::vector<std::int32_t>> prompts;
    for (const Json& one : *prompt)
        prompts.push_back(one.is_array() ? token_list(one, "prompt")
                                         : model.encode(text(one, "prompt")));
    return prompts;
}

std::string_view finish_reason(const GenerateResult& result) {
    using End = GenerateResult::End;
    return result.end == End::token || result.end == End::stop ? "stop" : "length";
}

}  // namespace

ServeRequest parse_request(const LanguageModel& model, std::string_view body_text, bool chat,
                           const ServeLimits& limits) {
    const Json body = parse_body(body_text);
    refuse_unsupported(body, chat);
    ServeRequest request;
    request.chat = chat;
    request.stream = truth(body, "stream", false);
    if (const Json* const options = find(body, "stream_options")) {
        if (!options->is_object()) refuse("'stream_options' is an object");
        request.include_usage = truth(*options, "include_usage", false);
    }
    request.options = options_of(body, chat, limits);
    if (chat)
        request.prompts.push_back(chat_prompt(model, body, limits));
    else
        request.prompts = plain_prompts(model, body, limits);
    for (const auto& prompt : request.prompts) {
        if (prompt.empty()) refuse("the prompt is empty");
        if (std::ssize(prompt) > model.context_length())
            refuse("the prompt has " + std::to_string(prompt.size()) + " tokens, and at most " +
                   std::to_string(model.context_length()) + " are remembered");
        for (const std::int32_t token : prompt)
            if (token >= model.vocabulary())
                refuse("token " + std::to_string(token) + " is none of the vocabulary of " +
                       std::to_string(model.vocabulary()));
    }
    return request;
}

Answer::Answer(const LanguageModel& model, const ServeRequest& request, std::string model_name,
               std::string id, std::int64_t created)
    : model_(model),
      request_(request),
      name_(std::move(model_name)),
      id_((request.chat ? "chatcmpl-" : "cmpl-") + std::move(id)),
      created_(created) {}

Json Answer::frame(bool is_part) const {
    const char* const object = !request_.chat ? "text_completion"
                               : is_part      ? "chat.completion.chunk"
                                              : "chat.completion";
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", name_}};
}

Json Answer::probabilities(const std::vector<std::int32_t>& tokens,
                           const std::vector<double>& log_probabilities,
                           const std::vector<std::vector<TokenProbability>>& others) const {
    if (!request_.options.log_probabilities) return nullptr;
    const auto entry = [&](std::int32_t token, double probability) {
        const std::string text = model_.decode({token});
        Json bytes = Json::array();
        for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
        return Json{{"token", text}, {"logprob", probability}, {"bytes", bytes}};
    };
    if (request_.chat) {
        Json content = Json::array();
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            Json one = entry(tokens[i], log_probabilities[i]);
            one["top_logprobs"] = Json::array();
            for (const TokenProbability& other : others[i])
                one["top_logprobs"].push_back(entry(other.token, other.log_probability));
            content.push_back(std::move(one));
        }
        return {{"content", content}};
    }
    Json texts = Json::array(), tops = Json::array();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        texts.push_back(model_.decode({tokens[i]}));
        Json top = Json::object();
        for (const TokenProbability& other : others[i])
            top[text_of_json(model_.decode({other.token}))] = other.log_probability;
        tops.push_back(std::move(top));
    }
    return {{"tokens", texts}, {"token_logprobs", log_probabilities}, {"top_logprobs", tops}};
}

Json Answer::opening() const {
    Json json = frame(true);
    json["choices"] = Json::array({{{"index", 0},
                                    {"delta", {{"role", "assistant"}, {"content", ""}}},
                                    {"finish_reason", nullptr}}});
    return json;
}

Json Answer::part(std::size_t index, const GeneratedPiece& piece) const {
    Json choice{{"index", index}};
    if (request_.chat)
        choice["delta"] = {{"content", piece.text}};
    else
        choice["text"] = piece.text;
    if (request_.options.log_probabilities && piece.token)
        choice["logprobs"] =
            probabilities({*piece.token}, {piece.log_probability}, {piece.alternatives});
    choice["finish_reason"] = nullptr;
    Json json = frame(true);
    json["choices"] = Json::array({std::move(choice)});
    return json;
}

Json Answer::closing(std::size_t index, const GenerateResult& result) const {
    Json choice{{"index", index}};
    if (request_.chat)
        choice["delta"] = Json::object();
    else
        choice["text"] = "";
    choice["finish_reason"] = finish_reason(result);
    Json json = frame(true);
    json["choices"] = Json::array({std::move(choice)});
    return json;
}

Json Answer::usage_part(const std::vector<GenerateResult>& results) const {
    Json json = frame(true);
    json["choices"] = Json::array();
    json["usage"] = usage_of(results);
    return json;
}

Json Answer::whole(const std::vector<GenerateResult>& results) const {
    Json choices = Json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
        const GenerateResult& result = results[i];
        Json choice{{"index", i}};
        if (request_.chat)
            choice["message"] = {{"role", "assistant"}, {"content", result.text}};
        else
            choice["text"] = result.text;
        choice["logprobs"] =
            probabilities(result.tokens, result.log_probabilities, result.alternatives);
        choice["finish_reason"] = finish_reason(result);
        choices.push_back(std::move(choice));
    }
    Json json = frame(false);
    json["choices"] = std::move(choices);
    json["usage"] = usage_of(results);
    return json;
}

Json usage_of(const std::vector<GenerateResult>& results) {
    std::int64_t read = 0, made = 0, remembered = 0;
    for (const GenerateResult& result : results) {
        read += result.prompt_tokens;
        made += std::ssize(result.tokens);
        remembered += result.remembered_tokens;
    }
    return {{"prompt_tokens", read},
            {"completion_tokens", made},
            {"total_tokens", read + made},
            {"prompt_tokens_details", {{"cached_tokens", remembered}}}};
}

std::string text_of_json(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_json(std::string_view message, std::string_view type) {
    return text_of_json(
        {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}});
}

}  // namespace dlprim::tools
