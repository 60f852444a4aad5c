// SPDX-License-Identifier: MIT
// Runs a case and compares the results.
#include "support/check_case.hpp"

#include "base/text.hpp"
#include "exec/eager.hpp"
#include "formats/json_net.hpp"
#include "plan/choose.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

namespace dlprim::testing {

namespace {

using Bytes = std::vector<std::byte>;

Tensor upload_one(const Context& device, const HostArray& array) {
    Tensor tensor(device, array.shape, array.dtype);
    Bytes bytes(array.data.size() * size_of(array.dtype));
    convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
    if (!bytes.empty()) tensor.copy_from_host(bytes.data(), bytes.size());
    return tensor;
}

/// The same in a strided view: with exchanged dimensions, with gaps, or as channels_last, beginning
/// where vectors are not aligned.
Tensor upload_view(const Context& device, const HostArray& array, unsigned kind) {
    const Shape& shape = array.shape;
    std::vector<int> order;  // of dimensions in memory, outermost first
    for (int d = 0; d < shape.rank(); ++d) order.push_back(d);
    if (kind % 3 == 0) std::reverse(order.begin(), order.end());
    if (kind % 3 == 1 && order.size() > 2)
        std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    const std::int64_t step = kind % 3 == 2 ? 2 : 1, offset = kind % 2;
    std::vector<std::int64_t> strides(order.size());
    std::int64_t inside = step;
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[static_cast<std::size_t>(order[i])] = inside;
        inside *= std::max<std::int64_t>(1, shape[order[i]]);
    }
    const Tensor memory(device, {shape.numel() * step + offset + 1}, array.dtype);
    Tensor view = memory.view(shape, strides, offset);
    Bytes bytes(array.data.size() * size_of(array.dtype));
    convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
    if (!bytes.empty()) view.copy_from_host(bytes.data(), bytes.size());
    return view;
}

std::vector<Tensor> upload_views(const Context& device, const std::vector<HostArray>& arrays,
                                 unsigned kind) {
    std::vector<Tensor> views;
    for (const HostArray& array : arrays) views.push_back(upload_view(device, array, kind++));
    return views;
}

Bytes download(const Tensor& tensor) {
    Bytes bytes(tensor.bytes());
    if (!bytes.empty()) tensor.copy_to_host(bytes.data(), bytes.size());
    return bytes;
}

/// The operator names the parameters that its oracle writes.
void check_written(const Operator& op, const CaseData& data,
                   const std::vector<std::pair<int, HostArray>>& updated) {
    std::vector<std::size_t> written;
    for (const auto& change : updated)
        written.push_back(static_cast<std::size_t>(change.first) - data.inputs.size());
    require(written == op.written_params(data.attrs), op.type(),
            "::written_params() does not name the parameters that the oracle changes");
}

}  // namespace

Expected ask_oracle(const Case& one, const CaseData& data, unsigned seed) {
    const Operator& op = OperatorRegistry::instance().get(one.type);
    std::vector<HostArray> operands = data.inputs;
    operands.insert(operands.end(), data.params.begin(), data.params.end());
    std::vector<TensorSpec> specs;
    for (const HostArray& operand : operands) specs.push_back({operand.shape, operand.dtype});
    Expected expected;
    const std::vector<TensorSpec> made = op.infer(data.attrs, specs);
    OracleCall call{data.attrs, one.training, operands, std::vector<HostArray>(made.size()),
                    {},         call_seed,    call_step};
    op.oracle(call);
    if (one.training) check_written(op, data, call.updated);
    expected.updated = call.updated;
    expected.outputs = call.outputs;
    if (!one.gradient) return expected;
    std::mt19937 random(seed + 1);
    for (const TensorSpec& output : made) {
        CaseTensor tensor;
        tensor.shape = output.shape;
        tensor.dtype = output.dtype;
        expected.output_gradients.push_back(make_data(tensor, random));
    }
    OracleBackwardCall back{data.attrs,
                            one.training,
                            operands,
                            call.outputs,
                            expected.output_gradients,
                            std::vector<HostArray>(operands.size()),
                            call_seed,
                            call_step};
    op.oracle_backward(back);
    expected.gradients = back.input_gradients;
    expected.terms = back.terms;
    return expected;
}

