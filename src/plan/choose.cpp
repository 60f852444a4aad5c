// SPDX-License-Identifier: MIT
// Choice of engines and layouts: collects candidates per node, then does coordinate descent over
// the graph. Nodes are visited in turn. Each takes the candidate with the lowest sum of its
// estimate and of the conversions on its edges, given the layouts of its neighbours. This is
// repeated until nothing changes.
#include "plan/choose.hpp"

#include "base/text.hpp"
#include "engine/copy_engines.hpp"
#include "engine/database.hpp"
#include "engine/disabled.hpp"
#include "engine/laid_out.hpp"
#include "engine/storage.hpp"
#include "graph/operator.hpp"
#include "plan/engine_by_host.hpp"
#include "plan/engine_failed.hpp"
#include "plan/strided_views.hpp"
#include "plan/trust/trust.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace dlprim {

namespace {

using Candidate = KnownTuning;

Verdict applies(ContextImpl& context, const Engine& engine, const Problem& problem) {
    const bool on_host = context.is_host();
    if (engine.op() != problem.op)
        return Verdict::no(cat("it computes ", engine.op(), ", not ", problem.op));
    if (engine.on_host() != on_host)
        return Verdict::no(engine.on_host() ? "it runs on the host device only"
                                            : "it runs on OpenCL devices only");
    return usable(context, engine, problem);
}

/// The layouts of this name, or nullopt if the engine has none for the problem.
std::optional<LayoutChoice> find_layouts(const Engine& engine, const Traits& device,
                                         const Problem& problem, const std::string& name) {
    for (LayoutChoice& choice : engine.layouts(device, problem))
        if (choice.name() == name) return std::move(choice);
    return std::nullopt;
}

/// Looks up the engine, layouts and tuning of a row. Returns no, with the reason, if the row cannot
/// be used.
Verdict know(ContextImpl& context, const Problem& problem, const TuningRow& row,
             KnownTuning& known) {
    known.engine = EngineRegistry::instance().find(row.engine);
    if (known.engine == nullptr) return Verdict::no("there is no such engine");
    if (Verdict verdict = applies(context, *known.engine, problem); !verdict) return verdict;
    auto layouts = find_layouts(*known.engine, context.traits(), problem, row.layout);
    if (!layouts) return Verdict::no(cat("it has no layout '", row.layout, "' for the problem"));
    known.layouts = std::move(*layouts);
    known.tuning = row.tuning;
    known.seconds = row.seconds;
    known.computed = row.computed;
    return offers(*known.engine, context.traits(), with_layouts(problem, known.layouts),
                  row.tuning);
}

bool any_strided(const Problem& problem) {
    const auto strided = [](const Operand& operand) { return operand.layout.is_strided(); };
    return std::any_of(problem.inputs.begin(), problem.inputs.end(), strided) ||
           std::any_of(problem.outputs.begin(), problem.outputs.end(), strided);
}

/// The layouts with strided ones in place of plain ones, as far as the engine takes those of the
/// operands of `strided`: any, or what Engine::layouts() lists for that problem.
LayoutChoice strided_layouts(const Engine& engine, const Traits& device, const Problem& strided,
                             const LayoutChoice& layouts) {
    LayoutChoice lies = layouts;
    const auto change = [](std::vector<Layout>& to, const std::vector<Operand>& operands) {
        for (std::size_t k = 0; k < to.size(); ++k)
            if (to[k].is_plain() && operands[k].layout.is_strided()) to[k] = operands[k].layout;
    };
    change(lies.inputs, strided.inputs);
    change(lies.outputs, strided.outputs);
    if (engine.addresses_strides()) return lies;
    const auto is_of = [](const std::vector<Layout>& some, const std::vector<Layout>& plain,
                          const std::vector<Layout>& all) {
        for (std::size_t k = 0; k < some.size(); ++k)
            if (some[k] != plain[k] && some[k] != all[k]) return false;
        return true;
    };
    for (LayoutChoice& choice : engine.layouts(device, strided))
        if (is_of(choice.inputs, layouts.inputs, lies.inputs) &&
            is_of(choice.outputs, layouts.outputs, lies.outputs))
            return std::move(choice);
    return layouts;
}

std::string where(const Node& node) {
    return cat("[", node.type(), " '", node.name, "'] ");
}

/// The reasons why no engine runs a node, for a message of one line. If engines failed, it lists
/// the failures, the last engine first, which is the reference and should work everywhere.
/// Otherwise it gives the reference's reason. Both end with the number of other engines.
class Refusals {
  public:
    void add(const Engine& engine, const std::string& reason, bool failed) {
        (failed ? failed_ : others_).push_back(cat("; ", engine.name(), ": ", reason));
    }
    bool failures() const { return !failed_.empty(); }
    std::string str() const {
        const auto& reasons = failures() ? failed_ : others_;
        const std::size_t shown = std::min<std::size_t>(reasons.size(), failures() ? 3 : 1);
        std::string text;
        for (std::size_t i = 0; i < shown; ++i) text += reasons[reasons.size() - 1 - i];
        if (failures() && reasons.size() > shown)
            text += cat("; ", reasons.size() - shown, " more failed");
        const std::size_t rest = failures() ? others_.size() : others_.size() - shown;
        if (rest > 0)
            text += cat("; ", rest, rest == 1 ? " other does" : " others do", " not apply");
        return text;
    }

