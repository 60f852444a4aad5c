// SPDX-License-Identifier: MIT
// ChatTemplate: the prompt for a chat, by the template of a model's file. Such templates are
// Jinja's as Hugging Face's apply_chat_template() renders them: src/language/jinja is the language.
#pragma once

#include "language/jinja/template.hpp"

#include <dlprim/language.hpp>

#include <ctime>
#include <string>
#include <vector>

namespace dlprim::language {

class ChatTemplate {
  public:
    /// `path` names the model's file in messages; `begin` and `end` are the names of the tokens
    /// with which a text begins and ends. Throws what jinja::Template's constructor throws.
    ChatTemplate(const std::string& text, const std::string& path, std::string begin,
                 std::string end);

    /// Throws what jinja::Template::render() throws, and Error(format) for variables that are no
    /// JSON object. The template's strftime_now() tells `now`.
    std::string render(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                       const std::tm& now) const;

  private:
    jinja::Template template_;
    std::string begin_, end_;
};

}  // namespace dlprim::language
