// SPDX-License-Identifier: MIT
// ReportPage, and the page around its data.
#include "api/report/page.hpp"

#include "base/text.hpp"

namespace dlprim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view data_begin = "<script type=\"application/json\" id=\"data\">";
constexpr std::string_view data_end = "</script>";

std::string escaped_html(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        if (c == '<')
            safe += "&lt;";
        else if (c == '>')
            safe += "&gt;";
        else if (c == '&')
            safe += "&amp;";
        else if (c == '"')
            safe += "&quot;";
        else
            safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return safe;
}

/// JSON in which no character could end the element that holds it, or begin a comment there.
std::string json_for_html(const Json& data) {
    const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        if (c == '<')
            safe += "\\u003c";
        else if (c == '>')
            safe += "\\u003e";
        else if (c == '&')
            safe += "\\u0026";
        else
            safe += c;
    }
    return safe;
}

/// Text of the data with broken UTF-8 replaced, as JSON has it.
std::string valid_text(const Json& data, const char* key) {
    const Json text =
        Json::parse(Json(data.value(key, "")).dump(-1, ' ', false, Json::error_handler_t::replace));
    return text.get<std::string>();
}

}  // namespace

std::string page_html(const Json& data) {
    const std::string title = escaped_html(valid_text(data, "title"));
    const std::string device = escaped_html(valid_text(data, "device"));
    // The policy forbids the page to load anything, whatever a script might try.
    return cat(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
        "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
        title, "</title>\n<style>\n", page_style, "</style>\n</head>\n<body>\n<header>\n<h1>",
        title, "</h1>\n", device.empty() ? "" : cat("<p>device: ", device, "</p>\n"),
        "</header>\n<main></main>\n<noscript>The figures of this page are drawn by a script, and "
        "scripts are switched off here.</noscript>\n",
        data_begin, json_for_html(data), data_end, "\n<script>\n", page_script,
        "</script>\n</body>\n</html>\n");
}

struct ReportPage::Impl {
    Json data;
};

ReportPage::ReportPage(std::string_view title, std::string_view device)
    : impl_(std::make_unique<Impl>()) {
    impl_->data = {{"title", std::string(title)}, {"device", std::string(device)}};
}
ReportPage::~ReportPage() = default;
ReportPage::ReportPage(ReportPage&&) noexcept = default;
ReportPage& ReportPage::operator=(ReportPage&&) noexcept = default;

void ReportPage::add_figure(std::string_view name, std::string_view value) {
    impl_->data["figures"].push_back({std::string(name), std::string(value)});
}

void ReportPage::add_table(std::string_view title,
                           const std::vector<std::pair<std::string, std::string>>& rows) {
    impl_->data["tables"].push_back(table_json(std::string(title), rows));
}

void ReportPage::add_run(const ReportRun& run) {
    impl_->data["runs"].push_back(to_json(run));
}

void ReportPage::add_nodes(const std::vector<NodeReport>& nodes, const Traits& device) {
    put_nodes(impl_->data, nodes, device);
}

void ReportPage::add_memory(const MemoryMap& map) {
    impl_->data["memory"] = to_json(map);
}

void ReportPage::add_network(const NetworkDescription& network) {
    impl_->data["network"] = to_json(network);
}

std::string ReportPage::html() const {
    return page_html(impl_->data);
}

std::string report_data(std::string_view html) {
    const std::size_t begin = html.find(data_begin);
    const std::size_t end =
        begin == std::string_view::npos ? begin : html.find(data_end, begin + data_begin.size());
    if (end == std::string_view::npos)
        fail(ErrorKind::format, "the page has no element of id 'data', as reports have it");
    return std::string(html.substr(begin + data_begin.size(), end - begin - data_begin.size()));
}

}  // namespace dlprim
