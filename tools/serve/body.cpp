// SPDX-License-Identifier: MIT
// Members of requests' bodies.
#include "serve/body.hpp"

#include <dlprim/error.hpp>

#include <cmath>
#include <limits>

namespace dlprim::tools {

void refuse(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, message);
}

const Json* find(const Json& body, const char* name) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? nullptr : &*found;
}

double number(const Json& body, const char* name, double otherwise) {
    const Json* const value = find(body, name);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !std::isfinite(value->get<double>()))
        refuse(std::string("'") + name + "' is a number");
    return value->get<double>();
}

std::int64_t integer(const Json& body, const char* name, std::int64_t otherwise, std::int64_t least,
                     std::int64_t most) {
    const Json* const value = find(body, name);
    if (value == nullptr) return otherwise;
    const bool fits =
        value->is_number_integer() &&
        (!value->is_number_unsigned() || value->get<std::uint64_t>() <= std::uint64_t{1} << 62);
    if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most)
        refuse(std::string("'") + name + "' is an integer from " + std::to_string(least) + " to " +
               std::to_string(most));
    return value->get<std::int64_t>();
}

bool truth(const Json& body, const char* name, bool otherwise) {
    const Json* const value = find(body, name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(std::string("'") + name + "' is true or false");
    return value->get<bool>();
}

std::string text(const Json& value, const std::string& name) {
    if (!value.is_string()) refuse("'" + name + "' is a text");
    return value.get<std::string>();
}

std::vector<std::int32_t> token_list(const Json& list, const std::string& name) {
    std::vector<std::int32_t> tokens;
    for (const Json& token : list) {
        if (!token.is_number_integer() || token.get<std::int64_t>() < 0 ||
            token.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
            refuse("a token of '" + name + "' is an integer");
        tokens.push_back(token.get<std::int32_t>());
    }
    return tokens;
}

Json parse_body(std::string_view body_text) {
    Json body = Json::parse(body_text, nullptr, false);
    if (body.is_discarded()) refuse("the body is no JSON in UTF-8");
    if (!body.is_object()) refuse("the body is no object of JSON");
    return body;
}

}  // namespace dlprim::tools
