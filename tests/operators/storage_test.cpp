// SPDX-License-Identifier: MIT
// Compares engines whose operands are stored in 16 bits with the oracle, which gets the same
// rounded numbers. It runs the table of cases for the operators that have engines of their own.
// Half of the cases use each 16-bit type. Engines are the planner's choice, and each engine forced
// in turn.
//
//   storage_test [--type TYPE] [--every N] [-v]
//
// --every: only each Nth case.
//
// A case is put between two negations, which are exact. So lower_precision may store the results of
// the first negation and of the operator in 16 bits. Skipped on devices that store only float; with
// DLPRIM_TRAITS=wide_vectors=0 a CPU stores 16 bits too.
#include "check/compare.hpp"
#include "exec/executor.hpp"
#include "formats/json_net.hpp"
#include "graph/passes/passes.hpp"
#include "plan/choose.hpp"
#include "plan/make_plan.hpp"
#include "support/cases.hpp"
#include "support/devices.hpp"
#include "support/turns.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const types[] = {"Convolution",  "TransposedConvolution",
                             "InnerProduct", "MatMul",
                             "Pooling",      "Concat",
                             "Slice",        "Flip",
                             "Transpose",    "Pad"};

/// Engines that must have run on 16 bits at the end.
const char* const engines[] = {"conv2d.winograd",
                               "conv2d.implicit_gemm",
                               "conv2d.depthwise_last",
                               "conv2d.reference",
                               "conv2d_backward_data.winograd",
                               "conv2d_backward_data.implicit_gemm",
                               "conv2d_backward_data.depthwise_last",
                               "conv2d_backward_data.reference",
                               "conv2d_backward_filter.implicit_gemm",
                               "conv2d_backward_filter.depthwise_last",
                               "conv2d_backward_filter.reference",
                               "inner_product.tiled",
                               "inner_product.gemv",
                               "inner_product.reference",
                               "matmul.tiled",
                               "matmul.gemv",
                               "matmul.reference",
                               "pooling2d.generic",
                               "pooling2d.backward",
                               "concat.copy",
                               "slice.copy",
                               "flip.copy",
                               "transpose.copy",
                               "pad.copy"};

struct Tally {
    int cases = 0, plans = 0, failures = 0;
    std::set<std::string> narrow;  ///< engines that have read or written 16 bits
    Turns turns;
};

std::vector<double> negated(std::vector<double> values) {
    for (double& value : values) value = -value;
    return values;
}

class Checker {
  public:
    Checker(const Context& device, const Case& one, Precision precision, Tally& tally)
        : device_(device),
          one_(one),
          op_(OperatorRegistry::instance().get(one.type)),
          precision_(precision),
          dtype_(precision == Precision::fp16 ? DType::f16 : DType::bf16),
          tally_(tally),
          data_(make_case_data(one, seed_of(one))) {
        for (HostArray& input : data_.inputs) round_to(dtype_, input.data);
        ask_oracle();
    }

    void direction(bool backward) {
        const std::map<std::string, std::string> others = compare(backward, "", "");
        for (const auto& [engine, type] : others)
            if (tally_.turns.take(std::string(name_of(dtype_)) + engine, device_))
                compare(backward, type, engine);
    }

  private:
    void ask_oracle() {
        const std::vector<HostArray> operands = data_.operands();
        made_ = op_.infer(data_.attrs, data_.specs());
        OracleCall call{
            data_.attrs, one_.training, operands, std::vector<HostArray>(made_.size()), {}, 1, 1};
        op_.oracle(call);
        outputs_ = call.outputs;
        if (!one_.gradient) return;
        output_gradients_ = output_gradients_of(one_, data_, seed_of(one_));
        for (HostArray& gradient : output_gradients_) round_to(dtype_, gradient.data);
        OracleBackwardCall back{data_.attrs,
                                one_.training,
                                operands,
                                outputs_,
                                output_gradients_,
                                std::vector<HostArray>(operands.size()),
                                1,
                                1};
        op_.oracle_backward(back);
        gradients_ = back.input_gradients;
    }

