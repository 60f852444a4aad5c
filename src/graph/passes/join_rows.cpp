// SPDX-License-Identifier: MIT
// join_rows: Pointwise nodes that reduce rows, and those that go on with the results in the same
// rows, become one node, whose kernel keeps a row on the way (engine/pointwise/row_program.hpp).
//
//     x -> mean of rows -> deviation of rows -> (x - mean) / deviation      LayerNorm
//
// A group begins with a node that reduces the trailing dimensions of its shape, so that rows are
// what lies together in memory. It grows along values that its nodes make or read, through views,
// by nodes that work on the same rows, on their elements or on a value for each row.
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/job.hpp"
#include "engine/pointwise/row_program.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

using pointwise::Output;

constexpr std::size_t most_stages = 16;     ///< IntList's limit
constexpr std::size_t most_inputs = 12;     ///< each takes two kernel parameters
constexpr std::size_t most_reductions = 6;  ///< each takes local memory
/// Passes over a row that reduce it. Each computes again what the ones before it did.
constexpr int most_passes = 2;
/// Nodes between those of a group: values would be kept for longer if it reached further.
constexpr NodeId reach = 12;
/// On CPUs shorter rows of large tensors have kernels for their length (vector_shape.cpp), and may
/// be shorter than a vector.
constexpr std::int64_t short_row = 32, large_tensor = 1 << 16;

/// Which elements of a matrix of rows a tensor has.
enum class Extent { full, row, line, single };

struct Matrix {
    std::int64_t rows = 0, columns = 0;
    bool operator==(const Matrix&) const = default;
};

/// How a node works on rows.
struct RowNode {
    std::shared_ptr<const pointwise::Program> program;
    bool wide = false;  ///< on their elements; else on values for each row
    bool reduces = false;
    std::vector<Extent> inputs;
};

Shape matrix_shape(Extent extent, const Matrix& matrix) {
    switch (extent) {
        case Extent::full:
            return {matrix.rows, matrix.columns};
        case Extent::row:
            return {matrix.rows, 1};
        case Extent::line:
            return {1, matrix.columns};
        default:
            return {1, 1};
    }
}

