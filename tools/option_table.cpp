// SPDX-License-Identifier: MIT
// The table of options. It is linked with dlprim_doctor too, and so must do without the library.
#include "option_table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstring>

namespace dlprim::tools {

using Json = nlohmann::ordered_json;

namespace {

Json described(const CLI::Option& option) {
    Json names = Json::array();
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    Json json{{"names", names}};
    if (names.empty()) json["argument"] = option.get_name(true);
    json["help"] = option.get_description();
    // CLI11 gives the type, and behind a colon what checks say of values.
    std::string type = option.get_expected_max() == 0 ? "" : option.get_type_name(), range;
    if (const std::size_t colon = type.find(':'); colon != std::string::npos) {
        range = type.substr(colon + 1);
        type.resize(colon);
    }
    json["type"] = type;
    json["range"] = range;
    json["required"] = option.get_required();
    json["repeated"] = option.get_expected_max() > 1 ||
                       option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    return json;
}

}  // namespace

bool wants_option_table(int argc, char** argv) {
    return argc == 2 && std::strcmp(argv[1], option_table_flag) == 0;
}

std::string option_table(const CLI::App& app) {
    Json options = Json::array();
    for (const CLI::Option* option : app.get_options()) options.push_back(described(*option));
    return Json{{"name", app.get_name()},
                {"description", app.get_description()},
                {"footer", app.get_footer()},
                {"options", options}}
               .dump(1) +
           '\n';
}

}  // namespace dlprim::tools