    ValueId operand(Graph& graph, const std::string& name, const HostArray& array, Role role) {
        Value value;
        value.name = name;
        value.spec = {array.shape, array.dtype};
        value.role = role;
        value.trainable = role == Role::parameter;
        const ValueId id = graph.add_value(std::move(value));
        if (role == Role::input) graph.inputs.push_back(id);
        return id;
    }

    Graph make_graph(bool backward) {
        Graph graph;
        graph.training = one_.training;
        graph.precision = precision_;
        given_.clear();
        std::vector<ValueId> values;
        for (std::size_t i = 0; i < data_.inputs.size(); ++i) {
            const std::string name = "input " + std::to_string(i);
            given_.push_back(operand(graph, name, data_.inputs[i], Role::input));
            values.push_back(graph.pointwise1("narrow " + name, "y0 = -x0", {given_.back()}));
        }
        for (std::size_t i = 0; i < data_.params.size(); ++i) {
            given_.push_back(
                operand(graph, "parameter " + std::to_string(i), data_.params[i], Role::parameter));
            values.push_back(given_.back());
        }
        const std::vector<ValueId> made = graph.add(op_.type(), "op", values, data_.attrs);
        for (std::size_t i = 0; i < made.size(); ++i)
            graph.outputs.emplace_back(
                graph.pointwise1("wide " + std::to_string(i), "y0 = -x0", {made[i]}),
                "output " + std::to_string(i));
        expand_composites(graph);
        if (!backward) return graph;
        DifferentiateOptions how;
        how.input_gradients = how.seeds_are_inputs = true;
        differentiate(graph, how);
        graph.outputs.clear();
        graph.assignments.clear();
        graph.remove_dead();
        return graph;
    }

    /// Runs with an engine forced by type, or with the planner's choice. Returns the other engines,
    /// with their types, that apply to nodes with 16-bit operands.
    std::map<std::string, std::string> compare(bool backward, const std::string& type,
                                               const std::string& engine) {
        where_ = one_.title() + (backward ? " backward" : " forward") + " in " +
                 std::string(name_of(dtype_)) + (engine.empty() ? "" : " by " + engine);
        PlanOptions options{.bind_params_from = 0, .least_narrow = 1, .narrow_cost = 1e9};
        if (!engine.empty()) options.engines = {{type, engine}};
        Graph graph = make_graph(backward);
        BlockStore store;
        Executor executor(device_, make_plan(device_, graph, options), store);
        ++tally_.plans;
        const Plan& plan = executor.plan();
        std::map<std::string, std::string> others = look(plan, engine);

        std::vector<Tensor> bound;
        for (std::size_t i = 0; i < plan.externals.size(); ++i) {
            const External& external = plan.externals[i];
            const TensorSpec& spec = plan.graph.spec(external.value);
            Tensor tensor(device_, spec.shape, spec.dtype);
            if (external.kind == External::Kind::input ||
                external.kind == External::Kind::parameter)
                upload(tensor, contents_of(external));
            executor.bind(static_cast<int>(i), tensor);
            bound.push_back(tensor);
        }
        executor.run(Part::forward);
        if (backward) executor.run(Part::backward);
        for (std::size_t i = 0; i < plan.externals.size(); ++i) {
            const External& external = plan.externals[i];
            if (external.kind == External::Kind::output) {
                const auto k = static_cast<std::size_t>(std::stoi(external.name.substr(7)));
                check(external.name, bound[i], negated(outputs_.at(k).data), false);
            } else if (external.kind == External::Kind::gradient) {
                const auto k = static_cast<std::size_t>(
                    std::find(given_.begin(), given_.end(), external.value) - given_.begin());
                const HostArray& wanted = gradients_.at(k);
                if (wanted.data.empty() && wanted.shape.numel() != 0) continue;
                check("gradient " + std::to_string(k), bound[i],
                      k < data_.inputs.size() ? negated(wanted.data) : wanted.data, true);
            }
        }
        return others;
    }