bool is_supported(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Whether values differ by position, or are combined in a way of their own.
bool is_special(const pointwise::Program& program) {
    for (const Output& output : program.outputs) {
        if (output.kind == Output::Kind::custom) return true;
        for (const pointwise::Instruction& in :
             pointwise::compile(std::span(&output.value, 1)).code)
            if (in.op == pointwise::Op::index || in.op == pointwise::Op::size ||
                pointwise::is_random(in.op))
                return true;
    }
    return false;
}

/// Whether all outputs cost little enough to be computed in each pass over a row.
bool is_cheap(const pointwise::Program& program) {
    for (const Output& output : program.outputs)
        for (const pointwise::Instruction& in :
             pointwise::compile(std::span(&output.value, 1)).code)
            if (in.op >= pointwise::Op::add && pointwise::function_of(in.op).operations == 0)
                return false;
    return true;
}

class RowJoiner {
  public:
    RowJoiner(Graph& graph, const Traits& device,
              const std::function<bool(const Graph&, const Node&)>& runs)
        : graph_(graph), device_(device), runs_(runs), readers_(graph.values.size()) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            for (const ValueId input : graph_.nodes[i].inputs)
                readers_[at(input)].push_back(static_cast<NodeId>(i));
        for (const auto& output : graph_.outputs) seen_.insert(output.first);
        for (const auto& loss : graph_.losses) seen_.insert(loss.first);
        for (const auto& gradient : graph_.gradients) seen_.insert(gradient.second);
        for (const auto& assignment : graph_.assignments) seen_.insert(assignment.source);
        find_fixed();
    }

    /// Joins the first group that begins at node `from` or behind it. Returns where it began, or
    /// nothing if there is none.
    std::optional<NodeId> run(NodeId from) {
        for (NodeId id = from; at(id) < graph_.nodes.size(); ++id) {
            const std::optional<Matrix> matrix = rows_of(id);
            if (!matrix || !pays(*matrix)) continue;
            matrix_ = *matrix;
            group_.clear();
            std::optional<RowNode> first = on_rows(id);
            if (!first) continue;
            group_.emplace(id, std::move(*first));
            grow();
            if (group_.size() > 1 && !is_of_images() && join()) return group_.begin()->first;
        }
        return std::nullopt;
    }

  private:
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    const Node& node(NodeId id) const { return graph_.nodes[at(id)]; }

    /// What depends on parameters and literals alone is computed once, not in every run.
    void find_fixed() {
        fixed_.assign(graph_.values.size(), false);
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const Role role = graph_.values[i].role;
            fixed_[i] = role == Role::parameter || role == Role::constant;
        }
        for (const Node& each : graph_.nodes) {
            const bool all = std::all_of(each.inputs.begin(), each.inputs.end(),
                                         [&](ValueId id) { return fixed_[at(id)]; });
            for (const ValueId id : each.outputs) fixed_[at(id)] = all;
        }
    }

    /// The value that `id` shows through views.
    ValueId root(ValueId id) const {
        for (NodeId maker = graph_.value(id).producer;
             maker >= 0 && node(maker).op->is_view() && graph_.spec(id).shape.numel() > 0;
             maker = graph_.value(id).producer)
            id = node(maker).inputs[0];
        return id;
    }

    /// The nodes that read a value, also through views.
    void add_readers(ValueId id, std::set<NodeId>& all) const {
        for (const NodeId reader : readers_[at(id)]) {
            all.insert(reader);
            if (!node(reader).removed && node(reader).op->is_view())
                add_readers(node(reader).outputs[0], all);
        }
    }

    /// Whether values or their views are read outside of the graph.
    bool is_seen(ValueId id) const {
        if (seen_.contains(id)) return true;
        return std::any_of(readers_[at(id)].begin(), readers_[at(id)].end(), [&](NodeId reader) {
            return !node(reader).removed && node(reader).op->is_view() &&
                   is_seen(node(reader).outputs[0]);
        });
    }

    bool is_free(NodeId id) const {
        const Node& each = node(id);
        if (each.removed || each.op->type() != "Pointwise" || !each.epilogue.empty()) return false;
        // Updates have the same bits where devices have a part of the states each.
        if (each.part != Part::forward && each.part != Part::backward) return false;
        if (!each.engine.empty() || each.attrs.has(pointwise::arguments_attr)) return false;
        if (fixed_[at(each.outputs[0])]) return false;
        return std::all_of(each.inputs.begin(), each.inputs.end(),
                           [&](ValueId in) {
                               const DType dtype = graph_.spec(in).dtype;
                               return is_supported(dtype) || dtype == DType::boolean;
                           }) &&
               std::all_of(each.outputs.begin(), each.outputs.end(),
                           [&](ValueId out) { return is_supported(graph_.spec(out).dtype); });
    }

    Shape whole_of(const Node& each) const {
        std::vector<Shape> shapes;
        for (const ValueId id : each.inputs) shapes.push_back(graph_.shape(id));
        return pointwise::broadcast_shape(shapes, each.attrs.ints("shape"));
    }

    /// The rows that a node reduces, if it reduces the trailing dimensions of its shape.
    std::optional<Matrix> rows_of(NodeId id) const {
        if (!is_free(id)) return std::nullopt;
        const Shape whole = whole_of(node(id));
        if (whole.empty()) return std::nullopt;
        for (const Output& output : pointwise::parsed(node(id).attrs.text("code"))->outputs) {
            if (output.kind == Output::Kind::elementwise) continue;
            const std::vector<int> axes = pointwise::normal_axes(output, whole.rank());
            if (axes.empty()) return std::nullopt;
            const int first = axes.front();
            const Matrix matrix{whole.product(0, first), whole.product(first, whole.rank())};
            if (matrix.columns < 2) return std::nullopt;
            return matrix;
        }
        return std::nullopt;
    }

    /// Whether there are enough rows for the device, or so few elements that it does not matter.
    bool pays(const Matrix& matrix) const {
        const std::int64_t elements = matrix.rows * matrix.columns;
        if (device_.wide_vectors)
            return (matrix.columns >= short_row || elements < large_tensor) &&
                   (matrix.rows >= 2 * std::int64_t{device_.compute_units} || elements <= 8192);
        return matrix.rows >= device_.compute_units || matrix.columns <= 8192;
    }

    /// The first dimension of a row, where a shape consists of the group's rows.
    std::optional<int> row_begin(const Shape& whole) const {
        for (int d = 0; d <= whole.rank(); ++d)
            if (whole.product(0, d) == matrix_.rows &&
                whole.product(d, whole.rank()) == matrix_.columns)
                return d;
        return std::nullopt;
    }

    /// Which elements of rows that begin at dimension `first` of `whole` a tensor has.
    static std::optional<Extent> extent_of(const Shape& own, const Shape& whole, int first) {
        const int lead = whole.rank() - own.rank();
        const auto repeats = [&](int from, int to) -> std::optional<bool> {
            bool all = true, none = true;
            for (int d = from; d < to; ++d) {
                if (whole[d] == 1) continue;
                const bool is_one = d < lead || own[d - lead] == 1;
                all = all && is_one;
                none = none && !is_one;
            }
            if (!all && !none) return std::nullopt;
            return !none;
        };
        const auto rows = repeats(0, first), columns = repeats(first, whole.rank());
        if (!rows || !columns) return std::nullopt;
        return *rows ? (*columns ? Extent::single : Extent::line)
                     : (*columns ? Extent::row : Extent::full);
    }

    /// How a node works on the group's rows, if it does.
    std::optional<RowNode> on_rows(NodeId id) const {
        if (!is_free(id)) return std::nullopt;
        const Node& each = node(id);
        RowNode made{pointwise::parsed(each.attrs.text("code")), false, false, {}};
        if (is_special(*made.program)) return std::nullopt;
        const Shape whole = whole_of(each);
        std::optional<int> first = row_begin(whole);
        made.wide = first.has_value();
        if (!first && whole.numel() == matrix_.rows) first = whole.rank();
        if (!first) return std::nullopt;
        for (const Output& output : made.program->outputs) {
            if (output.kind == Output::Kind::elementwise) continue;
            made.reduces = true;
            if (!made.wide || !reduces_rows(output, whole, *first)) return std::nullopt;
        }
        for (const ValueId input : each.inputs) {
            const auto extent = extent_of(graph_.shape(input), whole, *first);
            if (!extent) return std::nullopt;
            // Values for each row have no columns that would tell whether they are repeated.
            const bool is_single = graph_.shape(input).numel() == 1;
            made.inputs.push_back(made.wide ? *extent : is_single ? Extent::single : Extent::row);
        }
        return made;
    }

    static bool reduces_rows(const Output& output, const Shape& whole, int first) {
        const std::vector<int> axes = pointwise::normal_axes(output, whole.rank());
        for (int d = 0; d < whole.rank(); ++d)
            if (whole[d] != 1 && std::binary_search(axes.begin(), axes.end(), d) != (d >= first))
                return false;
        return true;
    }

    void grow() {
        for (bool again = true; again;) {
            again = false;
            std::set<NodeId> around;
            for (const auto& [id, member] : group_) {
                for (const ValueId out : node(id).outputs) add_readers(out, around);
                for (const ValueId in : node(id).inputs)
                    around.insert(graph_.value(root(in)).producer);
            }
            for (const NodeId id : around)
                if (id >= 0 && !group_.contains(id)) again = try_add(id) || again;
        }
    }

    bool try_add(NodeId id) {
        const Node &each = node(id), &some = node(group_.begin()->first);
        if (each.part != some.part || each.recompute != some.recompute || each.again != some.again)
            return false;
        if (group_.size() >= most_stages || id + reach < group_.begin()->first ||
            id > group_.rbegin()->first + reach)
            return false;
        std::optional<RowNode> member = on_rows(id);
        if (!member) return false;
        // What the group reads of it would be computed in each pass.
        if (!member->reduces && makes_for_group(id) && !is_cheap(*member->program)) return false;
        group_.emplace(id, std::move(*member));
        if (is_convex() && is_small()) return true;
        group_.erase(id);
        return false;
    }

    bool makes_for_group(NodeId id) const {
        const std::vector<ValueId>& made = node(id).outputs;
        return std::any_of(made.begin(), made.end(),
                           [&](ValueId out) { return is_read_by_group(out); });
    }

    bool is_read_by_group(ValueId value) const {
        std::set<NodeId> readers;
        add_readers(value, readers);
        return std::any_of(readers.begin(), readers.end(),
                           [&](NodeId reader) { return group_.contains(reader); });
    }

    /// Whether no node outside of the group needs its results and makes something for it.
    bool is_convex() const {
        std::set<NodeId> after;
        for (NodeId id = group_.begin()->first; id <= group_.rbegin()->first; ++id) {
            const Node& each = node(id);
            if (each.removed || each.op->is_view()) continue;
            const bool mine = group_.contains(id);
            for (const ValueId in : each.inputs) {
                const NodeId maker = graph_.value(root(in)).producer;
                if (mine && after.contains(maker)) return false;
                if (!mine && (group_.contains(maker) || after.contains(maker))) after.insert(id);
            }
        }
        return true;
    }

    /// A tensor that the group reads.
    struct Read {
        ValueId value;
        Extent extent;
        bool operator==(const Read&) const = default;
    };

    /// In the order of their use, each once.
    std::vector<Read> reads() const {
        std::vector<Read> all;
        for (const auto& [id, member] : group_)
            for (std::size_t i = 0; i < member.inputs.size(); ++i) {
                const Read read{root(node(id).inputs[i]), member.inputs[i]};
                if (group_.contains(graph_.value(read.value).producer) ||
                    !uses(*member.program, static_cast<int>(i)))
                    continue;
                if (std::find(all.begin(), all.end(), read) == all.end()) all.push_back(read);
            }
        return all;
    }

    static bool uses(const pointwise::Program& program, int input) {
        return std::any_of(program.outputs.begin(), program.outputs.end(), [&](const Output& out) {
            return pointwise::uses_input(out.value, input);
        });
    }

    /// How many times a row is gone through for the group's reductions.
    int passes() const {
        std::map<ValueId, int> before;  // the passes that a value of the group needs
        int most = 0;
        for (const auto& [id, member] : group_) {
            int own = 0;
            for (const ValueId in : node(id).inputs)
                if (const auto made = before.find(root(in)); made != before.end())
                    own = std::max(own, made->second);
            for (std::size_t k = 0; k < node(id).outputs.size(); ++k) {
                const bool reduces = member.program->outputs[k].kind != Output::Kind::elementwise;
                before[node(id).outputs[k]] = own + (reduces ? 1 : 0);
            }
            most = std::max(most, own + (member.reduces ? 1 : 0));
        }
        return most;
    }

    bool is_small() const {
        const std::vector<Read> all = reads();
        std::size_t reductions = 0, results = 0;
        int scalars = 0;
        for (const auto& [id, member] : group_) {
            for (const Output& output : member.program->outputs)
                reductions += output.kind != Output::Kind::elementwise;
            results += member.program->outputs.size();
            scalars += member.program->scalars;
        }
        return passes() <= most_passes && all.size() <= most_inputs &&
               reductions <= most_reductions && results <= most_stages && scalars <= 16 &&
               std::any_of(all.begin(), all.end(),
                           [](const Read& read) { return read.extent == Extent::full; });
    }

    /// Whether the group only reduces what it makes of a convolution's result on a CPU. There
    /// channels lie together, and rows would have to be brought together for one read less.
    bool is_of_images() const {
        if (!device_.wide_vectors || device_.host) return false;
        for (const auto& [id, member] : group_)
            for (std::size_t k = 0; k < node(id).outputs.size(); ++k)
                if (member.program->outputs[k].kind != Output::Kind::elementwise &&
                    is_read_by_group(node(id).outputs[k]))
                    return false;
        const std::vector<Read> all = reads();
        return std::any_of(all.begin(), all.end(), [&](const Read& read) {
            const NodeId maker = graph_.value(read.value).producer;
            return maker >= 0 && node(maker).op->type().starts_with("Convolution");
        });
    }

    /// Whether something outside of the group reads the value.
    bool escapes(ValueId id) const {
        std::set<NodeId> readers;
        add_readers(id, readers);
        return is_seen(id) || std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
                   return !group_.contains(reader) && !node(reader).op->is_view();
               });
    }

    /// The group as the options and operands of one node.
    struct Joined {
        std::string stages;
        Strings dtypes;
        Ints wide, results;
        Doubles scalars;
        std::vector<ValueId> values;  ///< that the results become
    };

    Joined described(const std::vector<Read>& operands) const {
        Joined made;
        std::vector<ValueId> known;  // what x0, x1, ... are
        for (const Read& read : operands) known.push_back(read.value);
        for (const auto& [id, member] : group_) {
            std::vector<pointwise::ExprPtr> inputs, scalars;
            for (const ValueId in : node(id).inputs) {
                const auto found = std::find(known.begin(), known.end(), root(in));
                inputs.push_back(pointwise::input(static_cast<int>(found - known.begin())));
            }
            for (const double value : node(id).attrs.numbers("scalars")) {
                scalars.push_back(pointwise::scalar(static_cast<int>(made.scalars.size())));
                made.scalars.push_back(value);
            }
            pointwise::Program stage = *member.program;
            for (std::size_t k = 0; k < stage.outputs.size(); ++k) {
                Output& output = stage.outputs[k];
                output.value = pointwise::substitute(output.value, inputs, scalars);
                output.all_axes = false;
                output.axes.assign(1, 1);
                const ValueId value = node(id).outputs[k];
                if (escapes(value)) {
                    made.results.push_back(
                        static_cast<std::int64_t>(known.size() - operands.size()));
                    made.dtypes.emplace_back(name_of(graph_.spec(value).dtype));
                    made.values.push_back(value);
                }
                known.push_back(value);
            }
            if (!made.stages.empty()) made.stages += '\n';
            made.stages += pointwise::print(stage);
            made.wide.push_back(member.wide ? 1 : 0);
        }
        return made;
    }

    /// The tensor as a matrix. A line broadcasts as one.
    ValueId as_matrix(const std::string& name, const Read& read) {
        if (read.extent == Extent::line && graph_.shape(read.value).rank() == 1) return read.value;
        return graph_.reshape(name, read.value, matrix_shape(read.extent, matrix_));
    }

    /// Puts one node in the place of the group, if an engine runs it.
    bool join() {
        const Node last = node(last_wide());
        const std::size_t first_new = graph_.nodes.size();
        const std::vector<Read> operands = reads();
        Joined made = described(operands);
        graph_.release_name(last.name);
        const Part part = std::exchange(graph_.part, last.part);
        std::vector<ValueId> inputs;
        for (const Read& read : operands) inputs.push_back(as_matrix(last.name + "/rows", read));
        const std::vector<ValueId> outputs =
            graph_.add("PointwiseRows", last.name, std::move(inputs),
                       {{"stages", std::move(made.stages)},
                        {"wide", std::move(made.wide)},
                        {"results", std::move(made.results)},
                        {"scalars", std::move(made.scalars)},
                        {"dtypes", std::move(made.dtypes)}});
        const auto joined = static_cast<NodeId>(graph_.nodes.size() - 1);
        const bool accepted = runs_(graph_, node(joined));
        for (std::size_t k = 0; accepted && k < outputs.size(); ++k)
            put_result(joined, k, outputs[k], made.values[k]);
        graph_.part = part;
        for (std::size_t n = first_new; n < graph_.nodes.size(); ++n) {
            graph_.nodes[n].recompute = last.recompute;
            graph_.nodes[n].again = last.again;
            graph_.nodes[n].removed = !accepted;
        }
        if (!accepted) return false;
        graph_.nodes[at(joined)].name = last.name;
        for (const auto& [id, member] : group_) take_name(graph_.nodes[at(joined)], node(id));
        for (const auto& [id, member] : group_) graph_.nodes[at(id)].removed = true;
        graph_.sort();
        return true;
    }

    NodeId last_wide() const {
        for (auto member = group_.rbegin(); member != group_.rend(); ++member)
            if (member->second.wide) return member->first;
        return group_.rbegin()->first;
    }

    /// Makes result k of the joined node the value that a node of the group made.
    void put_result(NodeId joined, std::size_t k, ValueId result, ValueId value) {
        NodeId maker = joined;
        std::size_t place = k;
        if (graph_.shape(result) != graph_.shape(value)) {
            graph_.reshape(node(joined).name + "/shape", result, graph_.shape(value));
            maker = static_cast<NodeId>(graph_.nodes.size() - 1);
            place = 0;
        }
        graph_.nodes[at(maker)].outputs[place] = value;
        graph_.value(value).producer = maker;
    }

    /// Lists what the joined node computes, each name once.
    static void take_name(Node& joined, const Node& member) {
        const auto add = [&](const std::string& name) {
            auto& all = joined.fused;
            if (name != joined.name && std::find(all.begin(), all.end(), name) == all.end())
                all.push_back(name);
        };
        add(member.name);
        for (const std::string& name : member.fused) add(name);
        joined.frozen = joined.frozen || member.frozen;
    }

    Graph& graph_;
    const Traits& device_;
    const std::function<bool(const Graph&, const Node&)>& runs_;
    std::vector<std::vector<NodeId>> readers_;  ///< by ValueId
    std::set<ValueId> seen_;                    ///< outside of the graph
    std::vector<bool> fixed_;                   ///< by ValueId
    Matrix matrix_;
    std::map<NodeId, RowNode> group_;  ///< in the order of the graph
};

}  // namespace

void join_rows(Graph& graph, const Traits& device,
               const std::function<bool(const Graph&, const Node&)>& runs) {
    std::optional<NodeId> from = 0;
    while (from) from = RowJoiner(graph, device, runs).run(*from);
    graph.sort();
    graph.remove_dead();
}

}  // namespace dlprim
