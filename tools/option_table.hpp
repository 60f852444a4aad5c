// SPDX-License-Identifier: MIT
// A command's options as JSON, from which its manual page and the completions of shells are made
// when it is built (cmake/Manuals.cmake).
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// The option that prints the table; neither --help nor the manual page names it. It must be the
/// only argument.
inline constexpr const char* option_table_flag = "--help-json";

/// Whether the command line asks for the table alone.
bool wants_option_table(int argc, char** argv);

/// The table: {"name", "description", "footer", "options"}. An option is {"names": ["-d",
/// "--device"], "help", "type", "range", "required", "repeated"}; names are empty for an argument,
/// which has "argument": "NET" in their place. The type is empty for a flag, else TEXT, INT, FLOAT
/// or what the command calls it, such as DEVICE; the range is what CLI11 says of allowed values, or
/// empty. Ends with a line end.
std::string option_table(const CLI::App& app);

}  // namespace dlprim::tools
