// SPDX-License-Identifier: MIT
// recompute: the search for the nodes that run again.
#include "plan/recompute.hpp"

#include "base/text.hpp"
#include "graph/passes/run_again.hpp"
#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace dlprim {

namespace {

constexpr int shares = 8;             ///< how many shares of the nodes are tried
constexpr int budgets = 16;           ///< and with how many sizes of segments
constexpr int changes = 256;          ///< how many changes at the peak are tried
constexpr std::size_t removals = 96;  ///< how many groups of nodes are tried to be taken away

std::size_t at(int id) {
    return static_cast<std::size_t>(id);
}

/// Nodes that may run again, and what comes of it.
struct Trial {
    std::vector<char> again;  ///< by NodeId
    double seconds = 0;       ///< what they take
    std::uint64_t peak = 0;   ///< of the plan
    bool fits = false;
    /// Nodes whose results, kept or made again, are live in the step with the most live bytes, in
    /// the order in which it is worth to change that.
    std::vector<NodeId> at_peak;
};

class Recomputation {
  public:
    Recomputation(const Traits& device, const Graph& graph, const std::vector<char>& constant,
                  const std::vector<Choice>& choices, const PlanOptions& options)
        : device_(device),
          graph_(graph),
          choices_(choices),
          options_(options),
          runs_(graph, constant),
          marked_(graph.nodes.size(), 0) {
        options_.over_limit = true;
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            marked_[i] = graph.nodes[i].recompute && runs_.can(static_cast<NodeId>(i));
    }

    /// The nodes to run again: those that are marked, with others if they are needed to fit.
    Trial choose() {
        Trial best = attempt(marked_);
        if (best.fits || !options_.recompute_to_fit) return best;
        find_units();
        descend(best);
        if (best.fits && options_.first_fit) return best;
        for (int share = 1; share <= shares; ++share)
            for (int budget = 0; budget < budgets; ++budget) {
                consider(best, segments(share, budget));
                if (best.fits && options_.first_fit) return best;
            }
        if (!best.fits) descend(best);
        if (best.fits) remove_expensive(best);
        return best;
    }

    Graph apply(const std::vector<char>& again, std::vector<char>& constant,
                std::vector<Choice>& choices) const {
        std::vector<NodeId> origin;
        Graph graph = runs_.apply(again, origin);
        choices = choices_of(origin);
        constant = constant_values(graph);
        return graph;
    }

    /// The remark on the result. `kept`: the peak if nothing ran again.
    std::string note(const Trial& chosen) const {
        const Trial kept = attempt(std::vector<char>(graph_.nodes.size(), 0));
        double step = 0;
        for (const Choice& choice : choices_) step += choice.seconds;
        const std::vector<char> needed = runs_.needed(chosen.again);
        const auto count = std::count(needed.begin(), needed.end(), 1);
        const auto mib = [](std::uint64_t bytes) {
            return fixed(static_cast<double>(bytes) / (1 << 20), 1);
        };
        return cat(count, count == 1 ? " node recomputes" : " nodes recompute",
                   " tensors in backward: the plan needs ", mib(chosen.peak), " MiB in place of ",
                   mib(kept.peak), ", and a step is estimated to take ",
                   fixed(step > 0 ? 100 * chosen.seconds / step : 0, 1), " % longer");
    }

  private:
    double seconds(const std::vector<char>& again) const {
        const std::vector<char> needed = runs_.needed(again);
        double sum = 0;
        for (std::size_t i = 0; i < needed.size(); ++i)
            if (needed[i]) sum += choices_[i].seconds;
        return sum;
    }

    Trial attempt(std::vector<char> again) const {
        Trial trial;
        trial.seconds = seconds(again);
        std::vector<NodeId> origin;
        const Graph graph = runs_.apply(again, origin);
        const std::vector<char> constant = constant_values(graph);
        LaunchSchedule schedule =
            make_launch_schedule(device_, graph, constant, choices_of(origin), options_);
        const MemoryPlan memory = plan_memory(device_, graph, constant, schedule, options_);
        trial.peak = memory.setup_peak_bytes;
        trial.fits = memory.map.fits();
        trial.again = std::move(again);
        if (!trial.fits) trial.at_peak = live_at_peak(graph, origin, schedule, memory.map);
        return trial;
    }

    std::vector<Choice> choices_of(const std::vector<NodeId>& origin) const {
        std::vector<Choice> choices;
        for (const NodeId id : origin) choices.push_back(choices_[at(id)]);
        return choices;
    }

