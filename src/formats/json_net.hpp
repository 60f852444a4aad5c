// SPDX-License-Identifier: MIT
// Network JSON to and from a NetDescription. This file checks syntax, names and kinds.
// build_graph() (graph/description.hpp) checks whether operators exist, options fit them and shapes
// agree.
#pragma once

#include "graph/description.hpp"

#include <string>
#include <string_view>

namespace dlprim {

class JsonView;

/// Parses a network as docs/json.md describes it. `source_name` is used in messages and stored in
/// NetDescription::source. In options, booleans written as 0 or 1 stay integers and an empty list
/// becomes Ints{}; Schema::complete converts both to the kinds that the operator declares. Throws
/// Error(format) with a sentence that begins "<source>:<line>": on bad syntax, nesting beyond 64,
/// unknown or duplicate keys (with the nearest known key), a wrong kind (with the path,
/// "operators[3].options.kernel"), a number that fits no 64-bit type, or a declared dimension below
/// 1.
NetDescription parse_net_json(std::string_view text, const std::string& source_name);

/// Parses an object of options, written as in a network, for operators that are called one at a
/// time. Empty text means no options. Throws like parse_net_json().
Attrs parse_options_json(std::string_view text);
/// The same for a value inside another document.
Attrs read_options(const JsonView& object);

/// Writes the description as JSON, from which parse_net_json() reads an equal one. Each operator is
/// on a line of its own.
std::string write_net_json(const NetDescription& net);
/// Writes the options on one line: {"kernel": 3, "bias": true}.
std::string write_options_json(const Attrs& options);

}  // namespace dlprim
