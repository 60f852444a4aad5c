// SPDX-License-Identifier: MIT
// MathSurvey: which functions of OpenCL C a driver computes wrongly. Each is tried when the first
// program that calls it is built (math_functions.hpp has the numbers, kernels/probe/functions.cl
// the kernels). What is wrong is computed by our text instead (own_functions.hpp).
#pragma once

#include "runtime/cl.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/own_functions.hpp"
#include "runtime/program.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// Several threads may use it. The context must outlive it.
class MathSurvey {
  public:
    /// Builds a program as it is. The caller releases it.
    using Build = std::function<cl_program(const ProgramSource&)>;
    /// `tries`: whether it may run kernels. Otherwise it knows what the target's cache knows, and
    /// what is unknown counts as right.
    MathSurvey(const CompileTarget& target, cl_context context, cl_device_id device, Build build,
               bool tries);

    /// The program with our texts in front for what the driver computes wrongly. A program that
    /// calls no such function stays as it is.
    ProgramSource corrected(const ProgramSource& source);
    /// Whether corrected() would try nothing.
    bool knows(const ProgramSource& source);

    /// The results of a function for a trial's numbers: singly, then by vectors of 4, then on
    /// processors by vectors of 2, 8 and 16.
    /// `ours`: by our text. T is float or double. Throws Error where the driver fails.
    template <typename T>
    std::vector<T> results_of(const MathFunction& function, const MathTrial<T>& trial,
                              bool ours) const;

    /// Under which the binary cache keeps what is known.
    std::string key() const;

  private:
    /// A function, and whether its numbers are doubles.
    using Use = std::pair<const MathFunction*, bool>;

    struct Calls;
    Calls calls_of(const ProgramSource& source) const;
    bool is_unknown(const Use& use) const;
    void find_out(const std::vector<Use>& uses);
    std::vector<OwnFunction> own_of(const std::set<const MathFunction*>& functions,
                                    bool doubles) const;
    bool is_ours(const Use& use) const;
    cl_program trial_program(const std::vector<Use>& uses, bool ours) const;
    template <typename T>
    bool needs_ours(cl_program drivers, const Use& use) const;
    template <typename T>
    std::vector<T> results(cl_program program, const Use& use, const MathTrial<T>& trial) const;
    void load();
    void save();

    const CompileTarget& target_;
    cl_context context_;
    cl_device_id device_;
    Build build_;
    bool tries_, has_doubles_;
    std::optional<bool> forced_;    ///< what DLPRIM_FUNCTIONS says
    std::mutex mutex_;              ///< protects the member below
    std::map<Use, bool> verdicts_;  ///< whether our text takes its place
};

}  // namespace dlprim
