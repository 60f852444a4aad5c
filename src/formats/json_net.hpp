// SPDX-License-Identifier: MIT
// Network JSON to and from a NetDescription: syntax, names and kinds. Whether operators exist,
// options fit them and shapes agree is build_graph()'s to say (graph/description.hpp).
#pragma once

#include "graph/description.hpp"

#include <string>
#include <string_view>

namespace dlprim {

class JsonView;

/// Parses a network as docs/json.md describes it. `source_name` stands in messages and in
/// NetDescription::source. Booleans written 0 or 1 stay integers in options; an empty list is
/// Ints{} (Schema::complete makes both what the operator declares). Throws Error(format), a
/// sentence that begins "<source>:<line>", on bad syntax, nesting beyond 64, unknown or duplicate
/// keys (offering the nearest), a wrong kind (naming the path, "operators[3].options.kernel"), a
/// number that fits no 64-bit type, a declared dimension below 1.
NetDescription parse_net_json(std::string_view text, const std::string& source_name);

/// An object of options, as it stands in a network, for operators called one at a time.
/// Empty text is no options. Throws like parse_net_json().
Attrs parse_options_json(std::string_view text);
/// The same of a value inside another document.
Attrs read_options(const JsonView& object);

/// The description as JSON that parse_net_json() reads back to an equal one; one operator a line.
std::string write_net_json(const NetDescription& net);
/// One line: {"kernel": 3, "bias": true}.
std::string write_options_json(const Attrs& options);

}  // namespace dlprim
