// SPDX-License-Identifier: MIT
// find_strided_views: gives values the layouts that make moves superfluous, asks all readers and
// makers, and begins anew without the nodes for which one of them says no.
#include "plan/strided_views.hpp"

#include "engine/copy_engines.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

using Takes = StrideQuestions::Takes;
constexpr std::uint64_t alignment = 16;  // bytes; see Layout::aligned

/// The strides of an array that has the elements of `from` in another shape, if there are such.
std::optional<Ints> reshaped(const Shape& from, const Ints& strides, const Shape& to) {
    if (from.empty() || to.rank() == 0) return std::nullopt;
    Ints made(static_cast<std::size_t>(to.rank()), 0);
    int d = 0;
    for (int e = 0; e < to.rank();) {
        // The next dimensions of both that hold equally many elements.
        const int first_from = d, first_to = e;
        std::int64_t count_from = 1, count_to = 1;
        do {
            if (count_from <= count_to && d < from.rank())
                count_from *= from[d++];
            else
                count_to *= to[e++];
        } while (count_from != count_to && (d < from.rank() || e < to.rank()));
        if (count_from != count_to) return std::nullopt;
        std::int64_t step = 0, outside = -1;  // those of `from` must lie within each other
        for (int i = d; i-- > first_from;) {
            const std::int64_t stride = strides[static_cast<std::size_t>(i)];
            if (from[i] == 1) continue;
            if (outside < 0) step = stride;
            if (outside >= 0 && stride != outside) return std::nullopt;
            outside = stride * from[i];
        }
        for (int i = e; i-- > first_to; step *= to[i])
            made[static_cast<std::size_t>(i)] = to[i] == 1 ? 0 : step;
    }
    return made;
}

class Finder {
  public:
    Finder(const Graph& graph, const std::vector<char>& constant, const ValueLayouts& bound,
           const StrideQuestions& questions)
        : graph_(graph), constant_(constant), bound_(bound), questions_(questions) {
        readers_.resize(graph.values.size());
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            for (const ValueId id : graph.nodes[i].inputs) readers_[at(id)].push_back(i);
        for (const auto& output : graph.outputs) visible_.insert(output.first);
        for (const auto& gradient : graph.gradients) visible_.insert(gradient.second);
        for (const auto& assignment : graph.assignments) visible_.insert(assignment.source);
    }

    StridedViews run() {
        bool any = false;
        for (std::size_t i = 0; i < graph_.nodes.size() && !any; ++i) any = questions_.lists(i);
        if (!any) return {{}, std::vector<char>(graph_.nodes.size(), 0)};
        for (std::size_t refused = 1; refused > 0;) {
            lies_.clear();
            views_.nodes.assign(graph_.nodes.size(), 0);
            for (std::size_t i = graph_.nodes.size(); i-- > 0;) want(i);
            for (std::size_t i = 0; i < graph_.nodes.size(); ++i) show(i);
            refused = refuse();
        }
        for (const auto& [value, lie] : lies_) views_.layouts[value] = lie.layout;
        return std::move(views_);
    }

  private:
    struct Lie {
        Layout layout;
        std::uint64_t offset = 0;  ///< bytes from the beginning of the memory
        std::size_t by = 0;        ///< the node for which the value lies so
        bool wanted = false;       ///< by its reader; else shown by its maker
    };

    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    const Node& node(std::size_t i) const { return graph_.nodes[i]; }

    const Layout& layout(ValueId value) const {
        static const Layout plain;
        const auto found = lies_.find(value);
        return found == lies_.end() ? plain : found->second.layout;
    }
    std::uint64_t offset(ValueId value) const {
        const auto found = lies_.find(value);
        return found == lies_.end() ? 0 : found->second.offset;
    }
    bool lies(ValueId value) const { return lies_.count(value) > 0; }

    void lie(ValueId value, Ints strides, std::uint64_t offset, std::size_t by, bool wanted) {
        const Shape& shape = graph_.shape(value);
        for (int d = 0; d < shape.rank(); ++d)
            if (shape[d] == 1) strides[at(d)] = 0;
        lies_[value] = {Layout::strided(std::move(strides), offset % alignment == 0), offset, by,
                        wanted};
    }