  private:
    std::vector<std::string> failed_, others_;
};

class Chooser {
  public:
    Chooser(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
            const PlanOptions& options, std::vector<std::string>& notes)
        : device_(context.traits()),
          context_(context),
          graph_(graph),
          constant_(constant),
          options_(options),
          notes_(notes),
          layout_(graph.values.size()),
          readers_(graph.values.size()) {}

    std::vector<Choice> run() {
        check_forced_names();
        const std::size_t count = graph_.nodes.size();
        problems_.resize(count);
        candidates_.resize(count);
        chosen_.assign(count, 0);
        for (std::size_t i = 0; i < count; ++i) {
            const Node& node = graph_.nodes[i];
            for (std::size_t k = 0; k < node.inputs.size(); ++k)
                readers_[index(node.inputs[k])].emplace_back(i, k);
            if (!node.op->is_view()) find_candidates(i);
        }
        find_wanted_strides();
        if (options_.fuse) find_views();
        for (std::size_t i = 0; i < count; ++i) address_strides(i);
        tell_passed_over();
        for (const auto& [value, layout] : options_.input_layouts) layout_[index(value)] = layout;
        for (const auto& [value, layout] : views_.layouts) layout_[index(value)] = layout;
        std::map<ValueId, int>& result_readers =
            options_.free_outputs ? free_readers_ : plain_readers_;
        for (const auto& [value, name] : graph_.outputs)
            ++(options_.output_layouts.count(name) > 0 ? plain_readers_ : result_readers)[value];
        for (const auto& gradient : graph_.gradients) ++result_readers[gradient.second];
        for (const auto& assignment : graph_.assignments) ++plain_readers_[assignment.source];
        for (std::size_t i = 0; i < count; ++i) settle(i);
        bool changed = true;
        for (int sweep = 0; changed && sweep < 8; ++sweep) {
            changed = false;
            for (std::size_t i = 0; i < count; ++i) changed = improve(i) || changed;
        }
        note_references();
        std::vector<Choice> choices(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (is_view(i)) {
                choices[i] = view_choice(i);
                continue;
            }
            if (candidates_[i].empty()) continue;
            Candidate& best = candidates_[i][chosen_[i]];
            choices[i] = {best.engine, std::move(best.tuning),
                          with_layouts(std::move(problems_[i]), best.layouts), best.seconds};
        }
        return choices;
    }

  private:
    static std::size_t index(int id) { return static_cast<std::size_t>(id); }

