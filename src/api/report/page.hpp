// SPDX-License-Identifier: MIT
// The page of reports: data as JSON, between a style and a script that the build embeds from web/.
// The script draws what the data has; docs/report.md lists the keys.
#pragma once

#include <dlprim/report.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace dlprim {

extern const char* const page_style;   ///< generated: web/page.css
extern const char* const page_script;  ///< generated: Chart.js and web/*.js

/// The page that shows `data`. Its keys "title" and "device" are shown without the script, too.
std::string page_html(const nlohmann::ordered_json& data);

/// With six significant digits, which is what a picture shows; null for NaN and infinities.
nlohmann::ordered_json short_number(double value);

nlohmann::ordered_json to_json(const ReportRun& run);
nlohmann::ordered_json to_json(const NodeReport& node);
nlohmann::ordered_json to_json(const MemoryMap& map);
nlohmann::ordered_json to_json(const NetworkDescription& network);
/// Pairs as rows of a table.
nlohmann::ordered_json table_json(const std::string& title,
                                  const std::vector<std::pair<std::string, std::string>>& rows);
/// Nodes and peaks, into `data`.
void put_nodes(nlohmann::ordered_json& data, const std::vector<NodeReport>& nodes,
               const Traits& device);

}  // namespace dlprim
