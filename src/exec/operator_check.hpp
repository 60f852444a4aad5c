// SPDX-License-Identifier: MIT
// OperatorCheck: calls the operator of a case eagerly on a device and compares with the oracle. The
// library's self-test and the tests of operators use it.
#pragma once

#include "check/cases.hpp"
#include "plan/plan.hpp"

#include <dlprim/context.hpp>
#include <dlprim/ops.hpp>
#include <dlprim/tensor.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// A tensor of the device with the array's contents.
Tensor upload(const Context& device, const HostArray& array);
std::vector<Tensor> upload(const Context& device, const std::vector<HostArray>& arrays);

class OperatorCheck {
  public:
    /// Makes the data of the case, and asks the oracle. The case must outlive this.
    OperatorCheck(const Context& device, const Case& one, unsigned seed,
                  Precision precision = Precision::fp32);

    struct Call {
        bool backward = false;
        /// Forced engines: pairs of operator type and engine.
        std::vector<std::pair<std::string, std::string>> engines = {};
        /// Makes the operands' tensors; `number` counts inputs, parameters, and output gradients.
        std::function<Tensor(const HostArray& array, unsigned number)> upload = {};
    };
    struct Outcome {
        std::vector<std::vector<std::byte>> results;  ///< for a comparison of two runs
        std::set<const Engine*> used;
        double error = 0;                      ///< the largest relative L2 distance from the oracle
        std::vector<std::string> faults = {};  ///< sentences without a full stop
    };
    /// Calls the operator and compares all results with the oracle's: outputs and parameters, or
    /// gradients.
    Outcome run(const Call& call);

    /// The notes of the latest call's plan.
    const std::vector<std::string>& notes() const { return plan_->notes; }
    /// Visits the problems of the latest call's plan that engines compute, or could have computed
    /// in place of a composite's nodes.
    void visit_problems(const std::function<void(const Problem&)>& visit) const;
    /// The engines that apply to some of these, and did not run: name and operator type. None if
    /// the call has thrown an error.
    std::map<std::string, std::string> other_engines() const;

    const Case& one() const { return one_; }

  private:
    void compare_outputs(const std::vector<Tensor>& found, const std::vector<Tensor>& params,
                         Outcome& outcome) const;
    void compare_gradients(const std::vector<Tensor>& found, Outcome& outcome) const;
    /// Compares one result: see Expected::least_norm().
    void compare(const std::string& what, const Tensor& found, const HostArray& wanted,
                 Outcome& outcome, double least = 1e-30) const;

    const Context device_;
    const Case& one_;
    const Precision precision_;
    CaseData data_;
    Expected expected_;
    const Plan* plan_ = nullptr;     ///< of the latest call
    std::vector<Problem> expanded_;  ///< Plan::expanded of the latest call that had some
};

}  // namespace dlprim
