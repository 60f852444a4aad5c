// SPDX-License-Identifier: MIT
// dlprim_onnx_conformance: runs cases of ONNX's test data and prints a table by operator.
#include "child_process.hpp"
#include "common.hpp"
#include "onnx_case.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <regex>

using namespace dlprim;
using nlohmann::json;

namespace {

struct Options {
    std::string folder, device, filter, json_path;
    double seconds = 120;
};

const char* state_name(tools::CaseState state) {
    return state == tools::CaseState::passed   ? "passed"
           : state == tools::CaseState::failed ? "failed"
                                               : "unsupported";
}

json to_json(const tools::CaseResult& result) {
    return {{"state", state_name(result.state)},
            {"reason", result.reason},
            {"type", result.type},
            {"opset", result.opset},
            {"nodes", result.nodes},
            {"host_nodes", result.host_nodes},
            {"seconds", result.seconds}};
}

/// What the process does: it opens the device at its first case. An answer is a case's result, or
/// `fatal` says why there will be none of any case.
void answer_cases(const Options& options, const std::vector<tools::OnnxCase>& cases, int questions,
                  int answers) {
    std::unique_ptr<Context> context;
    tools::answer_lines(questions, answers, [&](const std::string& question) {
        json answer;
        try {
            if (!context) context = std::make_unique<Context>(options.device);
            answer = to_json(tools::run_case(*context, cases.at(std::stoul(question))));
        } catch (const std::exception& error) {
            answer = {{"fatal", error.what()}};
        }
        return answer.dump(-1, ' ', false, json::error_handler_t::replace);
    });
}

/// The results of all cases, each with the case's name.
std::vector<json> run_cases(const Options& options, const std::vector<tools::OnnxCase>& cases) {
    tools::LineProcess process([&](int from, int to) { answer_cases(options, cases, from, to); },
                               "its process");
    const auto progress = tools::terminal_progress();
    std::vector<json> results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (progress) progress(cases[i].name, static_cast<int>(i), static_cast<int>(cases.size()));
        const auto answer = process.ask(std::to_string(i), options.seconds);
        json result;
        if (answer.given) {
            result = json::parse(answer.text);
        } else {
            result = to_json({});
            result["reason"] = answer.text;
        }
        if (result.contains("fatal"))
            throw Error(ErrorKind::device, result["fatal"].get<std::string>());
        result["name"] = cases[i].name;
        results.push_back(std::move(result));
    }
    if (progress) progress("", static_cast<int>(cases.size()), static_cast<int>(cases.size()));
    return results;
}

/// What a row of the table is made of: the cases of one operator.
struct Group {
    std::map<std::string, int> counts;  ///< by state
    int nodes = 0, host_nodes = 0;
    /// Why cases did not pass ("failed: ..."), and their names.
    std::map<std::string, std::vector<std::string>> reasons;
};

void add(Group& group, const json& result) {
    const std::string state = result["state"];
    ++group.counts[state];
    group.nodes += result["nodes"].get<int>();
    group.host_nodes += result["host_nodes"].get<int>();
    if (state != "passed")
        group.reasons[state + ": " + result["reason"].get<std::string>()].push_back(result["name"]);
}

std::string names(const std::vector<std::string>& all) {
    constexpr std::size_t most = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i)
        text += (i == 0 ? "" : ", ") + all[i];
    return all.size() > most ? text + " and " + std::to_string(all.size() - most) + " more" : text;
}

void print_row(const std::string& name, Group& group) {
    std::printf("%-34s %7d %7d %12d %7d %8d\n", name.c_str(), group.counts["passed"],
                group.counts["failed"], group.counts["unsupported"], group.nodes, group.host_nodes);
}

void print_table(const std::vector<json>& results) {
    std::map<std::string, Group> groups;
    Group all;
    for (const json& result : results) {
        const std::string type = result["type"];
        add(groups[type.empty() ? "no model" : type], result);
        add(all, result);
    }
    std::printf("%-34s %7s %7s %12s %7s %8s\n", "operator", "passed", "failed", "unsupported",
                "nodes", "on host");
    for (auto& [type, group] : groups) {
        print_row(type, group);
        for (const auto& [reason, cases] : group.reasons)
            std::printf("    %s (%s)\n", reason.c_str(), names(cases).c_str());
    }
    print_row("all", all);
    std::printf("%d passed, %d failed, %d skipped\n", all.counts["passed"], all.counts["failed"],
                all.counts["unsupported"]);
}

std::vector<tools::OnnxCase> chosen_cases(const Options& options) {
    std::vector<tools::OnnxCase> cases = tools::find_cases(options.folder);
    if (options.filter.empty()) return cases;
    const std::regex wanted(options.filter);
    std::erase_if(cases, [&](const auto& one) { return !std::regex_search(one.name, wanted); });
    if (cases.empty())
        throw Error(ErrorKind::not_found,
                    "no case in '" + options.folder + "' matches '" + options.filter + "'");
    return cases;
}

void run(const Options& options) {
    const std::vector<tools::OnnxCase> cases = chosen_cases(options);
    const std::vector<json> results = run_cases(options, cases);
    if (!options.json_path.empty())
        tools::write_text(options.json_path, json{{"cases", results}}.dump(1) + "\n");
    print_table(results);
    const auto failed = std::count_if(results.begin(), results.end(), [](const json& result) {
        return result["state"] == "failed";
    });
    if (failed > 0)
        throw Error(ErrorKind::numeric, std::to_string(failed) + " of " +
                                            std::to_string(results.size()) + " cases failed");
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Runs cases of ONNX's test data and prints a table by operator.",
                 "dlprim_onnx_conformance");
    app.add_option("DIR", options.folder, "folder whose cases are run: folders with a model.onnx")
        ->required();
    tools::add_device_option(app, options.device);
    const auto is_expression = [](const std::string& text) -> std::string {
        try {
            const std::regex expression(text);
            return "";
        } catch (const std::regex_error& error) {
            return "'" + text + "' is no regular expression: " + error.what();
        }
    };
    app.add_option("--filter", options.filter, "regular expression: only cases whose names match")
        ->check(CLI::Validator(is_expression, "", "filter"));
    app.add_option("--json", options.json_path, "where all results go, JSON");
    app.add_option("--seconds", options.seconds, "the longest time of a case (120)")
        ->check(CLI::PositiveNumber);
    return tools::run_command(app, argc, argv, [&] { run(options); });
}
