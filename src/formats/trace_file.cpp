// SPDX-License-Identifier: MIT
// trace_text().
#include "formats/trace_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace dlprim {

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(TraceKind kind) {
    switch (kind) {
        case TraceKind::compute:
            return "compute";
        case TraceKind::move:
            return "move";
        case TraceKind::wait:
            return "wait";
    }
    return "";
}

const char* name_of(TraceRow row) {
    switch (row) {
        case TraceRow::device:
            return "device";
        case TraceRow::exchange:
            return "exchange";
        case TraceRow::host:
            return "host thread";
    }
    return "";
}

/// Chrome hides rows with the number 0.
int number_of(TraceRow row) {
    return static_cast<int>(row) + 1;
}

Json metadata(const char* what, std::size_t rank, const Json& args) {
    return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"args", args}};
}

Json event_of(const TraceSpan& span) {
    Json args = {{"step", span.step}};
    if (span.part >= 0) args["part"] = span.part;
    return {{"name", span.name},
            {"cat", name_of(span.kind)},
            {"ph", "X"},
            {"ts", static_cast<double>(span.begin_ns) / 1e3},
            {"dur", static_cast<double>(span.end_ns - span.begin_ns) / 1e3},
            {"pid", span.rank},
            {"tid", number_of(span.row)},
            {"args", args}};
}

std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string trace_text(const std::vector<TraceRank>& ranks, std::vector<TraceSpan> spans,
                       const std::vector<std::pair<std::string, std::string>>& about) {
    std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
        return a.begin_ns < b.begin_ns;
    });
    // Event by event, since trees of many take several times as much memory as their text.
    std::string text = "{\"traceEvents\":[";
    const auto put = [&](const Json& event) {
        if (text.back() != '[') text += ",\n";
        text += text_of(event);
    };
    for (const TraceRank& rank : ranks) {
        put(metadata("process_name", rank.rank, {{"name", rank.name}}));
        put(metadata("process_sort_index", rank.rank, {{"sort_index", rank.rank}}));
    }
    std::set<std::pair<std::size_t, TraceRow>> rows;
    for (const TraceSpan& span : spans) rows.emplace(span.rank, span.row);
    for (const auto& [rank, row] : rows) {
        Json named = metadata("thread_name", rank, {{"name", name_of(row)}});
        named["tid"] = number_of(row);
        put(named);
        Json sorted = metadata("thread_sort_index", rank, {{"sort_index", number_of(row)}});
        sorted["tid"] = number_of(row);
        put(sorted);
    }
    for (const TraceSpan& span : spans) put(event_of(span));
    Json other = Json::object();
    for (const auto& [key, value] : about) other[key] = value;
    return text + "],\"displayTimeUnit\":\"ms\",\"otherData\":" + text_of(other) + "}\n";
}

}  // namespace dlprim
