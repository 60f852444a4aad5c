// SPDX-License-Identifier: MIT
// estimate_placement.
#include "api/placement/estimate.hpp"

#include "api/net_impl.hpp"
#include "api/placement/operator_times.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"
#include "plan/plan.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

namespace dlprim {

namespace {

std::uint64_t bytes_of(const TensorSpec& spec) {
    return static_cast<std::uint64_t>(spec.shape.numel()) * size_of(spec.dtype);
}

/// How often a trained parameter is kept: itself, its gradient and what the solver has of it.
std::uint64_t copies(const NetOptions& options, const PlacementOptions& placement) {
    if (options.mode == Mode::inference || !options.backward) return 1;
    if (!placement.solver) return 2;
    const SolverOptions& solver = *placement.solver;
    const bool adam = solver.kind == SolverOptions::Kind::adam;
    return 2 +
           (adam                  ? 2
            : solver.momentum > 0 ? 1
                                  : 0) +
           (solver.average > 0 ? 1 : 0) + (solver.accumulate > 1 ? 1 : 0);
}

class Estimator {
  public:
    Estimator(const std::vector<NamedDevice>& devices, const NetDescription& description,
              const Graph& whole, const NetOptions& options, const PlacementOptions& placement)
        : devices_(devices),
          description_(description),
          whole_(whole),
          options_(options),
          placement_(placement) {}

    PlacementEstimate run() {
        find_devices();
        join_operators();
        find_values();
        find_memory();
        for (std::size_t d = 0; d < result_.devices.size(); ++d) try_device(d);
        find_link();
        return std::move(result_);
    }

  private:
    /// What one operator of the problem needs, other than on a certain device.
    struct Needs {
        double params = 0, made = 0;  ///< bytes
        std::uint64_t largest = 0;    ///< of one tensor
        int device = -1;              ///< that it must have, as one of the problem's
    };

    static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

    void find_devices() {
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            std::size_t first = 0;
            while (!(devices_[first].context == devices_[i].context)) ++first;
            if (first == i) {
                own_.push_back(result_.devices.size());
                result_.devices.push_back(i);
                result_.problem.devices.push_back(devices_[i].name);
                result_.problem.limits.push_back(memory_limit_of(devices_, i, placement_));
            } else {
                own_.push_back(own_[first]);
            }
        }
        for (const NetDescription::Op& op : description_.operators)
            for (std::size_t i = 0; i < devices_.size(); ++i)
                if (!op.device.empty() && devices_[i].name == op.device) result_.given[op.name] = i;
    }

    void find_link() {
        result_.problem.link_seconds = placement_.link_seconds;
        result_.problem.link_bytes_per_second = placement_.link_gbytes_per_s * 1e9;
        if (!placement_.measure) return;
        std::vector<Context> contexts;
        for (const std::size_t device : result_.devices)
            contexts.push_back(devices_[device].context);
        if (const std::optional<LinkTimes> link = measured_link(contexts)) {
            result_.problem.link_seconds = link->seconds;
            result_.problem.link_bytes_per_second = link->bytes_per_second;
        }
    }

    /// Makes one operator of those from the first to the last one that has a parameter.
    void join_operators() {
        const std::size_t count = whole_.nodes.size();
        std::map<ValueId, std::size_t> first_user;
        std::vector<std::size_t> begin(count);  // of the first operator that an operator stays with
        for (std::size_t i = 0; i < count; ++i) {
            begin[i] = i;
            for (const ValueId id : whole_.nodes[i].inputs)
                if (whole_.value(id).role == Role::parameter)
                    begin[i] = std::min(begin[i], first_user.emplace(id, i).first->second);
        }
        for (std::size_t i = count; i-- > 1;)  // what lies between goes with them
            begin[i - 1] = std::min(begin[i - 1], begin[i] < i ? begin[i] : i - 1);
        for (std::size_t i = 0; i < count; ++i) {
            if (begin[i] == i) {
                result_.operators.emplace_back();
                result_.problem.operators.push_back({whole_.nodes[i].name, {}, {}});
                needs_.emplace_back();
            }
            result_.operators.back().push_back(whole_.nodes[i].name);
            item_of_.push_back(needs_.size() - 1);
            const auto given = result_.given.find(whole_.nodes[i].name);
            if (given != result_.given.end())
                needs_.back().device = static_cast<int>(own_[given->second]);
        }
    }