std::vector<Tensor> upload(const Context& device, const std::vector<HostArray>& arrays) {
    std::vector<Tensor> tensors;
    for (const HostArray& array : arrays) tensors.push_back(upload_one(device, array));
    return tensors;
}

double norm(const std::vector<double>& values) {
    double squares = 0;
    for (const double v : values) squares += v * v;
    return std::sqrt(squares);
}

double tolerance(DType dtype, Precision precision, const Plan& plan) {
    // Everything is computed in float or better. A result is rounded once, by at most half a unit
    // in the last place of numbers of 11 or 8 bits, which is 2^-11 or 2^-8 of it. The bound is
    // twice that for operators that consist of two such operations (a sum and its activation).
    if (dtype == DType::f16) return 2 * 0x1p-11;
    if (dtype == DType::bf16) return 2 * 0x1p-8;
    if (dtype == DType::f64) return 1e-12;
    if (is_integer(dtype) || dtype == DType::boolean) return 0;
    double most = 1e-5;
    for (const Step& step : plan.steps) {
        if (step.engine == nullptr) continue;
        // Both operands have errors of up to 2^-11, in two consecutive products: that of the
        // gradient, and the forward product on whose result it depends.
        if (precision != Precision::fp32 && step.engine->computes_in(precision)) return 4 * 0x1p-11;
        if (step.engine->name().find("winograd") != std::string_view::npos) most = 1e-4;
    }
    return most;
}

namespace {

/// Those that flow back: integers have none.
std::vector<HostArray> of_floats(const std::vector<HostArray>& gradients) {
    std::vector<HostArray> result;
    for (const HostArray& gradient : gradients)
        if (is_float(gradient.dtype)) result.push_back(gradient);
    return result;
}

class Checker {
  public:
    Checker(const Context& device, const Case& one, unsigned seed, Precision precision,
            Tally& tally)
        : device_(device),
          one_(one),
          seed_(seed),
          precision_(precision),
          tally_(tally),
          data_(make_case_data(one, seed)),
          expected_(ask_oracle(one, data_, seed)),
          inputs_(upload(device, data_.inputs)),
          output_gradients_(upload(device, of_floats(expected_.output_gradients))) {}

    void direction(bool backward) {
        // A plan is valid only until the next call, so everything is copied from it first.
        std::map<std::string, std::string> forced;  // engine -> type
        {
            const Plan& plan = compare(backward, {});
            std::set<const Engine*> chosen;
            for (const Step& step : plan.steps)
                if (step.engine != nullptr) chosen.insert(step.engine);
            for (const Node& node : plan.graph.nodes) {
                if (node.removed || node.op->is_view()) continue;
                const Problem problem = problem_of(device_.traits(), plan.graph, node, {});
                for (const Engine* engine :
                     EngineRegistry::instance().of(problem.op, device_.traits().host)) {
                    if (applies_elsewhere(*engine, problem)) tally_.for_others.insert(engine);
                    if (!engine->is_applicable(device_.traits(), problem)) continue;
                    tally_.applied.insert(engine);
                    if (!chosen.count(engine)) forced.emplace(engine->name(), problem.op);
                }
            }
        }
        for (const auto& [engine, type] : forced)
            if (tally_.turns.take(one_.type + (backward ? " backward " : " ") + engine, device_))
                compare(backward, {{type, engine}});
    }

    /// The same call with strided views of all operands. Devices that compile try some of the
    /// cases.
    void direction_on_views(bool backward) {
        if (!device_.traits().host && seed_ % 4 != 0) return;
        on_views_ = true;
        inputs_ = upload_views(device_, data_.inputs, seed_);
        output_gradients_ = upload_views(device_, of_floats(expected_.output_gradients), seed_ + 1);
        compare(backward, {});
    }