    /// Trial::at_peak: what is made again comes first, since keeping it saves time; then what is
    /// kept, by the bytes that each second of making it again would free.
    std::vector<NodeId> live_at_peak(const Graph& graph, const std::vector<NodeId>& origin,
                                     const LaunchSchedule& schedule, const MemoryMap& map) const {
        const auto most = std::max_element(
            map.steps.begin(), map.steps.end(),
            [](const auto& a, const auto& b) { return a.live_bytes < b.live_bytes; });
        const int step = static_cast<int>(most - map.steps.begin());
        std::map<NodeId, double> worth;
        for (std::size_t i = 0; i < schedule.stored.size(); ++i) {
            const Stored& root = schedule.stored[at(schedule.root(static_cast<int>(i)))];
            const ValueId value = schedule.stored[i].value;
            const NodeId maker = value == no_value ? -1 : graph.value(value).producer;
            if (maker < 0 || root.place.kind != Place::Kind::slab || root.first > step ||
                root.last < step)
                continue;
            const Node& node = graph.nodes[at(maker)];
            const NodeId id = origin[at(maker)];
            if (marked_[at(id)] || !runs_.can(id) || (node.part != Part::forward && !node.again))
                continue;
            const auto bytes = static_cast<double>(root.bytes);
            worth[id] =
                node.again ? 1e30 + bytes : bytes / std::max(choices_[at(id)].seconds, 1e-9);
        }
        std::vector<NodeId> nodes;
        for (const auto& [id, value] : worth) nodes.push_back(id);
        std::stable_sort(nodes.begin(), nodes.end(),
                         [&](NodeId a, NodeId b) { return worth.at(a) > worth.at(b); });
        return nodes;
    }

    /// Changes a node at the peak, kept or made again, as long as that makes the peak lower and the
    /// plan does not fit.
    void descend(Trial& best) const {
        for (int tried = 0; !best.fits;) {
            const std::vector<NodeId> nodes = best.at_peak;
            const std::uint64_t before = best.peak;
            for (std::size_t i = 0; i < nodes.size() && best.peak == before; ++i) {
                if (++tried > changes) return;
                std::vector<char> again = best.again;
                again[at(nodes[i])] = !again[at(nodes[i])];
                consider(best, std::move(again));
            }
            if (best.peak == before) return;
        }
    }

    /// Whatever fits is better than what does not; then less time, or a lower peak, is better.
    void consider(Trial& best, std::vector<char> again) const {
        if (again == best.again || (best.fits && seconds(again) >= best.seconds)) return;
        Trial trial = attempt(std::move(again));
        if (trial.fits || (!best.fits && trial.peak < best.peak)) best = std::move(trial);
    }

    double bytes_per_second(NodeId id) const {
        return static_cast<double>(runs_.bytes(id)) / std::max(choices_[at(id)].seconds, 1e-9);
    }

    /// The nodes that may run again and whose results, or what others make of them, backward reads.
    void find_units() {
        std::vector<char> all(graph_.nodes.size(), 1);
        const std::vector<char> needed = runs_.needed(all);
        for (std::size_t i = 0; i < needed.size(); ++i)
            if (needed[i] && !marked_[i]) units_.push_back(static_cast<NodeId>(i));
        std::stable_sort(units_.begin(), units_.end(), [&](NodeId a, NodeId b) {
            return bytes_per_second(a) > bytes_per_second(b);
        });
    }

    /// The marked nodes and a share of the others, except for those that end segments.
    std::vector<char> segments(int share, int budget) const {
        std::vector<char> again = marked_;
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < units_.size() * static_cast<std::size_t>(share) / shares; ++i) {
            again[at(units_[i])] = 1;
            all += runs_.bytes(units_[i]);
        }
        const auto most =
            static_cast<std::uint64_t>(static_cast<double>(all) * std::exp2(-budget / 2.0));
        // By node: the bytes that run again, from the nearest kept results to its own.
        std::vector<std::uint64_t> behind(graph_.nodes.size(), 0);
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            if (!again[i]) continue;
            std::uint64_t before = 0;
            for (const NodeId source : runs_.sources(static_cast<NodeId>(i)))
                before = std::max(before, behind[at(source)]);
            behind[i] = before + runs_.bytes(static_cast<NodeId>(i));
            if (before == 0 || behind[i] <= most || marked_[i]) continue;
            again[i] = 0;
            behind[i] = 0;
        }
        return again;
    }

    void remove_expensive(Trial& best) const {
        std::vector<NodeId> order;
        for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit)
            if (best.again[at(*unit)]) order.push_back(*unit);
        const std::size_t group = order.size() / removals + 1;
        for (std::size_t first = 0; first < order.size(); first += group) {
            std::vector<char> again = best.again;
            for (std::size_t i = first; i < std::min(first + group, order.size()); ++i)
                again[at(order[i])] = 0;
            consider(best, std::move(again));
        }
    }

    const Traits& device_;
    const Graph& graph_;
    const std::vector<Choice>& choices_;
    PlanOptions options_;
    RunAgain runs_;
    std::vector<char> marked_;   ///< by NodeId
    std::vector<NodeId> units_;  ///< those that the search may choose, the best first
};

}  // namespace

void recompute(const Traits& device, Graph& graph, std::vector<char>& constant,
               std::vector<Choice>& choices, const PlanOptions& options,
               std::vector<std::string>& notes) {
    const bool trains = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return node.part == Part::backward; });
    const bool marked = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return node.recompute; });
    if (!trains || (!marked && !options.recompute_to_fit)) return;
    Recomputation recomputation(device, graph, constant, choices, options);
    const Trial chosen = recomputation.choose();
    if (chosen.seconds == 0) return;
    notes.push_back(recomputation.note(chosen));
    std::vector<char> new_constant;
    std::vector<Choice> new_choices;
    Graph changed = recomputation.apply(chosen.again, new_constant, new_choices);
    graph = std::move(changed);
    constant = std::move(new_constant);
    choices = std::move(new_choices);
}

}  // namespace dlprim
