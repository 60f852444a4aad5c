// SPDX-License-Identifier: MIT
// recompute_pointwise: computes cheap values where they are read instead of passing them through
// memory.
//
// There are two rules. Both are decided by estimated times of memory, arithmetic and launches.
//
//   dissolve   a node whose readers are all Pointwise nodes is merged into each of them
//   swap       a reader recomputes an input, which others still need, from tensors that it reads
//   anyway
//
// Programs of processors take a tenth of a second to compile. So in training a node that is unlike
// all others is not dissolved into readers that are like others, unless that saves much time: each
// of these readers would need a program that nothing else uses.
//
// The rules work together. The gradient of a ReLU that follows a BatchNorm dissolves into the two
// passes of the BatchNorm's gradient. Those then read the ReLU's result, and swap it for x.
#include "base/text.hpp"
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/job.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "graph/passes/pointwise_nodes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace dlprim {

namespace {

using pointwise::Instruction;
using pointwise::Op;

/// The cost of an instruction, or 0 if it must not be computed twice (Function::operations).
int operations(Op op) {
    return op < Op::add ? 0 : pointwise::function_of(op).operations;
}

bool is_leaf(Op op) {
    return op == Op::constant || op == Op::input || op == Op::scalar || op == Op::size;
}

/// Counts nodes by the text of their programs.
class ProgramCounts {
  public:
    void add(const std::string& text) { ++counts_[text]; }
    int of(const std::string& text) const {
        const auto found = counts_.find(text);
        return found == counts_.end() ? 0 : found->second;
    }
    /// How many more distinct texts there are once nodes of the texts `gone` have those of `come`.
    int more(const std::vector<std::string>& gone, const std::vector<std::string>& come) const {
        std::map<std::string, int> after;
        for (const auto* texts : {&gone, &come})
            for (const std::string& text : *texts) after[text] = of(text);
        for (const std::string& text : gone) --after[text];
        for (const std::string& text : come) ++after[text];
        int more = 0;
        for (const auto& [text, count] : after) more += (count > 0) - (of(text) > 0);
        return more;
    }
    void replace(const std::vector<std::string>& gone, const std::vector<std::string>& come) {
        for (const std::string& text : gone) --counts_[text];
        for (const std::string& text : come) ++counts_[text];
    }

  private:
    std::map<std::string, int> counts_;
};

class Recomputer {
  public:
    Recomputer(Graph& graph, const Traits& device)
        : graph_(graph),
          device_(device),
          nodes_(graph),
          counts_programs_(device.wide_vectors && !device.host && !graph.gradients.empty()) {}

    bool run() {
        bool any = false;
        if (counts_programs_) count_programs();
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            any = dissolve(static_cast<NodeId>(i)) || any;
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            any = swap(static_cast<NodeId>(i)) || any;
        return any;
    }

  private:
    struct Reader {
        NodeId id;
        PointwiseDraft draft;
    };

    const Node& node(NodeId id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }

    /// For each instruction, whether it is computed once per element.
    std::vector<bool> per_element(const pointwise::Tape& tape, const PointwiseDraft& draft,
                                  const Shape& whole) const {
        std::vector<bool> result;
        for (const Instruction& in : tape.code) {
            bool big = in.op == Op::index || pointwise::is_random(in.op);
            if (in.op == Op::input)
                big = nodes_.is_big(draft.inputs[static_cast<std::size_t>(in.number)], whole);
            for (int arg : {in.a, in.b, in.c})
                big = big || (arg >= 0 && result[static_cast<std::size_t>(arg)]);
            result.push_back(big);
        }
        return result;
    }

    /// Whether an output is cheap to recompute.
    bool is_cheap(NodeId id, ValueId value) const {
        const Node& made = node(id);
        const auto k = static_cast<std::size_t>(
            std::find(made.outputs.begin(), made.outputs.end(), value) - made.outputs.begin());
        const PointwiseDraft& draft = nodes_.draft_of(id);
        const pointwise::Output& output = draft.program.outputs[k];
        if (output.kind != pointwise::Output::Kind::elementwise) return false;
        const pointwise::Tape tape = pointwise::compile(std::span(&output.value, 1));
        return std::all_of(tape.code.begin(), tape.code.end(), [](const Instruction& in) {
            return is_leaf(in.op) || operations(in.op) > 0;
        });
    }

