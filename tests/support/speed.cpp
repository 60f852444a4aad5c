// SPDX-License-Identifier: MIT
// Measures and compares.
#include "support/speed.hpp"

#include "base/text.hpp"
#include "check/compare.hpp"
#include "exec/eager.hpp"
#include "exec/operator_check.hpp"
#include "formats/json_net.hpp"
#include "plan/choose.hpp"
#include "support/turns.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>

namespace dlprim::testing {

namespace {

constexpr double seconds_a_median = 0.3;  ///< calls are repeated for so long, or
constexpr std::size_t most_calls = 25, least_calls = 3;

/// The number of operations or elements for which the oracle's loops take seconds.
constexpr double oracle_work = 3e8;

using Engines = std::vector<std::pair<std::string, std::string>>;

struct Result {
    std::vector<std::vector<double>> values;  ///< one per result; empty if there is none
    std::vector<DType> dtypes;
};

class Measurement {
  public:
    Measurement(const Context& device, const Case& one, unsigned seed, std::ostream& out,
                std::vector<std::string>& failures)
        : device_(device),
          one_(one),
          seed_(seed),
          data_(make_case_data(one, seed)),
          out_(out),
          failures_(failures) {
        const Operator& op = OperatorRegistry::instance().get(one.type);
        specs_ = data_.specs();
        made_ = op.infer(data_.attrs, specs_);
        flops_ = op.flops(data_.attrs, specs_, made_);
        if (one.gradient) output_gradients_ = output_gradients_of(one, data_, seed);
    }

    void direction(bool backward) {
        backward_ = backward;
        Engines others;
        const bool compared = expect();
        run({}, &others);
        for (const auto& [type, engine] : others)
            if (Turns::asked_for(engine)) run({{type, engine}}, nullptr);
        if (!compared && others.empty())
            out_ << "    compared with nothing: no other engine here, and the oracle takes long\n";
    }

  private:
    /// Holds uploaded operands and makes calls on them.
    class Caller {
      public:
        Caller(const Measurement& m, const Context& device, const Engines& engines)
            : m_(m),
              inputs_(upload(device, m.data_.inputs)),
              params_(upload(device, m.data_.params)),
              output_gradients_(m.backward_ ? upload(device, m.output_gradients_)
                                            : std::vector<Tensor>{}) {
            how_.training = m.one_.training;
            how_.seed = call_seed;
            how_.step = call_step;
            how_.engines = engines;
        }
        std::vector<Tensor> operator()() const {
            const Case& one = m_.one_;
            return m_.backward_ ? ops::backward(one.type, one.options, inputs_, params_,
                                                output_gradients_, how_)
                                : ops::call(one.type, one.options, inputs_, params_, how_);
        }
        const Plan& plan() const {
            return eager_plan(m_.one_.type, parse_options_json(m_.one_.options), inputs_, params_,
                              output_gradients_, how_);
        }

      private:
        const Measurement& m_;
        std::vector<Tensor> inputs_, params_, output_gradients_;
        ops::CallOptions how_;
    };

    static Result download(const std::vector<Tensor>& tensors) {
        Result result;
        for (const Tensor& tensor : tensors) {
            std::vector<double> values;
            if (tensor.defined()) {
                std::vector<std::byte> bytes(tensor.bytes());
                if (!bytes.empty()) tensor.copy_to_host(bytes.data(), bytes.size());
                values.resize(static_cast<std::size_t>(tensor.shape().numel()));
                convert(bytes.data(), tensor.dtype(), values.data(), DType::f64, values.size());
            }
            result.values.push_back(std::move(values));
            result.dtypes.push_back(tensor.defined() ? tensor.dtype() : DType::f32);
        }
        return result;
    }

    /// Prepares the results to compare with. Returns false if there are none yet.
    bool expect() {
        expected_.clear();
        sizes_.clear();
        source_.clear();
        double elements = 0;
        for (const TensorSpec& spec : specs_) elements += static_cast<double>(spec.shape.numel());
        if (flops_ <= oracle_work && elements * 20 <= oracle_work) {
            const Expected answers = ask_oracle(one_, data_, seed_);
            for (const HostArray& array : backward_ ? answers.gradients : answers.outputs)
                expected_.push_back(array.data);
            if (backward_)
                for (std::size_t i = 0; i < expected_.size(); ++i)
                    sizes_.push_back(answers.least_norm(i));
            source_ = "the oracle";
        } else if (!device_.traits().host) {
            expected_ = download(Caller(*this, Context("cpu"), {})()).values;
            source_ = "the host";
        }
        return !expected_.empty();
    }

