// SPDX-License-Identifier: MIT
// self_test(): the built-in cases, with the library's choice of engines and with each other engine
// forced, compared with the oracle.
#include "base/text.hpp"
#include "exec/operator_check.hpp"
#include "plan/trust/trust.hpp"

#include <dlprim/diagnosis.hpp>

#include <algorithm>
#include <map>

namespace dlprim {

namespace {

using Row = SelfTestRow;

/// Why an engine did not run that applies: because it failed.
std::string why_disabled(const std::string& engine, const std::vector<std::string>& notes) {
    std::string why = "the engine applies, but was not used";
    for (const std::string& note : notes)
        if (note.find(engine) != std::string::npos) why = note;
    return why;
}

void run_call(OperatorCheck& check, const OperatorCheck::Call& call, Row& row) {
    const EnginesUnchecked unchecked;  // it looks at the results itself
    const OperatorCheck::Outcome outcome = check.run(call);
    for (const Engine* engine : outcome.used) row.ran.emplace_back(engine->name());
    std::sort(row.ran.begin(), row.ran.end());
    row.error = outcome.error;
    if (!row.engine.empty() && !std::binary_search(row.ran.begin(), row.ran.end(), row.engine)) {
        row.outcome = Row::Outcome::failed;
        row.reason = why_disabled(row.engine, check.notes());
    } else if (!outcome.faults.empty()) {
        row.outcome = Row::Outcome::wrong;
        row.reason = outcome.faults.back();
    }
}

/// Calls with the library's choice, or with a forced engine of an operator type.
Row row_of(OperatorCheck& check, bool backward, const std::string& engine,
           const std::string& type) {
    Row row;
    row.type = check.one().type;
    row.test_case = check.one().name;
    row.engine = engine;
    row.gradient = backward;
    OperatorCheck::Call call{.backward = backward};
    if (!engine.empty()) call.engines = {{type, engine}};
    try {
        run_call(check, call, row);
    } catch (const Error& error) {
        row.outcome =
            error.kind() == ErrorKind::unsupported ? Row::Outcome::skipped : Row::Outcome::failed;
        row.reason = error.what();
    }
    return row;
}

/// Products come last, since their many engines take longest.
std::vector<Case> cases_in_order() {
    std::vector<Case> all = embedded_cases();
    std::map<std::string, double> work;
    for (const Case& one : all) {
        const Operator& op = OperatorRegistry::instance().get(one.type);
        const CaseData data = make_case_data(one, seed_of(one));
        const std::vector<TensorSpec> inputs = data.specs();
        work[one.title()] = op.flops(data.attrs, inputs, op.infer(data.attrs, inputs));
    }
    std::stable_sort(all.begin(), all.end(), [&](const Case& a, const Case& b) {
        return work[a.title()] < work[b.title()];
    });
    return all;
}

}  // namespace

std::string_view name_of(SelfTestRow::Outcome outcome) {
    constexpr std::string_view names[] = {"right", "wrong", "failed", "skipped"};
    return names[static_cast<std::size_t>(outcome)];
}

std::vector<SelfTestCase> self_test_cases() {
    std::vector<SelfTestCase> all;
    for (const Case& one : cases_in_order())
        all.push_back({one.type, one.name, OperatorRegistry::instance().type_of(one.type)});
    return all;
}

std::vector<SelfTestRow> self_test(const Context& context, const SelfTestCase& one,
                                   const SelfTestOptions& options) {
    OperatorRegistry::instance().get(one.type);  // throws where there is none
    const std::vector<Case>& cases = embedded_cases();
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& of) {
        return of.type == one.type && of.name == one.name;
    });
    if (found == cases.end())
        fail(ErrorKind::not_found, "the self-test has no case '", one.name, "' of ", one.type);
    OperatorCheck check(context, *found, seed_of(*found));
    std::vector<Row> chosen, forced;
    for (const bool backward : {false, true}) {
        if (backward && !(found->gradient && options.gradients)) continue;
        chosen.push_back(row_of(check, backward, {}, {}));
        if (!options.engines) continue;
        for (const auto& [engine, type] : check.other_engines())
            forced.push_back(row_of(check, backward, engine, type));
    }
    chosen.insert(chosen.end(), forced.begin(), forced.end());
    return chosen;
}

}  // namespace dlprim