    /// What the program of a draft is made from, but for axes, which seldom show in its text.
    std::string text_of(NodeId id, const PointwiseDraft& draft) const {
        const Shape whole = nodes_.shape_of(node(id));
        std::vector<double> scalars;
        std::string text;
        for (const pointwise::Output& output : draft.program.outputs)
            text += cat(static_cast<int>(output.kind), ' ',
                        pointwise::print(pointwise::lift_scalars(output.value, scalars)), ';');
        for (const ValueId input : draft.inputs) text += nodes_.is_big(input, whole) ? 'b' : 's';
        return text;
    }

    /// What a node is dissolved into: its text and its readers'.
    std::string kind_of(NodeId id) const {
        std::string kind = text_of(id, nodes_.draft_of(id));
        for (const NodeId reader : nodes_.readers(node(id).outputs[0]))
            if (reader != PointwiseNodes::outside && nodes_.is_free(reader))
                kind += cat('\n', text_of(reader, nodes_.draft_of(reader)));
        return kind;
    }

    void count_programs() {
        kinds_.resize(graph_.nodes.size());
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const auto id = static_cast<NodeId>(i);
            if (!nodes_.is_free(id)) continue;
            programs_.add(text_of(id, nodes_.draft_of(id)));
            kinds_[i] = kind_of(id);
            of_kind_.add(kinds_[i]);
            all_seconds_ += seconds(id, nodes_.draft_of(id));
        }
    }

    /// Whether dissolving a node, which saves some seconds, is not worth the programs.
    bool needs_programs(NodeId id, double saved, const std::vector<std::string>& gone,
                        const std::vector<std::string>& come) const {
        return counts_programs_ && saved < least_share * all_seconds_ &&
               of_kind_.of(kinds_[static_cast<std::size_t>(id)]) == 1 &&
               programs_.more(gone, come) > 0;
    }

    /// Estimated seconds of node `id` with this draft.
    double seconds(NodeId id, const PointwiseDraft& draft) const {
        const Shape whole = nodes_.shape_of(node(id));
        // Like the jobs that are made later: one pass for each set of axes, and elementwise outputs
        // join the last pass.
        std::map<std::vector<int>, std::vector<pointwise::ExprPtr>> passes;
        std::vector<pointwise::ExprPtr> elementwise;
        for (const pointwise::Output& output : draft.program.outputs) {
            if (output.kind == pointwise::Output::Kind::elementwise)
                elementwise.push_back(output.value);
            else
                passes[pointwise::normal_axes(output, whole.rank())].push_back(output.value);
        }
        const double launches = passes.empty() ? 1.0 : 2.0 * static_cast<double>(passes.size());
        if (passes.empty()) passes[{}];
        auto& last = std::prev(passes.end())->second;
        last.insert(last.end(), elementwise.begin(), elementwise.end());
        double bytes = 0, work = 0;
        for (ValueId output : node(id).outputs) bytes += nodes_.bytes_of(output);
        for (const auto& pass : passes) {
            const pointwise::Tape tape = pointwise::compile(pass.second);
            const std::vector<bool> often = per_element(tape, draft, whole);
            for (std::size_t i = 0; i < tape.code.size(); ++i) {
                const Instruction& in = tape.code[i];
                if (in.op == Op::input)
                    bytes += nodes_.bytes_of(draft.inputs[static_cast<std::size_t>(in.number)]);
                else if (often[i] && !is_leaf(in.op))
                    work += std::max(1, operations(in.op)) * static_cast<double>(whole.numel());
            }
        }
        // Peak rates count a multiply-add as two operations. The host interprets programs: an
        // operation takes it 2 ns, which is about a hundredth of its peak rate (mobilenet_v2, one
        // core).
        const double share = device_.host ? 1.0 / 128 : 1.0 / 2;
        return bytes / (0.8e9 * std::max(1.0, device_.gbytes_per_s)) +
               work / (share * 1e9 * std::max(1.0, device_.gflops)) +
               launches * 1e-6 * device_.launch_us;
    }