    void run(const Engines& forced, Engines* others) {
        const Caller call(*this, device_, forced);
        Result result = download(call());
        const double first = seconds([&] { call(); });
        std::vector<double> times;
        const auto enough = static_cast<std::size_t>(seconds_a_median / std::max(first, 1e-6));
        const std::size_t least = first > 1 ? 1 : least_calls;
        for (std::size_t i = 0; i < std::clamp(enough, least, most_calls); ++i) {
            // Short calls are repeated, so that the wait for the last one is not counted as theirs.
            const int row = first < 2e-3 ? 20 : 1;
            times.push_back(seconds([&] {
                                for (int k = 0; k < row; ++k) call();
                            }) /
                            row);
        }
        std::sort(times.begin(), times.end());
        const Plan& plan = call.plan();
        report(times[times.size() / 2], plan, forced.empty());
        compare(result, forced);
        if (others == nullptr) return;
        std::set<const Engine*> chosen;
        std::set<std::string> seen;
        for (const Step& step : plan.steps)
            if (step.engine != nullptr) chosen.insert(step.engine);
        for (const Node& node : plan.graph.nodes) {
            if (node.removed || node.op->is_view()) continue;
            const Problem problem = problem_of(device_.traits(), plan.graph, node, {});
            for (const Engine* engine :
                 EngineRegistry::instance().of(problem.op, device_.traits().host))
                if (!chosen.count(engine) && engine->is_applicable(device_.traits(), problem) &&
                    seen.insert(std::string(engine->name())).second)
                    others->emplace_back(problem.op, engine->name());
        }
    }

    double seconds(const std::function<void()>& work) const {
        device_.finish();
        const auto start = std::chrono::steady_clock::now();
        work();
        device_.finish();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    double bound() const {
        double bytes = 0;
        for (const auto* list : {&specs_, &made_})
            for (const TensorSpec& spec : *list)
                bytes += static_cast<double>(spec.shape.numel()) *
                         static_cast<double>(size_of(spec.dtype));
        // Backward: one product for each of the two factors. Operands are read, and their gradients
        // written.
        const double directions = backward_ ? 2 : 1;
        return std::max(directions * flops_ / (std::max(1.0, device_.traits().gflops) * 1e9),
                        directions * bytes / (std::max(1.0, device_.traits().gbytes_per_s) * 1e9));
    }

    void report(double measured, const Plan& plan, bool free) const {
        std::string engines;
        std::set<std::string_view> seen;
        for (const Step& step : plan.steps)
            if (step.engine != nullptr && seen.insert(step.engine->name()).second)
                engines += cat(engines.empty() ? "" : " + ", step.engine->name());
        char line[160];
        std::snprintf(line, sizeof(line), "%-44s %-8s %10.3f ms, bound %10.3f ms (%3.0f%%)  ",
                      one_.title().c_str(), backward_ ? "backward" : "forward", measured * 1e3,
                      bound() * 1e3, 100 * bound() / measured);
        out_ << line << engines << (free ? "  <- the planner's choice" : "") << std::endl;
    }

    void compare(Result& result, const Engines& forced) {
        if (expected_.empty()) {
            expected_ = std::move(result.values);
            source_ = "the planner's choice";
            return;
        }
        for (std::size_t i = 0; i < expected_.size(); ++i) {
            if (i >= result.values.size() || expected_[i].empty() || result.values[i].empty())
                continue;
            const double error = relative_error(result.values[i], expected_[i],
                                                i < sizes_.size() ? sizes_[i] : 1e-30);
            // The errors of two engines may have opposite signs.
            const double allowed =
                allowed_error(result.dtypes[i]) * (source_ == "the oracle" ? 1 : 2);
            if (error <= allowed) continue;
            failures_.push_back(cat(
                one_.title(), backward_ ? " backward" : " forward", forced.empty() ? "" : " by ",
                forced.empty() ? "" : forced[0].second, ": ", backward_ ? "gradient " : "output ",
                i, " is off by ", error, " from ", source_));
        }
    }

    Context device_;
    const Case& one_;
    unsigned seed_;
    CaseData data_;
    std::ostream& out_;
    std::vector<std::string>& failures_;
    std::vector<TensorSpec> specs_, made_;
    std::vector<HostArray> output_gradients_;
    double flops_ = 0;
    bool backward_ = false;
    std::vector<std::vector<double>> expected_;
    std::vector<double> sizes_;  ///< of gradients: what errors are relative to
    std::string source_;
};

}  // namespace

void measure_case(const Context& device, const Case& one, unsigned seed, std::ostream& out,
                  std::vector<std::string>& failures) {
    try {
        Measurement measurement(device, one, seed, out, failures);
        measurement.direction(false);
        if (one.gradient) measurement.direction(true);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported)
            failures.push_back(one.title() + ": " + error.what());
        else
            out << one.title() << ": " << error.what() << std::endl;
    }
}

}  // namespace dlprim::testing