    void find_values() {
        const bool trains = options_.mode != Mode::inference && options_.backward;
        std::vector<char> depends(whole_.values.size());
        std::map<ValueId, PlacementProblem::Value> values;
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i) {
            const Node& node = whole_.nodes[i];
            bool any = false;
            for (const ValueId id : node.inputs)
                any = any || depends[at(id)] ||
                      (whole_.value(id).role == Role::parameter && whole_.value(id).trainable);
            for (const ValueId id : node.outputs)
                depends[at(id)] = trains && any && is_float(whole_.spec(id).dtype);
            for (const ValueId id : node.inputs) {
                const Value& value = whole_.value(id);
                if (value.role == Role::parameter) continue;
                PlacementProblem::Value& moved = values[id];
                moved.bytes = static_cast<double>(bytes_of(value.spec));
                moved.maker = value.producer < 0 ? -1 : item(at(value.producer));
                if (moved.maker == item(i)) continue;
                if (moved.readers.empty() || moved.readers.back().op != item_of_[i])
                    moved.readers.push_back({item_of_[i], false});
                if (depends[at(id)]) moved.readers.back().passes = true;
            }
        }
        for (auto& [id, value] : values)
            if (!value.readers.empty()) result_.problem.values.push_back(std::move(value));
    }

    void find_memory() {
        const auto times = static_cast<double>(copies(options_, placement_));
        std::set<ValueId> seen;
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i) {
            Needs& needs = needs_[item_of_[i]];
            std::vector<ValueId> values = whole_.nodes[i].inputs;
            values.insert(values.end(), whole_.nodes[i].outputs.begin(),
                          whole_.nodes[i].outputs.end());
            for (const ValueId id : values) {
                const Value& value = whole_.value(id);
                const std::uint64_t bytes = bytes_of(value.spec);
                needs.largest = std::max(needs.largest, bytes);
                if (!seen.insert(id).second) continue;
                if (value.role == Role::parameter)
                    needs.params += static_cast<double>(bytes) * (value.trainable ? times : 1);
                else
                    needs.made += static_cast<double>(bytes);
            }
        }
        for (auto& op : result_.problem.operators) {
            op.seconds.assign(result_.devices.size(), PlacementProblem::never);
            op.bytes.assign(result_.devices.size(), 0);
        }
    }

    bool may_run(std::size_t item, std::size_t d) const {
        const Needs& needs = needs_[item];
        return needs.device < 0 || needs.device == static_cast<int>(d);
    }
    /// Whether what cannot be planned there, since it is too large, may be.
    bool is_small_enough(std::size_t item, std::size_t d) const {
        const std::uint64_t limit = result_.problem.limits[d];
        return needs_[item].largest <= limit && needs_[item].params <= static_cast<double>(limit);
    }

    /// Plans all operators on the device that may run there, and the others elsewhere.
    void try_device(std::size_t d) {
        std::vector<NamedDevice> devices;
        devices.reserve(2);
        devices.push_back(devices_[result_.devices[d]]);
        const bool is_host = devices[0].context.traits().host;
        if (!is_host)
            devices.push_back({devices[0].name == "host" ? "host_" : "host", Context("host")});
        NetDescription description = description_;
        std::map<std::string, std::size_t> items;
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i)
            items[whole_.nodes[i].name] = item_of_[i];
        for (NetDescription::Op& op : description.operators) {
            const std::size_t item = items.at(op.name);
            const bool here = is_host || (may_run(item, d) && is_small_enough(item, d));
            op.device = devices[here ? 0 : 1].name;
        }
        NetOptions options = options_;
        options.progress = {};
        PlacedNetImpl trial(std::move(devices), std::move(description), options);
        take_plans(trial, items, d);
    }

    void take_plans(PlacedNetImpl& trial, const std::map<std::string, std::size_t>& items,
                    std::size_t d) {
        PlacementProblem& problem = result_.problem;
        const Context& context = devices_[result_.devices[d]].context;
        double peak = 0, params = 0, made = 0;
        std::set<std::size_t> there;
        std::map<std::size_t, LaunchTimes> times;  // by part
        for (std::size_t part = 0; part < trial.cut().parts.size(); ++part) {
            const CutPart& cut = trial.cut().parts[part];
            const NetImpl& net = *trial.nets()[part];
            if (!(net.context() == context)) continue;
            for (const auto& op : cut.description.operators) there.insert(items.at(op.name));
            const std::unique_ptr<Plan> plan = net.plan_step(solver_of(cut));
            peak += static_cast<double>(plan->peak_bytes);
            if (cut.runs) times[part] = planned_times(*plan, context);
        }
        if (placement_.measure && peak <= static_cast<double>(problem.limits[d]))
            for (auto& [part, seconds] : times)
                seconds = measured_times(trial, static_cast<int>(part),
                                         solver_of(trial.cut().parts[part]));
        for (const auto& [part, seconds] : times)
            add_seconds(trial.cut().parts[part], seconds, items, d);
        for (const std::size_t item : there) {
            params += needs_[item].params;
            made += needs_[item].made;
        }
        for (std::size_t item = 0; item < needs_.size(); ++item) {
            const Needs& needs = needs_[item];
            // What was too large to be planned has its memory told to the user.
            const double rest = made > 0 && peak > params ? (peak - params) / made : 0;
            problem.operators[item].bytes[d] = static_cast<std::uint64_t>(
                needs.params * (peak < params ? peak / params : 1) + needs.made * rest);
            if (!is_small_enough(item, d))
                problem.operators[item].bytes[d] = std::max(
                    needs.largest, static_cast<std::uint64_t>(needs.params + needs.made * rest));
            double& seconds = problem.operators[item].seconds[d];
            if (!may_run(item, d))
                seconds = PlacementProblem::never;
            else if (seconds == PlacementProblem::never && there.count(item) > 0)
                seconds = 0;  // others compute it, too
        }
    }

    /// Steps belong to operators by their names. Others, such as updates of all parameters, are
    /// shared by the size of parameters.
    void add_seconds(const CutPart& part, const LaunchTimes& times,
                     const std::map<std::string, std::size_t>& items, std::size_t d) {
        double others = 0, params = 0;
        for (const auto& [node, seconds] : times) {
            const std::string name = operator_of(part, node);
            if (name.empty())
                others += seconds;
            else
                add(items.at(name), d, seconds);
        }
        std::set<std::size_t> all;
        for (const auto& op : part.description.operators) all.insert(items.at(op.name));
        for (const std::size_t item : all) params += needs_[item].params;
        for (const std::size_t item : all)
            add(item, d,
                others * (params > 0 ? needs_[item].params / params
                                     : 1 / static_cast<double>(all.size())));
    }

    const SolverOptions* solver_of(const CutPart& part) const {
        return placement_.solver && part.trains ? &*placement_.solver : nullptr;
    }
    void add(std::size_t item, std::size_t d, double seconds) {
        double& sum = result_.problem.operators[item].seconds[d];
        sum = (sum < PlacementProblem::never ? sum : 0) + seconds;
    }
    int item(std::size_t node) const { return static_cast<int>(item_of_[node]); }

    const std::vector<NamedDevice>& devices_;
    const NetDescription& description_;
    const Graph& whole_;
    const NetOptions& options_;
    const PlacementOptions& placement_;
    PlacementEstimate result_;
    std::vector<std::size_t> own_;      ///< of the problem's devices, by NamedDevice
    std::vector<std::size_t> item_of_;  ///< operator of the problem, by node
    std::vector<Needs> needs_;          ///< by operator of the problem
};

}  // namespace

std::uint64_t memory_limit_of(const std::vector<NamedDevice>& devices, std::size_t device,
                              const PlacementOptions& placement) {
    const Context& context = devices[device].context;
    std::uint64_t limit = context.traits().global_bytes;
    for (const NamedDevice& other : devices)
        if (const auto found = placement.memory_limits.find(other.name);
            found != placement.memory_limits.end() && other.context == context)
            limit = std::min(limit, found->second);
    return limit;
}

PlacementEstimate estimate_placement(const std::vector<NamedDevice>& devices,
                                     const NetDescription& description, const Graph& whole,
                                     const NetOptions& options, const PlacementOptions& placement) {
    return Estimator(devices, description, whole, options, placement).run();
}

}  // namespace dlprim
