// SPDX-License-Identifier: MIT
// self_test(): eager calls of a built-in case, with the library's choice of engines and with each
// other engine forced, compared with the oracle.
#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "exec/eager.hpp"
#include "exec/self_test/cases.hpp"
#include "formats/json_net.hpp"
#include "plan/choose.hpp"

#include <dlprim/diagnosis.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace dlprim {

namespace {

using Row = SelfTestRow;

/// The seed and step that random operators get.
constexpr std::uint64_t call_seed = 5, call_step = 3;

double norm(const std::vector<double>& values) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
}

/// Relative L2 distance. Values that are not finite must be equal. A norm below `least` counts as
/// `least`.
double distance(const std::vector<double>& found, const std::vector<double>& wanted, double least) {
    if (found.size() != wanted.size()) return INFINITY;
    double error = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (std::isfinite(wanted[i]) && std::isfinite(found[i]))
            error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        else if (found[i] != wanted[i] && !(std::isnan(found[i]) && std::isnan(wanted[i])))
            return INFINITY;
    }
    return error == 0 ? 0 : std::sqrt(error) / std::max(norm(wanted), least);
}

/// A result as the device made it, and as the oracle did.
struct Result {
    Tensor found;
    const HostArray* wanted;
    double least = 1e-30;  ///< of what its error is relative to
};

class SelfTest {
  public:
    SelfTest(const Context& context, const SelfTestProblem& problem, const SelfTestOptions& options)
        : context_(context),
          problem_(problem),
          options_(options),
          op_(OperatorRegistry::instance().get(problem.type)) {}

    std::vector<Row> run() {
        make_data();
        ask_oracle();
        gradient_ = false;
        direction();
        gradient_ = true;
        if (problem_.gradient && options_.gradients) direction();
        // What the library chooses comes first.
        std::stable_partition(rows_.begin(), rows_.end(),
                              [](const Row& row) { return row.engine.empty(); });
        return std::move(rows_);
    }

  private:
    void make_data() {
        std::mt19937 random(static_cast<unsigned>(hash64(cat(problem_.type, '/', problem_.name))));
        attrs_ = op_.schema().complete(parse_options_json(problem_.options),
                                       cat('[', problem_.type, "] "));
        std::vector<TensorSpec> specs;
        for (const SelfTestTensor& input : problem_.inputs) {
            operands_.push_back(self_test_data(input, random));
            specs.push_back({input.shape, input.dtype});
        }
        const std::vector<ParamSpec> params = op_.params(attrs_, specs);
        for (std::size_t i = 0; i < params.size(); ++i) {
            SelfTestTensor param;
            if (i < problem_.params.size()) param = problem_.params[i];
            param.shape = params[i].spec.shape;
            param.dtype = params[i].spec.dtype;
            operands_.push_back(self_test_data(param, random));
            specs.push_back(params[i].spec);
        }
        for (const TensorSpec& spec : op_.infer(attrs_, specs)) {
            SelfTestTensor gradient;
            gradient.shape = spec.shape;
            gradient.dtype = spec.dtype;
            output_gradients_.push_back(self_test_data(gradient, random));
        }
    }

    void ask_oracle() {
        OracleCall call{
            attrs_, problem_.training, operands_, std::vector<HostArray>(output_gradients_.size()),
            {},     call_seed,         call_step};
        op_.oracle(call);
        outputs_ = call.outputs;
        updated_ = call.updated;
        if (!problem_.gradient) return;
        OracleBackwardCall back{
            attrs_,    problem_.training, operands_,
            outputs_,  output_gradients_, std::vector<HostArray>(operands_.size()),
            call_seed, call_step};
        op_.oracle_backward(back);
        gradients_ = back.input_gradients;
        terms_ = back.terms;
    }

    Tensor upload(const HostArray& array) const {
        Tensor tensor(context_, array.shape, array.dtype);
        std::vector<std::byte> bytes(array.data.size() * size_of(array.dtype));
        convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
        if (!bytes.empty()) tensor.copy_from_host(bytes.data(), bytes.size());
        return tensor;
    }

    /// Computes with the library's choice, and then with each other engine that applies.
    void direction() {
        compute({}, {});
        if (!options_.engines) return;
        for (const auto& [engine, type] : others_) compute(engine, type);
        others_.clear();
    }

    /// Adds a row. With an empty `engine`, also looks for the other engines.
    void compute(const std::string& engine, const std::string& type) {
        Row row;
        row.type = problem_.type;
        row.test_case = problem_.name;
        row.engine = engine;
        row.gradient = gradient_;
        try {
            run_call(row, type);
        } catch (const Error& error) {
            row.outcome = error.kind() == ErrorKind::unsupported ? Row::Outcome::skipped
                                                                 : Row::Outcome::failed;
            row.reason = error.what();
        }
        rows_.push_back(std::move(row));
    }

