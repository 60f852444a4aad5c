// SPDX-License-Identifier: MIT
// Members of requests' bodies, which are hostile: what is wrong is an Error(invalid_argument) that
// names the member.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::tools {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& message);

/// The object of a body.
Json parse_body(std::string_view body_text);

/// A member that is there and not null, else null.
const Json* find(const Json& body, const char* name);

// Members of a kind, or `otherwise` if there are none.
double number(const Json& body, const char* name, double otherwise);
std::int64_t integer(const Json& body, const char* name, std::int64_t otherwise, std::int64_t least,
                     std::int64_t most);
bool truth(const Json& body, const char* name, bool otherwise);

// Values of a kind; `name` is the member's, for messages.
std::string text(const Json& value, const std::string& name);
std::vector<std::int32_t> token_list(const Json& list, const std::string& name);

}  // namespace dlprim::tools