    /// The copies of a node that may be left out, from and to the layouts in which values lie.
    std::vector<StridedCopy> copies(std::size_t i) const {
        const Engine* const engine = questions_.moving_engine(i);
        if (engine == nullptr) return {};
        Problem problem = questions_.problem(i);
        for (std::size_t k = 0; k < problem.inputs.size(); ++k)
            problem.inputs[k].layout = layout(node(i).inputs[k]);
        problem.outputs[0].layout = layout(node(i).outputs[0]);
        return moves_of(*engine, problem);
    }

    /// Whether the value may be put elsewhere than where it is made by itself.
    bool is_free(ValueId value) const {
        return graph_.value(value).producer >= 0 && !constant_[at(value)] && !lies(value) &&
               !visible_.count(value);
    }

    bool moves(std::size_t i) const {
        return node(i).op->is_view() || questions_.moving_engine(i) != nullptr;
    }

    /// The node that computes what the value shows, or none.
    std::optional<std::size_t> maker_of(ValueId value) const {
        for (;;) {
            const NodeId maker = graph_.value(value).producer;
            if (maker < 0) return std::nullopt;
            if (!moves(at(maker))) return at(maker);
            value = node(at(maker)).inputs[0];
        }
    }

    bool is_read_by_lister(ValueId value) const {
        return std::any_of(
            readers_[at(value)].begin(), readers_[at(value)].end(), [&](std::size_t i) {
                return moves(i) ? is_read_by_lister(node(i).outputs[0]) : questions_.lists(i);
            });
    }

    /// Whether the node's engines list strided layouts, or those of a node before it.
    bool is_after_lister(std::size_t i) const {
        return questions_.lists(i) ||
               std::any_of(node(i).inputs.begin(), node(i).inputs.end(), [&](ValueId x) {
                   const auto maker = maker_of(x);
                   return maker && questions_.lists(*maker);
               });
    }
    /// The same for nodes before and after it.
    bool is_near_lister(std::size_t i) const {
        return is_after_lister(i) || std::any_of(node(i).outputs.begin(), node(i).outputs.end(),
                                                 [&](ValueId y) { return is_read_by_lister(y); });
    }

    bool may_write_strides(ValueId value) const {
        const auto maker = maker_of(value);
        return maker && is_after_lister(*maker);
    }

    /// Lets inputs lie where the node's output is, which is plain or lies for its own reader.
    void want(std::size_t i) {
        const std::vector<ValueId>& inputs = node(i).inputs;
        const ValueId y = node(i).outputs[0];
        if (unwanted_.count(i)) return;
        if (node(i).op->is_view()) {
            if (!lies(y) || !is_free(inputs[0])) return;
            if (auto strides =
                    reshaped(graph_.shape(y), layout(y).strides, graph_.shape(inputs[0]))) {
                lie(inputs[0], std::move(*strides), offset(y), i, true);
                views_.nodes[i] = 1;
            }
            return;
        }
        const std::vector<StridedCopy> moves = copies(i);
        const std::set<ValueId> distinct(inputs.begin(), inputs.end());
        if (moves.empty() || distinct.size() < moves.size()) return;
        // A forward node that runs again in backward would put its inputs elsewhere.
        const bool may_run_again = node(i).part == Part::forward && !graph_.gradients.empty();
        if (moves.size() > 1 && may_run_again) return;
        for (const ValueId x : inputs)
            if (!is_free(x) || !may_write_strides(x)) return;
        std::vector<Ints> strides;
        for (std::size_t k = 0; k < moves.size(); ++k) {
            std::optional<Ints> wanted = undone(moves[k], graph_.shape(inputs[k]));
            if (!wanted) return;
            strides.push_back(std::move(*wanted));
        }
        for (std::size_t k = 0; k < moves.size(); ++k) {
            const auto begin = static_cast<std::uint64_t>(moves[k].y_offset);
            lie(inputs[k], std::move(strides[k]), offset(y) + begin * moves[k].element_bytes, i,
                true);
        }
        views_.nodes[i] = 1;
    }

    /// The strides of the copy's source that put its elements where the copy would put them, if it
    /// copies all of them.
    static std::optional<Ints> undone(const StridedCopy& copy, const Shape& x) {
        std::int64_t count = 1;
        for (const std::int64_t size : copy.sizes) count *= size;
        if (count != x.numel() || copy.x_offset != 0 || x.rank() == 0) return std::nullopt;
        const Ints plain = x.strides();
        Ints strides(plain.size(), 0);
        for (int d = 0; d < x.rank(); ++d) {
            if (x[d] == 1) continue;
            std::size_t e = 0;
            while (e < copy.sizes.size() &&
                   (copy.sizes[e] != x[d] || copy.x_strides[e] != plain[at(d)]))
                ++e;
            if (e == copy.sizes.size()) return std::nullopt;
            strides[at(d)] = copy.y_strides[e];
        }
        return strides;
    }