    void run_call(Row& row, const std::string& type) {
        ops::CallOptions how;
        how.training = problem_.training;
        how.seed = call_seed;
        how.step = call_step;
        if (!row.engine.empty()) how.engines = {{type, row.engine}};
        std::vector<Tensor> inputs, params, seeds;
        for (std::size_t i = 0; i < operands_.size(); ++i)
            (i < problem_.inputs.size() ? inputs : params).push_back(upload(operands_[i]));
        for (const HostArray& gradient : output_gradients_)
            if (gradient_ && is_float(gradient.dtype)) seeds.push_back(upload(gradient));
        const EnginesUnchecked unchecked;  // it looks at the results itself
        const std::vector<Tensor> made =
            gradient_ ? ops::backward(problem_.type, problem_.options, inputs, params, seeds, how)
                      : ops::call(problem_.type, problem_.options, inputs, params, how);
        const Plan& plan = eager_plan(problem_.type, parse_options_json(problem_.options), inputs,
                                      params, seeds, how);
        std::set<std::string_view> used;
        for (const auto* steps : {&plan.steps, &plan.setup})
            for (const Step& step : *steps)
                if (step.engine != nullptr) used.insert(step.engine->name());
        row.ran.assign(used.begin(), used.end());
        if (row.engine.empty())
            find_others(plan, used);
        else if (used.count(row.engine) == 0)
            return disabled(row, plan);
        const double tolerance = tolerance_of(plan);
        compare(row, gradient_ ? gradients_of(made) : outputs_of(made, params), tolerance);
    }

    /// The engine did not run although it applies, because it failed.
    static void disabled(Row& row, const Plan& plan) {
        row.outcome = Row::Outcome::failed;
        row.reason = "the engine applies, but was not used";
        for (const std::string& note : plan.notes)
            if (note.find(row.engine) != std::string::npos) row.reason = note;
    }

    void find_others(const Plan& plan, const std::set<std::string_view>& used) {
        const Traits& device = context_.traits();
        for (const Node& node : plan.graph.nodes) {
            if (node.removed || node.op->is_view()) continue;
            const Problem problem = problem_of(device, plan.graph, node, {});
            for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host))
                if (used.count(engine->name()) == 0 && engine->is_applicable(device, problem))
                    others_.emplace(engine->name(), problem.op);
        }
    }

    /// What float results may be off by, relative to their norm. Winograd's method adds and
    /// subtracts before and after it multiplies.
    static double tolerance_of(const Plan& plan) {
        const auto is_winograd = [](const Step& step) {
            return step.engine != nullptr &&
                   step.engine->name().find("winograd") != std::string_view::npos;
        };
        return std::any_of(plan.steps.begin(), plan.steps.end(), is_winograd) ? 1e-4 : 1e-5;
    }

    std::vector<Result> outputs_of(const std::vector<Tensor>& made,
                                   const std::vector<Tensor>& params) const {
        std::vector<Result> all;
        for (std::size_t i = 0; i < made.size() && i < outputs_.size(); ++i)
            all.push_back({made[i], &outputs_[i]});
        for (const auto& [index, contents] : updated_)
            all.push_back(
                {params[static_cast<std::size_t>(index) - problem_.inputs.size()], &contents});
        return all;
    }

    std::vector<Result> gradients_of(const std::vector<Tensor>& made) const {
        std::vector<Result> all;
        for (std::size_t i = 0; i < made.size() && i < gradients_.size(); ++i) {
            if (!made[i].defined() || gradients_[i].data.empty()) continue;
            const bool cancels = i < terms_.size() && !terms_[i].data.empty();
            all.push_back({made[i], &gradients_[i], cancels ? norm(terms_[i].data) : 1e-30});
        }
        return all;
    }

    static void compare(Row& row, const std::vector<Result>& results, double tolerance) {
        for (const Result& result : results) {
            const DType dtype = result.found.dtype();
            std::vector<std::byte> bytes(result.found.bytes());
            if (!bytes.empty()) result.found.copy_to_host(bytes.data(), bytes.size());
            std::vector<double> found(static_cast<std::size_t>(result.found.shape().numel()));
            convert(bytes.data(), dtype, found.data(), DType::f64, found.size());
            std::vector<double> wanted = result.wanted->data;
            if (!is_float(dtype)) {  // as integers wrap around
                std::vector<std::byte> typed(wanted.size() * size_of(dtype));
                convert(wanted.data(), DType::f64, typed.data(), dtype, wanted.size());
                convert(typed.data(), dtype, wanted.data(), DType::f64, wanted.size());
            }
            const double error = distance(found, wanted, result.least);
            row.error = std::max(row.error, error);
            if (error <= (is_float(dtype) ? tolerance : 0)) continue;
            row.outcome = Row::Outcome::wrong;
            row.reason = cat("result ", &result - results.data(), " of shape ",
                             result.found.shape().str(), " is off by ", error, " of its size");
        }
    }

    const Context context_;
    const SelfTestProblem& problem_;
    const SelfTestOptions& options_;
    const Operator& op_;
    bool gradient_ = false;
    Attrs attrs_;
    std::vector<HostArray> operands_, outputs_, output_gradients_, gradients_, terms_;
    std::vector<std::pair<int, HostArray>> updated_;
    std::map<std::string, std::string> others_;  ///< engine -> operator type
    std::vector<Row> rows_;
};

}  // namespace

std::string_view name_of(SelfTestRow::Outcome outcome) {
    constexpr std::string_view names[] = {"right", "wrong", "failed", "skipped"};
    return names[static_cast<std::size_t>(outcome)];
}

std::vector<SelfTestCase> self_test_cases() {
    std::vector<SelfTestCase> all;
    for (const SelfTestProblem& problem : self_test_problems())
        all.push_back({problem.type, problem.name});
    return all;
}

std::vector<SelfTestRow> self_test(const Context& context, const SelfTestCase& one,
                                   const SelfTestOptions& options) {
    OperatorRegistry::instance().get(one.type);  // throws where there is none
    for (const SelfTestProblem& problem : self_test_problems())
        if (problem.type == one.type && problem.name == one.name)
            return SelfTest(context, problem, options).run();
    fail(ErrorKind::not_found, "the self-test has no case '", one.name, "' of ", one.type);
}

}  // namespace dlprim