    std::vector<double> contents_of(const External& external) const {
        const auto found = std::find(given_.begin(), given_.end(), external.value);
        const auto i = static_cast<std::size_t>(found - given_.begin());
        if (found == given_.end())  // "@grad/output K"
            return negated(
                output_gradients_.at(static_cast<std::size_t>(std::stoi(external.name.substr(13))))
                    .data);
        if (i < data_.inputs.size()) return negated(data_.inputs[i].data);
        return data_.params[i - data_.inputs.size()].data;
    }

    /// Records what used 16 bits in the plan, and which other engines could.
    std::map<std::string, std::string> look(const Plan& plan, const std::string& engine) {
        std::map<std::string, std::string> others;
        bool any = false, computes = false, used = engine.empty();
        std::set<const Engine*> chosen;
        for (const Step& step : plan.steps)
            if (step.engine != nullptr) chosen.insert(step.engine);
        for (const Engine* one : chosen) used = used || one->name() == engine;
        for (const Node& node : plan.graph.nodes) {
            const std::string_view type = node.op->type();
            if (node.removed || node.op->is_view() || type == "Pointwise" ||
                type == "PointwiseRows")
                continue;
            computes = true;
            const Problem problem = problem_of(device_.traits(), plan.graph, node, {});
            bool narrow = false;
            for (const auto* operands : {&problem.inputs, &problem.outputs})
                for (const Operand& o : *operands) narrow = narrow || has_16_bits(o.dtype);
            any = any || narrow;
            if (!narrow) continue;
            for (const Engine* one : EngineRegistry::instance().of(problem.op, false)) {
                if (!one->is_applicable(device_.traits(), problem)) continue;
                if (chosen.count(one))
                    tally_.narrow.emplace(one->name());
                else
                    others.emplace(one->name(), problem.op);
            }
        }
        // A Pad's gradient has no engine for it, the parts of a Concat of many inputs are as small
        // as statistics, some cases have no elements, and the gradient of a Slice of everything is
        // the gradient that it is given.
        const bool expected = std::any_of(made_.begin(), made_.end(), [](const TensorSpec& spec) {
            return spec.shape.numel() > 0;
        });
        if (!any && computes && expected && one_.type != "Pad" && one_.inputs.size() < 16)
            fail("nothing is stored in 16 bits");
        if (!used) fail("the engine applies, but was not used when forced");
        return others;
    }

    void upload(Tensor& tensor, const std::vector<double>& values) {
        std::vector<float> floats(values.begin(), values.end());
        if (!floats.empty()) tensor.copy_from_host(floats.data(), floats.size() * sizeof(float));
    }

    /// A result is rounded once, by at most half a unit in the last place: 2^-11 of it, or 2^-8 in
    /// bf16. In the backward pass, three values are rounded: the forward result, the gradient
    /// before the activation, which depends on it, and the result. The derivative of tanh, 1 - y^2,
    /// has an error of two units, and its mean over normal inputs is 1/2, which makes a relative
    /// error of four units more. That of a sigmoid has less.
    void check(const std::string& what, const Tensor& found, const std::vector<double>& wanted,
               bool backward) {
        std::vector<float> values(static_cast<std::size_t>(found.shape().numel()));
        if (!values.empty()) found.copy_to_host(values.data(), values.size() * sizeof(float));
        const double error =
            relative_error(std::vector<double>(values.begin(), values.end()), wanted);
        const bool curved = one_.options.find("tanh") != std::string::npos ||
                            one_.options.find("sigmoid") != std::string::npos;
        const int roundings = backward ? curved ? 8 : 4 : 1;
        if (!(error <= allowed_error(DType::f32, {precision_, roundings})))
            fail(what + " is off by " + std::to_string(error));
    }