    /// Shows the node's input as its output, in other strides.
    void show(std::size_t i) {
        if (views_.nodes[i] || unshown_.count(i) || node(i).inputs.empty()) return;
        const ValueId x = node(i).inputs[0], y = node(i).outputs[0];
        if (constant_[at(y)] || lies(y) || visible_.count(y)) return;
        if (const auto found = bound_.find(x); found != bound_.end() && !found->second.is_plain())
            return;
        if (node(i).op->is_view()) {
            if (!lies(x)) return;
            if (auto strides = reshaped(graph_.shape(x), layout(x).strides, graph_.shape(y))) {
                lie(y, std::move(*strides), offset(x), i, false);
                views_.nodes[i] = 1;
            }
            return;
        }
        const std::vector<StridedCopy> moves = copies(i);
        if (moves.size() != 1 || moves[0].x_strides.empty()) return;
        const Ints& strides = moves[0].x_strides;
        if (std::any_of(strides.begin(), strides.end(), [](std::int64_t s) { return s < 0; }))
            return;
        lie(y, strides,
            offset(x) + static_cast<std::uint64_t>(moves[0].x_offset) * moves[0].element_bytes, i,
            false);
        views_.nodes[i] = 1;
    }

    /// Refuses the nodes for which a value lies so that somebody cannot take it, or so that nobody
    /// asks for it. Returns their number.
    std::size_t refuse() {
        std::size_t refused = 0;
        ValueLayouts lying;
        for (const auto& [value, lie] : lies_) lying[value] = lie.layout;
        std::map<ValueId, bool> listed;  // whether an engine at the end of the views lists it
        const auto look_at = [&](ValueId value) {
            const Lie& lie = lies_.at(value);
            const bool plain =
                lie.layout.aligned && same_memory(graph_.shape(value), lie.layout, Layout::plain());
            const bool whole_rows = lie.layout.strides.back() == 1;
            bool taken = true, useful = false;
            const auto ask = [&](std::size_t i, ValueId other) {
                if (views_.nodes[i]) {
                    useful = useful || (other != no_value && listed[other]);
                    return;
                }
                const Takes takes = plain ? Takes::any_strides : questions_.takes(i, value, lying);
                taken = taken && takes != Takes::no;
                useful = useful || takes == Takes::listed ||
                         (takes == Takes::any_strides && whole_rows && is_near_lister(i));
            };
            const NodeId maker = graph_.value(value).producer;
            if (lie.wanted)
                ask(at(maker),
                    node(at(maker)).inputs.empty() ? no_value : node(at(maker)).inputs[0]);
            for (const std::size_t reader : readers_[at(value)]) {
                if (lie.wanted && reader == lie.by) continue;
                ask(reader, lie.wanted ? no_value : node(reader).outputs[0]);
            }
            listed[value] = useful;
            if (!taken || !useful) {
                (lie.wanted ? unwanted_ : unshown_).insert(lie.by);
                ++refused;
            }
        };
        // What is shown depends on later values, and what is wanted on earlier ones.
        for (std::size_t i = graph_.nodes.size(); i-- > 0;)
            for (const ValueId y : node(i).outputs)
                if (lies(y) && !lies_.at(y).wanted) look_at(y);
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            for (const ValueId y : node(i).outputs)
                if (lies(y) && lies_.at(y).wanted) look_at(y);
        return refused;
    }

    const Graph& graph_;
    const std::vector<char>& constant_;
    const ValueLayouts& bound_;
    const StrideQuestions& questions_;
    std::vector<std::vector<std::size_t>> readers_;  ///< by ValueId: nodes
    std::set<ValueId> visible_;
    std::set<std::size_t> unwanted_, unshown_;  ///< nodes that were tried
    std::map<ValueId, Lie> lies_;
    StridedViews views_;
};

}  // namespace

StridedViews find_strided_views(const Graph& graph, const std::vector<char>& constant,
                                const ValueLayouts& bound, const StrideQuestions& questions) {
    return Finder(graph, constant, bound, questions).run();
}

}  // namespace dlprim