  private:
    /// Whether a device of another kind would use the engine.
    bool applies_elsewhere(const Engine& engine, const Problem& problem) const {
        if (device_.traits().host) return false;
        Traits other = device_.traits();
        other.max_work_group = 1024;
        other.local_bytes = 256 << 10;
        other.fp16 = other.fp64 = other.wgmma = other.mma = true;
        other.matrix_fp16 = other.matrix_bf16 = true;
        other.mma_local_bytes = 227 << 10;
        other.subgroup_size = 16;
        for (const bool wide : {false, true}) {
            other.wide_vectors = wide;
            other.vector_width = wide ? 8 : 1;
            if (engine.is_applicable(other, problem)) return true;
        }
        return false;
    }

    const Plan& compare(bool backward, std::vector<std::pair<std::string, std::string>> engines) {
        ops::CallOptions how;
        how.training = one_.training;
        how.precision = precision_;
        how.seed = call_seed;
        how.step = call_step;
        how.engines = std::move(engines);
        const std::string forced = how.engines.empty() ? "" : " by " + how.engines[0].second;
        where_ = one_.title() + (backward ? " backward" : " forward") + forced +
                 (on_views_ ? " on views" : "");
        std::vector<Bytes> first;
        for (int round = 0; round < 2; ++round) {
            // Upload the parameters again, because a training-mode forward changes them.
            params_ = on_views_ ? upload_views(device_, data_.params, seed_ + 2)
                                : upload(device_, data_.params);
            std::vector<Tensor> results =
                backward ? ops::backward(one_.type, one_.options, inputs_, params_,
                                         output_gradients_, how)
                         : ops::call(one_.type, one_.options, inputs_, params_, how);
            if (!backward) results.insert(results.end(), params_.begin(), params_.end());
            std::vector<Bytes> bytes;
            for (const Tensor& tensor : results)
                bytes.push_back(tensor.defined() ? download(tensor) : Bytes{});
            ++tally_.runs;
            if (round == 0) {
                first = std::move(bytes);
                results_ = std::move(results);
            } else if (bytes != first) {
                fail("two runs differ");
            }
        }
        const Plan& plan = eager_plan(one_.type, parse_options_json(one_.options), inputs_, params_,
                                      backward ? output_gradients_ : std::vector<Tensor>{}, how);
        bool used = how.engines.empty();
        std::set<const Engine*> used_here;
        for (const auto* steps : {&plan.steps, &plan.setup}) {
            for (const Step& step : *steps) {
                if (step.engine == nullptr) continue;
                used_here.insert(step.engine);
                used = used || step.engine->name() == how.engines[0].second;
            }
        }
        for (const Engine* engine : used_here) ++tally_.tried[engine];
        if (!used) fail("the engine applies, but was not used when forced");
        if (backward)
            compare_gradients(first, plan);
        else
            compare_outputs(first, plan);
        return plan;
    }

    void compare_outputs(const std::vector<Bytes>& found, const Plan& plan) {
        const std::size_t outputs = expected_.outputs.size();
        if (found.size() != outputs + params_.size())
            return fail("made another number of outputs than the oracle");
        for (std::size_t i = 0; i < outputs; ++i)
            compare_one("output", i, found[i], results_[i].shape(), results_[i].dtype(),
                        expected_.outputs[i], plan);
        for (std::size_t i = 0; i < params_.size(); ++i) {
            const HostArray* wanted = &data_.params[i];
            for (const auto& [index, contents] : expected_.updated)
                if (static_cast<std::size_t>(index) == inputs_.size() + i) wanted = &contents;
            compare_one("parameter after", i, found[outputs + i], params_[i].shape(),
                        params_[i].dtype(), *wanted, plan);
        }
    }