    void fail(const std::string& what) {
        ++tally_.failures;
        std::cout << "FAILED " << device_.info().name << ": " << where_ << ": " << what << "\n    "
                  << one_.options << std::endl;
    }

    Context device_;
    const Case& one_;
    const Operator& op_;
    const Precision precision_;
    const DType dtype_;
    Tally& tally_;
    CaseData data_;
    std::vector<TensorSpec> made_;
    std::vector<HostArray> outputs_, output_gradients_, gradients_;
    std::vector<ValueId> given_;  ///< inputs, then parameters
    std::string where_;
};

bool is_float_case(const Case& one) {
    const auto is_float32 = [](const CaseTensor& tensor) { return tensor.dtype == DType::f32; };
    if (one.speed || !std::all_of(one.inputs.begin(), one.inputs.end(), is_float32)) return false;
    const CaseData data = make_case_data(one, 1);
    // Weights in blocks are bytes, beside which nothing is stored in 16 bits.
    if (const Attr* blocks = data.attrs.find("blocks");
        blocks != nullptr && !std::get<std::string>(*blocks).empty())
        return false;
    const std::vector<TensorSpec> made =
        OperatorRegistry::instance().get(one.type).infer(data.attrs, data.specs());
    return std::all_of(made.begin(), made.end(),
                       [](const TensorSpec& spec) { return spec.dtype == DType::f32; });
}

}  // namespace

int main(int count, char** words) {
    std::string only;
    bool verbose = false;
    int every = 1, number = 0;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(words[i], "-v") == 0)
            verbose = true;
        else if (std::strcmp(words[i], "--type") == 0 && i + 1 < count)
            only = words[++i];
        else if (std::strcmp(words[i], "--every") == 0 && i + 1 < count)
            every = std::max(1, std::atoi(words[++i]));
        else
            return std::cerr << "usage: storage_test [--type TYPE] [--every N] [-v]\n", 2;
    }
    bool any = false;
    int failures = 0;
    for (const Context& device : test_devices()) {
        if (!stores_narrow(device.traits())) continue;
        any = true;
        Tally tally;
        for (const Case& one : load_cases(DLPRIM_CASES)) {
            if (std::find(std::begin(types), std::end(types),
                          OperatorRegistry::instance().type_of(one.type)) == std::end(types) ||
                (!only.empty() && one.type != only) || !is_float_case(one))
                continue;
            if (number++ % every != 0) continue;
            // Alternate, because compiling takes long.
            const Precision precision = ++tally.cases % 2 == 0 ? Precision::fp16 : Precision::bf16;
            const int before = tally.plans;
            try {
                Checker checker(device, one, precision, tally);
                checker.direction(false);
                // The derivative of relu changes where rounding moves a value across 0 or to 6. If
                // that happens to a fraction e of the values, the gradient's error is the root of
                // e.
                if (one.gradient && one.options.find("relu") == std::string::npos)
                    checker.direction(true);
            } catch (const std::exception& error) {
                ++tally.failures;
                std::cout << "FAILED " << device.info().name << ": " << one.title() << ": "
                          << error.what() << std::endl;
            }
            if (verbose)
                std::cout << one.title() << ": " << tally.plans - before << " plans" << std::endl;
        }
        for (const char* engine : engines) {
            if (!only.empty() || every > 1 || tally.narrow.count(engine)) continue;
            ++tally.failures;
            std::cout << "FAILED " << device.info().name << ": " << engine
                      << " never worked on 16 bits\n";
        }
        std::cout << device.info().name << ": " << tally.cases << " cases, " << tally.plans
                  << " plans, " << tally.narrow.size() << " engines, " << tally.failures
                  << " failures\n";
        failures += tally.failures;
    }
    if (!any) {
        std::cout << "no device here stores 16 bits\n";
        return skipped_status;
    }
    return failures == 0 ? 0 : 1;
}
