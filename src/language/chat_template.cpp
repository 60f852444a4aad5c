// SPDX-License-Identifier: MIT
// ChatTemplate: variables of a template.
#include "language/chat_template.hpp"

#include "formats/json_tree.hpp"

namespace dlprim::language {

namespace {

jinja::Value value_of_json(jinja::Run& run, const JsonValue& json) {
    if (const auto* text = std::get_if<std::string>(&json.data)) return *text;
    if (const auto* truth = std::get_if<bool>(&json.data)) return *truth;
    if (const auto* integer = std::get_if<std::int64_t>(&json.data)) return *integer;
    if (const auto* number = std::get_if<double>(&json.data)) return *number;
    if (const auto* array = std::get_if<JsonValue::Array>(&json.data)) {
        std::vector<jinja::Value> items;
        for (const JsonValue& item : *array) items.push_back(value_of_json(run, item));
        return make_list(run, std::move(items));
    }
    if (const auto* object = std::get_if<JsonValue::Object>(&json.data)) {
        std::vector<std::pair<std::string, jinja::Value>> members;
        for (const JsonMember& member : *object)
            members.emplace_back(member.key, value_of_json(run, member.value));
        return make_map(run, std::move(members));
    }
    return jinja::None{};
}

}  // namespace

ChatTemplate::ChatTemplate(const std::string& text, const std::string& path, std::string begin,
                           std::string end)
    : template_(text, "the chat template of '" + path + "'"),
      begin_(std::move(begin)),
      end_(std::move(end)) {}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                 const ChatOptions& options, const std::tm& now) const {
    jinja::Run run(template_.source(), {});  // what making the variables takes
    std::vector<jinja::Value> list;
    list.reserve(messages.size());
    for (const ChatMessage& message : messages)
        list.push_back(make_map(run, {{"role", message.role}, {"content", message.content}}));
    jinja::Template::Variables variables{{"messages", make_list(run, std::move(list))},
                                         {"add_generation_prompt", options.answer},
                                         {"bos_token", begin_},
                                         {"eos_token", end_}};
    if (!options.variables.empty()) {
        const JsonDocument document(options.variables, "variables of the chat template");
        for (const auto& [name, value] : document.root().object())
            variables.emplace_back(name, value_of_json(run, value.value()));
    }
    return template_.render(variables, now);
}

}  // namespace dlprim::language