    void check_forced_names() {
        const auto& engines = EngineRegistry::instance();
        for (const auto& [what, engine] : options_.engines) {
            const std::string option = cat("engine ", what, "=", engine, ": ");
            require(engines.find(engine) != nullptr, option, "there is no engine '", engine, "'",
                    did_you_mean(engine, engines.names()));
            const bool is_type = OperatorRegistry::instance().find(what) != nullptr;
            if (graph_.forced.count(what)) {
                const bool left = std::any_of(
                    graph_.nodes.begin(), graph_.nodes.end(), [what = what](const Node& node) {
                        return node.engine_from == what && !node.op->is_view();
                    });
                require(left || is_type, option, "node '", what,
                        "' needs no engine in this plan: it computes nothing");
                if (!left)
                    notes_.push_back(cat(
                        option,
                        "in this plan no node of this type is left: other nodes do their work"));
                continue;
            }
            if (is_type) {
                notes_.push_back(cat(option, "the planned network has no node of this type"));
                continue;
            }
            std::vector<std::string> names = OperatorRegistry::instance().names(true);
            for (const Node& node : graph_.nodes) names.push_back(node.name);
            fail(ErrorKind::invalid_argument, option, "the planned network has no node '", what,
                 "'", did_you_mean(what, names));
        }
    }

    /// Adds a note if reference engines are expected to take more than a hundredth of the time of
    /// all nodes. It names the slowest of their nodes. Reference engines exist for coverage, not
    /// for speed. Nodes for which the user asked for a reference engine do not count. Neither do
    /// launch times or less than a tenth of a millisecond, since small nodes are as fast in other
    /// engines.
    void note_references() {
        constexpr double tolerated = 0.01, least_seconds = 1e-4;
        double total = 0, slow = 0, longest = 0;
        std::size_t count = 0, worst = 0;
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (candidates_[i].empty() || constant_[index(node.outputs[0])]) continue;
            const Candidate& chosen = candidates_[i][chosen_[i]];
            total += chosen.seconds;
            if (!is_reference(*chosen.engine) || chosen.engine->name() == node.engine) continue;
            // The only engine of an operator also counts as its reference, but need not be slow.
            if (EngineRegistry::instance().of(problems_[i].op, device_.host).size() == 1) continue;
            const double seconds = chosen.seconds - device_.launch_us * 1e-6;
            slow += std::max(seconds, 0.0);
            ++count;
            if (seconds <= longest) continue;
            longest = seconds;
            worst = i;
        }
        if (slow <= std::max(tolerated * total, least_seconds)) return;
        const std::string others =
            count == 1 ? std::string() : cat("and ", count - 1, " other nodes ");
        notes_.push_back(
            cat(where(graph_.nodes[worst]), others, count == 1 ? "is" : "are", " expected to take ",
                std::ceil(100 * slow / total), " % of the network's time in reference engines (",
                candidates_[worst][chosen_[worst]].engine->name(),
                "), which are slow: no other engine is faster for it", why_reference(worst)));
    }

    /// The reason of the last engine that does not apply, which is the most general one.
    std::string why_reference(std::size_t i) const {
        std::string why;
        for (const Engine* engine : EngineRegistry::instance().of(problems_[i].op, device_.host)) {
            Verdict verdict = usable(context_, *engine, problems_[i]);
            if (!verdict) why = cat("; ", engine->name(), ": ", verdict.reason);
        }
        return why;
    }

    /// The engine that the user forces on the node, or nullptr.
    static const Engine* forced(const Node& node) {
        if (node.engine.empty()) return nullptr;
        const auto& engines = EngineRegistry::instance();
        const Engine* engine = engines.find(node.engine);
        require(engine != nullptr, where(node), "there is no engine '", node.engine, "'",
                did_you_mean(node.engine, engines.names()));
        return engine;
    }

    void find_candidates(std::size_t i) {
        const Node& node = graph_.nodes[i];
        problems_[i] = problem_of(device_, graph_, node, constant_);
        const Problem& problem = problems_[i];
        if (const Engine* engine = forced(node)) {
            Verdict verdict = applies(context_, *engine, problem);
            if (verdict) {
                add_candidates(i, *engine);
                return;
            }
            const std::string why =
                cat(where(node), "engine ", engine->name(), " does not apply: ", verdict.reason);
            require(node.engine_by_type, why);
            notes_.push_back(why);
        } else if (const auto same = found_.find(problem); same != found_.end()) {
            candidates_[i] = candidates_[same->second];
            return;
        }
        const std::size_t notes = notes_.size(), passed_over = passed_over_;
        search_candidates(i);
        // Notes are about the node.
        if (notes == notes_.size() && passed_over == passed_over_) found_.try_emplace(problem, i);
    }