    void compare_gradients(const std::vector<Bytes>& found, const Plan& plan) {
        for (std::size_t i = 0; i < found.size(); ++i) {
            const HostArray& wanted = expected_.gradients[i];
            const bool made = results_[i].defined();
            const std::size_t operands = data_.inputs.size() + data_.params.size();
            if (i >= operands) return fail("made too many gradients");
            if (made && wanted.data.empty() && wanted.shape.numel() != 0) {
                if (i < data_.inputs.size()) continue;  // float labels have zeros
                std::ostringstream text;
                text << "made a gradient of operand " << i << ", which is a state";
                fail(text.str());
                continue;
            }
            if (!made && !wanted.data.empty()) {
                std::ostringstream text;
                text << "no gradient of operand " << i << ", the oracle has one";
                fail(text.str());
                continue;
            }
            if (!made) continue;
            const bool cancels = i < expected_.terms.size() && !expected_.terms[i].data.empty();
            compare_one("gradient", i, found[i], results_[i].shape(), results_[i].dtype(), wanted,
                        plan, cancels ? norm(expected_.terms[i].data) : 0);
        }
    }

    /// `size` is what errors are relative to, if it is larger than the norm of the expected result.
    /// The error of a float sum is proportional to its terms, not to what remains if they cancel.
    /// Its bound is n roundings times the sum of the terms' absolute values, which oracles of such
    /// operators return as OracleBackwardCall::terms.
    void compare_one(const char* what, std::size_t index, const Bytes& bytes, const Shape& shape,
                     DType dtype, const HostArray& wanted, const Plan& plan, double size = 0) {
        std::ostringstream text;
        text << what << ' ' << index;
        if (shape != wanted.shape) {
            text << " has shape " << shape.str() << ", the oracle's " << wanted.shape.str();
            return fail(text.str());
        }
        std::vector<double> values(static_cast<std::size_t>(shape.numel()));
        convert(bytes.data(), dtype, values.data(), DType::f64, values.size());
        HostArray rounded = wanted;
        if (!is_float(dtype)) {  // the oracle's double, converted to this type
            Bytes typed(rounded.data.size() * size_of(dtype));
            convert(rounded.data.data(), DType::f64, typed.data(), dtype, rounded.data.size());
            convert(typed.data(), dtype, rounded.data.data(), DType::f64, rounded.data.size());
        }
        const double error = relative_error(values, rounded.data, std::max(1e-30, size));
        if (error <= tolerance(dtype, precision_, plan)) return;
        text << " is off by " << error;
        for (std::size_t i = 0, shown = 0; i < values.size() && shown < 3; ++i) {
            if (std::abs(values[i] - rounded.data[i]) <= 1e-5 * std::abs(rounded.data[i])) continue;
            text << (shown == 0 ? ": " : ", ") << '[' << i << "] " << values[i] << " for "
                 << rounded.data[i];
            ++shown;
        }
        fail(text.str());
    }

    void fail(const std::string& what) { tally_.failures.push_back(where_ + ": " + what); }

    Context device_;
    const Case& one_;
    unsigned seed_;
    bool on_views_ = false;
    Precision precision_;
    Tally& tally_;
    CaseData data_;
    Expected expected_;
    std::vector<Tensor> inputs_, params_, results_, output_gradients_;
    std::string where_;
};

}  // namespace

void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally) {
    ++tally.cases;
    try {
        Checker checker(device, one, seed, precision, tally);
        checker.direction(false);
        if (one.gradient) checker.direction(true);
        checker.direction_on_views(false);
        if (one.gradient) checker.direction_on_views(true);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::unsupported)
            ++tally.skips[one.type + ": " + error.what()];
        else
            tally.failures.push_back(one.title() + ": " + error.what());
    } catch (const std::exception& error) {
        tally.failures.push_back(one.title() + ": " + error.what());
    }
}

}  // namespace dlprim::testing
