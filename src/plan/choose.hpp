// SPDX-License-Identifier: MIT
// Choice of an engine and of layouts for every node, by the cost of the whole graph.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "plan/plan_options.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dlprim {

/// Whether nothing tells the problems apart, as for texts of Problem::key(), which take longer.
struct SameProblem {
    bool operator()(const Problem& a, const Problem& b) const;
};

struct ProblemHash {
    std::size_t operator()(const Problem& problem) const noexcept;
};

/// What planning finds out about problems. The layers of a network pose few problems many times,
/// and each is looked into once.
template <typename Value>
using ProblemMap = std::unordered_map<Problem, Value, ProblemHash, SameProblem>;

/// The engine chosen for a node. Nodes of view operators have none, and no problem unless
/// `is_view`.
struct Choice {
    const Engine* engine = nullptr;
    Tuning tuning;
    Problem problem;     ///< with its layouts set
    double seconds = 0;  ///< measured or estimated
    /// Whether the node launches nothing: its operands are one memory in the problem's layouts
    /// (plan/strided_views.hpp).
    bool is_view = false;
};

/// The problem that a node is on a device, with all layouts plain. `constant` is indexed by
/// ValueId. The problem has the node's precision if an applicable engine supports it. Otherwise
/// fp16 and bf16 become tf32 if an engine supports that, and else fp32.
Problem problem_of(const Traits& device, const Graph& graph, const Node& node,
                   const std::vector<char>& constant);

/// An engine and a tuning from a database row, checked to be available for the problem.
struct KnownTuning {
    const Engine* engine = nullptr;
    Tuning tuning;
    LayoutChoice layouts;
    double seconds = 0;
    bool computed = false;  ///< as in TuningRow
};
/// The known tunings of a problem (without layouts), the fastest first. Rows come from files and
/// may contain anything: for each row that no engine supports, `passed_over` is called with the
/// reason.
std::vector<KnownTuning> known_tunings(
    ContextImpl& context, const Problem& problem,
    const std::function<void(const std::string&)>& passed_over = nullptr);

/// Which values change only when parameters are written: parameters that no assignment targets,
/// literals, and everything that depends on these alone.
std::vector<char> constant_values(const Graph& graph);

/// What fuse_epilogues asks about nodes of one graph.
class FusedNodes {
  public:
    explicit FusedNodes(ContextImpl& context) : context_(context) {}
    /// Whether some engine of the device supports the node, and is not slower than the node without
    /// its last epilogue stage plus a launch for that stage.
    bool pays(const Graph& graph, const Node& node);

  private:
    /// The seconds of the fastest engine for both problems; infinity if none is usable.
    std::pair<double, double> fastest(const Node& node, const Problem& fused,
                                      const Problem& alone) const;

    ContextImpl& context_;
    /// By problem: the precision that was asked for, and whether it pays.
    ProblemMap<std::map<Precision, bool>> known_;
};

/// The estimated time of the node's fastest engine, in its best layout and without conversions;
/// infinity if no engine applies. Used by lower_precision.
double least_seconds(ContextImpl& context, const Graph& graph, const Node& node,
                     const std::vector<char>& constant);

/// Whether activations of fp16 and bf16 are stored in 16 bits. They are on GPUs. On CPUs the fast
/// engines use blocked layouts and load float vectors directly from memory.
bool stores_narrow(const Traits& device);

/// Returns one choice per node. Throws Error if no engine applies, naming the node and the reason
/// of every engine, and if a forced engine does not apply. Remarks are added to `notes`.
std::vector<Choice> choose_engines(ContextImpl& context, const Graph& graph,
                                   const std::vector<char>& constant, const PlanOptions& options,
                                   std::vector<std::string>& notes);

/// Seconds that it takes to convert a value from one layout to another.
double conversion_seconds(const Traits& device, const Operand& operand, const Layout& from,
                          const Layout& to);

}  // namespace dlprim