    void search_candidates(std::size_t i) {
        const Node& node = graph_.nodes[i];
        const Problem& problem = problems_[i];
        candidates_[i] = known_tunings(context_, problem, [&](const std::string& why) {
            if (passed_over_++ == 0) first_passed_over_ = where(node) + why;
        });
        if (!candidates_[i].empty()) return;
        Refusals refusals;
        bool distrusted = false;
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, device_.host)) {
            Verdict verdict = usable(context_, *engine, problem);
            if (verdict) {
                add_candidates(i, *engine);
                continue;
            }
            const bool failed = is_disabled(context_, *engine, problem);
            refusals.add(*engine, verdict.reason, failed);
            if (!failed) continue;
            distrusted = distrusted || is_distrusted(context_, *engine, problem);
            notes_.push_back(
                cat(where(node), "engine ", engine->name(), " is not used: ", verdict.reason));
        }
        if (candidates_[i].empty() && distrusted) add_host(i, refusals.str());
        if (candidates_[i].empty() && !refusals.failures()) check_size(node);
        if (!candidates_[i].empty()) return;
        const std::string why =
            cat(where(node), "no engine on this device can run it", refusals.str());
        if (refusals.failures()) throw Error(ErrorKind::build, why);
        throw NoEngine(why, node.name);
    }

    /// Lets the host compute a node whose engines the device's checks have found wrong. Says so
    /// once for each operator and its options.
    void add_host(std::size_t i, const std::string& why) {
        const Node& node = graph_.nodes[i];
        const Problem& problem = problems_[i];
        for (const Engine* engine : engines_by_host(problem))
            if (usable(context_, *engine, problem)) add_candidates(i, *engine);
        if (candidates_[i].empty()) return;
        const std::string note =
            cat(where(node), "is computed on the host, by copies there and back in every run, ",
                "because no engine of this device gives right results", why);
        notes_.push_back(note);
        const std::string key = cat("by host\n", problem.op, '\n', problem.attrs.str());
        if (disable(context_, key, note, true)) log(LogLevel::warning, note);
    }

    /// Engines do not check the device's memory, so a node that exceeds it alone is reported here.
    void check_size(const Node& node) const {
        std::vector<ValueId> values = node.inputs;
        values.insert(values.end(), node.outputs.begin(), node.outputs.end());
        for (const ValueId id : values) {
            const std::uint64_t bytes = storage_bytes(graph_.shape(id), graph_.spec(id).dtype, {});
            if (bytes > device_.global_bytes)
                fail(ErrorKind::out_of_memory, where(node), "'", graph_.value(id).name,
                     "' of shape ", graph_.shape(id).str(), " needs ", bytes >> 20,
                     " MiB, the device has ", device_.global_bytes >> 20, " MiB");
        }
    }

    /// Adds the engine's layouts as candidates, with their estimates.
    void add_candidates(std::size_t i, const Engine& engine) {
        for (LayoutChoice& choice : engine.layouts(device_, problems_[i])) {
            const Problem laid = with_layouts(problems_[i], choice);
            const Tuning tuning = engine.default_tuning(device_, laid);
            const double seconds = engine.estimate(device_, laid, tuning);
            candidates_[i].push_back({&engine, tuning, std::move(choice), seconds});
        }
    }

    /// Strided layouts of results that the caller wants.
    void find_wanted_strides() {
        for (const auto& [value, name] : graph_.outputs)
            if (const auto found = options_.output_layouts.find(name);
                found != options_.output_layouts.end() && found->second.is_strided())
                wanted_strides_[value] = found->second;
        for (const auto& [value, gradient] : graph_.gradients)
            if (const auto found = options_.gradient_layouts.find(value);
                found != options_.gradient_layouts.end() && found->second.is_strided())
                wanted_strides_[gradient] = found->second;
    }

    /// The problem of node i with the strided layouts in which its operands lie or are wanted.
    Problem strided_problem(std::size_t i, const ValueLayouts& lying) const {
        const Node& node = graph_.nodes[i];
        Problem strided = problems_[i];
        const auto lie = [](Operand& operand, const ValueLayouts& layouts, ValueId value) {
            const auto found = layouts.find(value);
            if (found != layouts.end() && found->second.is_strided())
                operand.layout = found->second;
        };
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            lie(strided.inputs[k], options_.input_layouts, node.inputs[k]);
            lie(strided.inputs[k], lying, node.inputs[k]);
        }
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
            lie(strided.outputs[k], wanted_strides_, node.outputs[k]);
            lie(strided.outputs[k], lying, node.outputs[k]);
        }
        return strided;
    }

    /// Lets candidates whose engine can do so read and write strided operands as they lie.
    void address_strides(std::size_t i) {
        if (candidates_[i].empty() || is_view(i)) return;
        const Problem strided = strided_problem(i, views_.layouts);
        if (!any_strided(strided)) return;
        for (Candidate& candidate : candidates_[i]) {
            LayoutChoice lies =
                strided_layouts(*candidate.engine, device_, strided, candidate.layouts);
            if (lies.inputs == candidate.layouts.inputs &&
                lies.outputs == candidate.layouts.outputs)
                continue;
            candidate.layouts = std::move(lies);
            candidate.seconds = candidate.engine->estimate(
                device_, with_layouts(problems_[i], candidate.layouts), candidate.tuning);
        }
        keep_takers(i);
    }

    /// Whether an engine of the node lists strided layouts, asked with heads in rows.
    bool lists_strides(std::size_t i) {
        if (candidates_[i].empty()) return false;
        const auto known = lists_.find(problems_[i]);
        if (known != lists_.end()) return known->second;
        Problem strided = problems_[i];
        for (auto* operands : {&strided.inputs, &strided.outputs})
            for (Operand& operand : *operands) {
                if (operand.shape.rank() < 3) continue;
                Ints strides = operand.shape.strides();
                strides.end()[-3] = operand.shape[-1];
                strides.end()[-2] = operand.shape[-1] * operand.shape[-3];
                operand.layout = Layout::strided(std::move(strides), true);
            }
        bool lists = false;
        for (const Candidate& candidate : candidates_[i])
            lists = lists || (!candidate.engine->addresses_strides() &&
                              any_strided(with_layouts(
                                  problems_[i], strided_layouts(*candidate.engine, device_, strided,
                                                                candidate.layouts))));
        return lists_[problems_[i]] = lists;
    }

    /// Whether a condition holds for a candidate's layouts of all operands that are the value.
    template <typename Holds>
    bool all_operands(std::size_t i, ValueId value, const LayoutChoice& layouts,
                      const Holds& holds) const {
        const Node& node = graph_.nodes[i];
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
            if (node.inputs[k] == value && !holds(layouts.inputs[k])) return false;
        for (std::size_t k = 0; k < node.outputs.size(); ++k)
            if (node.outputs[k] == value && !holds(layouts.outputs[k])) return false;
        return true;
    }

    /// Candidates in other layouts than plain ones are left out of account, since the value does
    /// not lie so.
    StrideQuestions::Takes takes(std::size_t i, ValueId value, const ValueLayouts& lying) const {
        using Takes = StrideQuestions::Takes;
        if (candidates_[i].empty()) return Takes::no;
        const Problem strided = strided_problem(i, lying);
        Takes result = Takes::no;
        for (const Candidate& candidate : candidates_[i]) {
            const LayoutChoice lies =
                strided_layouts(*candidate.engine, device_, strided, candidate.layouts);
            if (!all_operands(i, value, candidate.layouts, std::mem_fn(&Layout::is_plain)))
                continue;
            if (!all_operands(i, value, lies, std::mem_fn(&Layout::is_strided))) return Takes::no;
            if (!candidate.engine->addresses_strides())
                result = Takes::listed;
            else if (result == Takes::no)
                result = Takes::any_strides;
        }
        return result;
    }

    /// Drops candidates that do not take the values of views as they lie.
    void keep_takers(std::size_t i) {
        const Node& node = graph_.nodes[i];
        std::vector<ValueId> values = node.inputs;
        values.insert(values.end(), node.outputs.begin(), node.outputs.end());
        for (const ValueId value : values) {
            const auto found = views_.layouts.find(value);
            if (found == views_.layouts.end()) continue;
            std::erase_if(candidates_[i], [&](const Candidate& candidate) {
                return !all_operands(i, value, candidate.layouts, [&](const Layout& layout) {
                    return same_memory(graph_.shape(value), found->second, layout);
                });
            });
        }
    }

    void find_views() {
        StrideQuestions questions;
        questions.moving_engine = [&](std::size_t i) { return moving_engine(i); };
        questions.problem = [&](std::size_t i) -> const Problem& { return problems_[i]; };
        questions.lists = [&](std::size_t i) { return lists_strides(i); };
        questions.takes = [&](std::size_t i, ValueId value, const ValueLayouts& lying) {
            return takes(i, value, lying);
        };
        views_ = find_strided_views(graph_, constant_, options_.input_layouts, questions);
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (is_view(i) && !candidates_[i].empty())
                candidates_[i] = {{moving_engine(i), {}, view_layouts(i), 0, true}};
    }

    /// An engine that computes the node by copies alone; null if there is none or one is forced.
    const Engine* moving_engine(std::size_t i) const {
        if (!graph_.nodes[i].engine.empty()) return nullptr;
        for (const Candidate& candidate : candidates_[i])
            if (!moves_of(*candidate.engine, problems_[i]).empty()) return candidate.engine;
        return nullptr;
    }

    bool is_view(std::size_t i) const { return i < views_.nodes.size() && views_.nodes[i]; }

    LayoutChoice view_layouts(std::size_t i) const {
        const auto layout = [&](ValueId value) {
            const auto found = views_.layouts.find(value);
            return found == views_.layouts.end() ? Layout::plain() : found->second;
        };
        LayoutChoice layouts;
        for (const ValueId x : graph_.nodes[i].inputs) layouts.inputs.push_back(layout(x));
        for (const ValueId y : graph_.nodes[i].outputs) layouts.outputs.push_back(layout(y));
        return layouts;
    }

    Choice view_choice(std::size_t i) const {
        const Node& node = graph_.nodes[i];
        const bool moves = !candidates_[i].empty();
        const Problem problem = moves ? problems_[i] : problem_of(device_, graph_, node, constant_);
        return {moves ? candidates_[i][0].engine : nullptr,
                {},
                with_layouts(problem, view_layouts(i)),
                0,
                true};
    }

    void tell_passed_over() {
        for (const std::string& line : ignored_tunings()) notes_.push_back(line);
        if (passed_over_ == 0) return;
        std::string note = "a row of the tuning database is skipped: " + first_passed_over_;
        if (passed_over_ > 1) note += cat("; so are ", passed_over_ - 1, " more");
        notes_.push_back(std::move(note));
    }

    /// The cost of the edges of node i with a candidate, given the current layouts of its
    /// neighbours.
    double edge_seconds(std::size_t i, const Candidate& candidate) const {
        const Node& node = graph_.nodes[i];
        double seconds = 0;
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            const ValueId value = node.inputs[k];
            if (constant_[index(value)]) continue;
            seconds += conversion_seconds(device_, problems_[i].inputs[k], layout_[index(value)],
                                          candidate.layouts.inputs[k]);
        }
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
            const ValueId value = node.outputs[k];
            const Layout& made = candidate.layouts.outputs[k];
            std::vector<const Layout*> wanted;  // readers of one layout share a conversion
            const Layout plain;
            if (plain_readers_.count(value)) wanted.push_back(&plain);
            for (const auto& [reader, operand] : readers_[index(value)]) {
                const Layout* want = &plain;
                if (!candidates_[reader].empty())
                    want = &candidates_[reader][chosen_[reader]].layouts.inputs[operand];
                if (std::none_of(wanted.begin(), wanted.end(),
                                 [&](const Layout* w) { return *w == *want; }))
                    wanted.push_back(want);
            }
            for (const Layout* want : wanted)
                seconds += conversion_seconds(device_, problems_[i].outputs[k], made, *want);
            // The next reader is unknown. Assume that it needs this layout or the plain one with
            // equal probability. Integers in the layout of an image are positions of maxima, which
            // the gradient takes in any layout.
            if (free_readers_.count(value) && is_float(graph_.spec(value).dtype))
                seconds += 0.5 * conversion_seconds(device_, problems_[i].outputs[k], made, plain);
        }
        return seconds;
    }

    void settle(std::size_t i) {
        if (candidates_[i].empty()) return;
        const Node& node = graph_.nodes[i];
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < candidates_[i].size(); ++c) {
            // In the first sweep later nodes have no layouts yet, so only inputs count.
            double seconds = candidates_[i][c].seconds;
            for (std::size_t k = 0; k < node.inputs.size(); ++k) {
                if (constant_[index(node.inputs[k])]) continue;
                seconds += conversion_seconds(device_, problems_[i].inputs[k],
                                              layout_[index(node.inputs[k])],
                                              candidates_[i][c].layouts.inputs[k]);
            }
            if (seconds < best) {
                best = seconds;
                chosen_[i] = c;
            }
        }
        publish(i);
    }

    bool improve(std::size_t i) {
        if (candidates_[i].size() < 2) return false;
        const std::size_t before = chosen_[i];
        const auto total = [&](std::size_t c) {
            return candidates_[i][c].seconds + edge_seconds(i, candidates_[i][c]);
        };
        double best = total(before);
        for (std::size_t c = 0; c < candidates_[i].size(); ++c) {
            const double seconds = total(c);
            if (seconds < best * (1 - 1e-9)) {
                best = seconds;
                chosen_[i] = c;
            }
        }
        publish(i);
        return chosen_[i] != before;
    }

    void publish(std::size_t i) {
        const Node& node = graph_.nodes[i];
        for (std::size_t k = 0; k < node.outputs.size(); ++k)
            layout_[index(node.outputs[k])] = candidates_[i][chosen_[i]].layouts.outputs[k];
    }

    const Traits& device_;
    ContextImpl& context_;
    const Graph& graph_;
    const std::vector<char>& constant_;
    const PlanOptions& options_;
    std::vector<std::string>& notes_;
    std::vector<Layout> layout_;  ///< by ValueId
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>>
        readers_;  ///< by ValueId: node, operand
    std::map<ValueId, int> plain_readers_, free_readers_;
    ValueLayouts wanted_strides_;
    StridedViews views_;
    ProblemMap<bool> lists_;  ///< by problem: whether an engine lists strided layouts
    std::vector<Problem> problems_;
    std::vector<std::vector<Candidate>> candidates_;
    ProblemMap<std::size_t> found_;  ///< by problem: a node whose candidates are those of any
    std::vector<std::size_t> chosen_;
    std::size_t passed_over_ = 0;  ///< number of database rows that were skipped
    std::string first_passed_over_;
};

}  // namespace

std::vector<KnownTuning> known_tunings(ContextImpl& context, const Problem& problem,
                                       const std::function<void(const std::string&)>& passed_over) {
    std::vector<KnownTuning> all;
    lookup_tunings(context, problem, [&](const TuningRow& row) {
        KnownTuning known;
        Verdict verdict = know(context, problem, row, known);
        if (verdict)
            all.push_back(std::move(known));
        else if (passed_over)
            passed_over(cat(row.engine, ": ", verdict.reason));
        return verdict.ok;
    });
    return all;
}

std::vector<Choice> choose_engines(ContextImpl& context, const Graph& graph,
                                   const std::vector<char>& constant, const PlanOptions& options,
                                   std::vector<std::string>& notes) {
    return Chooser(context, graph, constant, options, notes).run();
}

}  // namespace dlprim
