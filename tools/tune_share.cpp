// SPDX-License-Identifier: MIT
// share_tunings: rows, and what dlprim_doctor's probe finds of the device.
#include "tune_share.hpp"

#include "common.hpp"
#include "doctor/examine.hpp"

#include <dlprim/tuning.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

namespace dlprim::tools {
namespace {

using Json = nlohmann::ordered_json;

/// The rows that --export writes, which also shows early whether the file can be written.
Json exported_rows(const Context& context, const std::string& path) {
    try {
        export_tunings(context, path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::not_found) throw;
        write_text(path, "{\"format\": 2, \"rows\": []}\n");
    }
    std::ifstream file(path);
    return Json::parse(file).at("rows");
}

/// The doctor's report of the device.
doctor::Json examined(const Context& context, double seconds) {
    doctor::Json report;
    report["system"] = {{"icd", {{"files", doctor::Json::array()}}}, {"loader_error", ""}};
    doctor::ExamineOptions options;
    options.device = context.info().id;
    options.seconds = seconds;
    options.progress = progress_lines();
    doctor::examine(report, find_program("dlprim_doctor_probe"), options);
    if (report.at("devices").empty())
        throw Error(ErrorKind::device, report.at("list_error").get<std::string>());
    doctor::Json device = report.at("devices").at(0);
    if (!device.at("works").get<bool>())
        throw Error(ErrorKind::device, device.at("error").get<std::string>());
    return device;
}

/// Without the rows that are right, which are most, and their number is known.
void leave_out_right(doctor::Json& test) {
    doctor::Json others = doctor::Json::array();
    for (const doctor::Json& row : test.at("rows"))
        if (row.at("outcome") != "right") others.push_back(row);
    test["rows"] = std::move(others);
}

std::string text_of(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void share_tunings(const Context& context, const std::string& path, double seconds) {
    if (context.info().id.starts_with("file:"))
        throw Error(ErrorKind::unsupported,
                    "--share is about a device that is here; '" + context.info().id +
                        "' describes one, of which nothing can be measured");
    const Json rows = exported_rows(context, path);
    doctor::Json device = examined(context, seconds);
    leave_out_right(device.at("self_test"));
    // A line for each row and for each fact, so that the file can be read and compared.
    std::string text = "{\"format\": 2,\n\"shared\": {\n  \"version\": \"" DLPRIM_VERSION
                       "\",\n  \"commit\": " +
                       text_of(commit);
    for (const auto& [name, value] : device.items())
        text += ",\n  " + text_of(name) + ": " + text_of(value);
    text += "},\n\"rows\": [";
    for (const Json& row : rows) text += (&row == &rows.front() ? "\n" : ",\n") + text_of(row);
    write_text(path, text + "\n]}\n");
    std::printf("%zu rows, a self-test and peaks to %s: read it, then paste it into an issue\n",
                rows.size(), path.c_str());
}

}  // namespace dlprim::tools
