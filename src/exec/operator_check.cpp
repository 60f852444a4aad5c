// SPDX-License-Identifier: MIT
// OperatorCheck: eager calls, and comparisons of their results.
#include "exec/operator_check.hpp"

#include "base/text.hpp"
#include "check/compare.hpp"
#include "check/engine_run.hpp"
#include "exec/eager.hpp"
#include "formats/json_net.hpp"
#include "plan/choose.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

PlainBytes download(const Tensor& tensor) {
    PlainBytes bytes(tensor.bytes());
    if (!bytes.empty()) tensor.copy_to_host(bytes.data(), bytes.size());
    return bytes;
}

/// Up to three elements that differ: ": [0] 1.5 for 2, [7] 3 for 4".
std::string examples(const std::vector<double>& found, const std::vector<double>& wanted) {
    std::string text;
    for (std::size_t i = 0, shown = 0; i < found.size() && shown < 3; ++i) {
        if (std::abs(found[i] - wanted[i]) <= 1e-5 * std::abs(wanted[i])) continue;
        text += cat(shown++ == 0 ? ": [" : ", [", i, "] ", found[i], " for ", wanted[i]);
    }
    return text;
}

std::set<const Engine*> engines_of(const Plan& plan) {
    std::set<const Engine*> engines;
    for (const auto* steps : {&plan.steps, &plan.setup})
        for (const Step& step : *steps)
            if (step.engine != nullptr) engines.insert(step.engine);
    return engines;
}

}  // namespace

Tensor upload(const Context& device, const HostArray& array) {
    Tensor tensor(device, array.shape, array.dtype);
    const PlainBytes bytes = stored_as(array.dtype, array.data);
    if (!bytes.empty()) tensor.copy_from_host(bytes.data(), bytes.size());
    return tensor;
}

std::vector<Tensor> upload(const Context& device, const std::vector<HostArray>& arrays) {
    std::vector<Tensor> tensors;
    for (const HostArray& array : arrays) tensors.push_back(upload(device, array));
    return tensors;
}

OperatorCheck::OperatorCheck(const Context& device, const Case& one, unsigned seed,
                             Precision precision)
    : device_(device),
      one_(one),
      precision_(precision),
      data_(make_case_data(one, seed)),
      expected_(ask_oracle(one, data_, seed)) {}

OperatorCheck::Outcome OperatorCheck::run(const Call& call) {
    plan_ = nullptr;
    ops::CallOptions how;
    how.training = one_.training;
    how.precision = precision_;
    how.seed = call_seed;
    how.step = call_step;
    how.engines = call.engines;
    unsigned number = 0;
    const auto upload_all = [&](const std::vector<HostArray>& arrays) {
        std::vector<Tensor> tensors;
        for (const HostArray& array : arrays) {
            tensors.push_back(call.upload ? call.upload(array, number) : upload(device_, array));
            ++number;
        }
        return tensors;
    };
    const std::vector<Tensor> inputs = upload_all(data_.inputs), params = upload_all(data_.params);
    std::vector<HostArray> seeds;
    for (const HostArray& gradient : expected_.output_gradients)
        if (call.backward && is_float(gradient.dtype)) seeds.push_back(gradient);
    const std::vector<Tensor> gradients = upload_all(seeds);
    std::vector<Tensor> made =
        call.backward ? ops::backward(one_.type, one_.options, inputs, params, gradients, how)
                      : ops::call(one_.type, one_.options, inputs, params, how);
    plan_ =
        &eager_plan(one_.type, parse_options_json(one_.options), inputs, params, gradients, how);
    // Whether a composite stays whole in backward is decided before there is a plan.
    if (!plan_->expanded.empty()) expanded_ = plan_->expanded;
    Outcome outcome;
    outcome.used = engines_of(*plan_);
    if (call.backward)
        compare_gradients(made, outcome);
    else
        compare_outputs(made, params, outcome);
    if (!call.backward) made.insert(made.end(), params.begin(), params.end());
    for (const Tensor& tensor : made)
        outcome.results.push_back(tensor.defined() ? download(tensor) : PlainBytes{});
    return outcome;
}

void OperatorCheck::visit_problems(const std::function<void(const Problem&)>& visit) const {
    for (const Node& node : plan_->graph.nodes)
        if (!node.removed && !node.op->is_view())
            visit(problem_of(device_.traits(), plan_->graph, node, {}));
    for (const Problem& problem : expanded_) visit(problem);
}

std::map<std::string, std::string> OperatorCheck::other_engines() const {
    std::map<std::string, std::string> others;
    if (plan_ == nullptr) return others;
    const Traits& device = device_.traits();
    const std::set<const Engine*> used = engines_of(*plan_);
    visit_problems([&](const Problem& problem) {
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host))
            if (used.count(engine) == 0 && engine->is_applicable(device, problem))
                others.emplace(engine->name(), problem.op);
    });
    return others;
}

void OperatorCheck::compare_outputs(const std::vector<Tensor>& found,
                                    const std::vector<Tensor>& params, Outcome& outcome) const {
    if (found.size() != expected_.outputs.size())
        return outcome.faults.push_back("made another number of outputs than the oracle");
    for (std::size_t i = 0; i < found.size(); ++i)
        compare(cat("output ", i), found[i], expected_.outputs[i], outcome);
    for (std::size_t i = 0; i < params.size(); ++i) {
        const HostArray* wanted = &data_.params[i];
        for (const auto& [index, contents] : expected_.updated)
            if (static_cast<std::size_t>(index) == data_.inputs.size() + i) wanted = &contents;
        compare(cat("parameter ", i), params[i], *wanted, outcome);
    }
}

void OperatorCheck::compare_gradients(const std::vector<Tensor>& found, Outcome& outcome) const {
    if (found.size() > data_.inputs.size() + data_.params.size())
        return outcome.faults.push_back("made too many gradients");
    for (std::size_t i = 0; i < found.size(); ++i) {
        const HostArray& wanted = expected_.gradients[i];
        const bool made = found[i].defined();
        const bool is_empty = wanted.shape.numel() == 0;
        if (made && wanted.data.empty() && !is_empty) {
            if (i >= data_.inputs.size())  // float labels, which are inputs, have zeros
                outcome.faults.push_back(cat("made a gradient of operand ", i, ", a state"));
        } else if (made) {
            compare(cat("gradient ", i), found[i], wanted, outcome, expected_.least_norm(i));
        } else if (!wanted.data.empty()) {
            outcome.faults.push_back(cat("made no gradient of operand ", i, ", unlike the oracle"));
        }
    }
}

void OperatorCheck::compare(const std::string& what, const Tensor& found, const HostArray& wanted,
                            Outcome& outcome, double least) const {
    const Shape& shape = found.shape();
    if (shape != wanted.shape)
        return outcome.faults.push_back(
            cat(what, " has shape ", shape.str(), ", the oracle's ", wanted.shape.str()));
    const DType dtype = found.dtype();
    const PlainBytes bytes = download(found);
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    convert(bytes.data(), dtype, values.data(), DType::f64, values.size());
    std::vector<double> rounded = wanted.data;
    if (!is_float(dtype)) round_to(dtype, rounded);
    Precision factors = Precision::fp32;
    for (const Step& step : plan_->steps)
        if (step.engine != nullptr && step.engine->computes_in(precision_)) factors = precision_;
    const double error = relative_error(values, rounded, least);
    outcome.error = std::max(outcome.error, error);
    if (error > allowed_operator_error(dtype, factors))
        outcome.faults.push_back(cat(what, " of shape ", shape.str(), " is off by ", error,
                                     " of its size", examples(values, rounded)));
}

}  // namespace dlprim