    /// Replaces every input of the reader by its producer's expression where that is faster.
    void swap_inputs(Reader& reader) const {
        const Shape whole = nodes_.shape_of(node(reader.id));
        double best = seconds(reader.id, reader.draft);
        for (bool again = true; again;) {
            again = false;
            const std::vector<ValueId> inputs = reader.draft.inputs;
            for (ValueId value : inputs) {
                const NodeId made_by = graph_.value(value).producer;
                if (made_by < 0 || !nodes_.is_big(value, whole) || !nodes_.is_free(made_by))
                    continue;
                const auto& read = node(made_by).inputs;
                const bool new_ones = std::any_of(read.begin(), read.end(), [&](ValueId id) {
                    return nodes_.is_big(id, whole) &&
                           std::find(inputs.begin(), inputs.end(), id) == inputs.end();
                });
                if (new_ones || !is_cheap(made_by, value)) continue;
                auto draft = nodes_.taken_in(reader.id, reader.draft, value);
                if (!draft) continue;
                const double time = seconds(reader.id, *draft);
                if (time >= best) continue;
                best = time;
                reader.draft = std::move(*draft);
                again = true;
                break;
            }
        }
    }

    bool swap(NodeId id) {
        if (!nodes_.is_free(id)) return false;
        Reader reader{id, nodes_.draft_of(id)};
        const std::vector<ValueId> before = reader.draft.inputs;
        swap_inputs(reader);
        if (reader.draft.inputs == before) return false;
        nodes_.change(id, std::move(reader.draft));
        return true;
    }

    bool dissolve(NodeId id) {
        if (!nodes_.is_free(id) || node(id).outputs.size() != 1) return false;
        const ValueId value = node(id).outputs[0];
        const std::vector<NodeId> readers = nodes_.readers(value);
        if (readers.empty() || readers.back() == PointwiseNodes::outside) return false;
        if (!std::all_of(readers.begin(), readers.end(),
                         [&](NodeId reader) { return nodes_.is_free(reader); }))
            return false;
        if (!is_cheap(id, value)) return false;
        double before = seconds(id, nodes_.draft_of(id)), after = 0;
        std::vector<Reader> changed;
        std::vector<std::string> gone, come;  // texts, where they are counted
        if (counts_programs_) gone.push_back(text_of(id, nodes_.draft_of(id)));
        std::map<ValueId, NodeId> wanted;
        for (NodeId reader : readers) {
            const PointwiseDraft& old = nodes_.draft_of(reader);
            auto draft = nodes_.taken_in(reader, old, value);
            if (!draft) return false;
            changed.push_back({reader, std::move(*draft)});
            swap_inputs(changed.back());
            before += seconds(reader, old);
            after += seconds(reader, changed.back().draft);
            if (counts_programs_) {
                gone.push_back(text_of(reader, old));
                come.push_back(text_of(reader, changed.back().draft));
            }
            // Readers are visited in order, so the entry that remains is the last reader of an
            // input.
            for (ValueId input : changed.back().draft.inputs) wanted[input] = reader;
        }
        if (after >= before || nodes_.keeps_more(id, wanted)) return false;
        if (needs_programs(id, before - after, gone, come)) return false;
        programs_.replace(gone, come);
        for (Reader& reader : changed) nodes_.change(reader.id, std::move(reader.draft), id);
        nodes_.remove(id);
        return true;
    }

    /// The share of all Pointwise nodes' time that a program must save if one node alone uses it.
    static constexpr double least_share = 0.01;

    Graph& graph_;
    const Traits& device_;
    PointwiseNodes nodes_;
    bool counts_programs_;
    ProgramCounts programs_, of_kind_;
    std::vector<std::string> kinds_;  ///< by NodeId, as they were when the pass began
    double all_seconds_ = 0;
};

}  // namespace

bool recompute_pointwise(Graph& graph, const Traits& device) {
    const bool changed = Recomputer(graph, device).run();
    graph.remove_dead();
    return changed;
}

}  // namespace dlprim
