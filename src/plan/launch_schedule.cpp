// SPDX-License-Identifier: MIT
// make_launch_schedule.
#include "plan/launch_schedule.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/copy_engines.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <map>

namespace dlprim {

int LaunchSchedule::root(int id) const {
    while (stored[static_cast<std::size_t>(id)].alias >= 0)
        id = stored[static_cast<std::size_t>(id)].alias;
    return id;
}

Place LaunchSchedule::place(int id) const {
    std::uint64_t offset = 0;
    for (; stored[static_cast<std::size_t>(id)].alias >= 0;
         id = stored[static_cast<std::size_t>(id)].alias)
        offset += stored[static_cast<std::size_t>(id)].alias_offset;
    Place place = stored[static_cast<std::size_t>(id)].place;
    place.offset += offset;
    return place;
}

int LaunchSchedule::find(ValueId value, const Layout& layout) const {
    const int home = native[static_cast<std::size_t>(value)];
    if (home >= 0 && stored[static_cast<std::size_t>(home)].layout == layout) return home;
    const auto found = converted.find({value, layout.str()});
    return found == converted.end() ? -1 : found->second;
}

namespace {

class Scheduler {
  public:
    Scheduler(const Traits& device, const Graph& graph, const std::vector<char>& constant,
              const std::vector<Choice>& choices, const PlanOptions& options)
        : device_(device),
          graph_(graph),
          constant_(constant),
          choices_(choices),
          options_(options) {
        schedule_.native.assign(graph.values.size(), -1);
    }

    LaunchSchedule run() {
        for (std::size_t i = 0; i < graph_.values.size(); ++i)
            if (graph_.values[i].producer < 0)
                add_home(static_cast<ValueId>(i), bound_layout(static_cast<ValueId>(i)));
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) add_node(i);
        for (const auto& [value, name] : graph_.outputs)
            add_result(value, Part::forward, options_.output_layouts, name);
        for (const auto& [value, gradient] : graph_.gradients)
            add_result(gradient, Part::backward, options_.gradient_layouts, value);
        for (const auto& assignment : graph_.assignments) {
            const NodeId producer = graph_.value(assignment.source).producer;
            const Part part = producer < 0 ? Part::forward
                                           : graph_.nodes[static_cast<std::size_t>(producer)].part;
            in_layout(assignment.source, Layout::plain(), part, nullptr);
        }
        // Conversions of forward values that only graph outputs need may have been added after
        // backward. Sort by part, and keep the order within a part.
        std::stable_sort(run_.begin(), run_.end(),
                         [](const Item& a, const Item& b) { return a.part < b.part; });
        schedule_.setup = setup_.size();
        schedule_.items = std::move(setup_);
        if (options_.kept != nullptr) describe_setup();
        std::move(run_.begin(), run_.end(), std::back_inserter(schedule_.items));
        return std::move(schedule_);
    }

  private:
    struct Reader {
        int choice;
        int input;
    };

    int add_stored(ValueId value, const Layout& layout, std::uint64_t bytes) {
        Stored stored;
        stored.value = value;
        stored.layout = layout;
        stored.bytes = bytes;
        schedule_.stored.push_back(std::move(stored));
        return static_cast<int>(schedule_.stored.size()) - 1;
    }

    int add_home(ValueId value, const Layout& layout) {
        const TensorSpec& spec = graph_.spec(value);
        const int id = add_stored(value, layout, storage_bytes(spec.shape, spec.dtype, layout));
        schedule_.native[static_cast<std::size_t>(value)] = id;
        return id;
    }

    Layout bound_layout(ValueId value) const {
        const auto found = options_.input_layouts.find(value);
        return found == options_.input_layouts.end() ? Layout::plain() : found->second;
    }

    /// Adds the form of an output or gradient that the caller gets. A value that several of them
    /// are has one form, that of the first.
    template <typename Key>
    void add_result(ValueId value, Part part, const std::map<Key, Layout>& wanted, const Key& key) {
        if (schedule_.results.count(value)) return;
        if (const auto found = wanted.find(key); found != wanted.end()) {
            schedule_.results[value] = in_layout(value, found->second, part, nullptr);
            return;
        }
        const Layout& made =
            schedule_
                .stored[static_cast<std::size_t>(schedule_.native[static_cast<std::size_t>(value)])]
                .layout;
        const bool keep = options_.free_outputs && !is_constant(value) &&
                          graph_.value(value).producer >= 0 && made.kind != Layout::Kind::packed &&
                          !same_memory(graph_.shape(value), made, Layout::plain());
        schedule_.results[value] =
            in_layout(value, keep ? Layout(made) : Layout::plain(), part, nullptr);
    }

    bool is_constant(ValueId value) const {
        return constant_[static_cast<std::size_t>(value)] != 0;
    }
    std::vector<Item>& list_for(ValueId value) { return is_constant(value) ? setup_ : run_; }

    /// Returns the value in that layout, and adds a conversion if there is none yet. `reader` is
    /// the node that packs a packed layout.
    int in_layout(ValueId value, const Layout& layout, Part part, const Reader* reader) {
        if (const int found = schedule_.find(value, layout); found >= 0) {
            advance(found, part);
            return found;
        }
        const TensorSpec& spec = graph_.spec(value);
        const int home = schedule_.native[static_cast<std::size_t>(value)];
        const Layout home_layout = schedule_.stored[static_cast<std::size_t>(home)].layout;
        const int made = add_stored(value, layout, storage_bytes(spec.shape, spec.dtype, layout));
        schedule_.converted[{value, layout.str()}] = made;
        if (same_memory(spec.shape, home_layout, layout)) {
            schedule_.stored[static_cast<std::size_t>(made)].alias = home;
            return made;
        }
        Item item;
        item.part = part;
        if (layout.kind == Layout::Kind::packed) {
            require(reader != nullptr, "nobody packs '", graph_.value(value).name, "'");
            item.kind = Item::Kind::pack;
            item.type = "Pack";
            item.name = "pack " + graph_.value(value).name;
            item.choice = reader->choice;
            item.packed_input = reader->input;
            item.reads = {in_layout(value, Layout::plain(), part, nullptr)};
        } else {
            item.kind = Item::Kind::reorder;
            item.type = "Reorder";
            item.name = "reorder " + graph_.value(value).name;
            // Between strides and blocks there is no direct way.
            const auto blocked = [](const Layout& l) { return l.kind == Layout::Kind::blocked; };
            const bool twice = (home_layout.is_strided() && blocked(layout)) ||
                               (layout.is_strided() && blocked(home_layout));
            item.reads = {twice ? in_layout(value, Layout::plain(), part, nullptr) : home};
        }
        item.writes = {made};
        if (!is_constant(value)) conversions_[made] = run_.size();
        list_for(value).push_back(std::move(item));
        return made;
    }

    /// Lets a conversion run in this part, if it was added for a later one. Passes may leave a
    /// backward node in front of a forward node that reads the same value.
    void advance(int stored, Part part) {
        const auto found = conversions_.find(stored);
        if (found == conversions_.end() || run_[found->second].part <= part) return;
        run_[found->second].part = part;
        for (const int read : run_[found->second].reads) advance(read, part);
    }

    /// A result that is the input's memory from `offset` bytes on.
    void add_view(const Node& node, const Layout& from, const Layout& to, std::uint64_t offset) {
        const int read = in_layout(node.inputs[0], from, node.part, nullptr);
        const int made = add_home(node.outputs[0], to);
        schedule_.stored[static_cast<std::size_t>(made)].alias = read;
        schedule_.stored[static_cast<std::size_t>(made)].alias_offset = offset;
    }

    /// Concat: its inputs are parts of its result's memory.
    void add_parts(const Node& node, const Choice& choice, const std::vector<StridedCopy>& copies) {
        std::vector<int> parts;
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
            parts.push_back(schedule_.root(
                in_layout(node.inputs[k], choice.problem.inputs[k].layout, node.part, nullptr)));
        const int whole = add_home(node.outputs[0], choice.problem.outputs[0].layout);
        for (std::size_t k = 0; k < parts.size(); ++k) {
            Stored& part = schedule_.stored[static_cast<std::size_t>(parts[k])];
            part.alias = whole;
            part.alias_offset =
                static_cast<std::uint64_t>(copies[k].y_offset) * copies[k].element_bytes;
        }
    }

    /// A node that moves elements, or shows them in another shape, to where they are.
    void add_strided_view(const Node& node, const Choice& choice) {
        const Layout &from = choice.problem.inputs[0].layout,
                     &to = choice.problem.outputs[0].layout;
        if (choice.engine == nullptr) return add_view(node, from, to, 0);
        const std::vector<StridedCopy> copies = moves_of(*choice.engine, choice.problem);
        if (copies.size() > 1) return add_parts(node, choice, copies);
        add_view(node, from, to,
                 static_cast<std::uint64_t>(copies[0].x_offset) * copies[0].element_bytes);
    }

    void add_node(std::size_t index) {
        const Node& node = graph_.nodes[index];
        const Choice& choice = choices_[index];
        if (choice.is_view) return add_strided_view(node, choice);
        if (node.op->is_view()) return add_view(node, Layout::plain(), Layout::plain(), 0);
        if (is_beginning(node, choice)) {
            const Layout& layout = choice.problem.outputs[0].layout;
            return add_view(node, layout, layout, 0);
        }
        Item item;
        item.choice = static_cast<int>(index);
        item.name = node.name;
        item.type = std::string(node.type());
        item.part = node.part;
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            const Reader reader{static_cast<int>(index), static_cast<int>(k)};
            item.reads.push_back(
                in_layout(node.inputs[k], choice.problem.inputs[k].layout, node.part, &reader));
        }
        for (std::size_t k = 0; k < node.outputs.size(); ++k)
            item.writes.push_back(add_home(node.outputs[k], choice.problem.outputs[k].layout));
        const std::uint64_t workspace =
            choice.engine->workspace_bytes(device_, choice.problem, choice.tuning);
        if (workspace > 0) item.workspace = add_stored(no_value, Layout::plain(), workspace);
        list_for(node.outputs[0]).push_back(std::move(item));
    }

    /// Sets the contents of what setup makes.
    void describe_setup() {
        for (const Item& item : schedule_.items) {
            std::string how = item.type;
            if (item.kind == Item::Kind::node) {
                const Choice& choice = choices_[static_cast<std::size_t>(item.choice)];
                how = cat(choice.engine->name(), ' ', text_of(choice.tuning), ' ',
                          choice.problem.key());
            }
            for (const int id : item.reads) how += cat(" (", content(id), ')');
            for (std::size_t i = 0; i < item.writes.size(); ++i) {
                Stored& made = schedule_.stored[static_cast<std::size_t>(item.writes[i])];
                made.content = cat(how, " -> ", i, ' ', made.layout.str(), ' ', made.bytes);
            }
        }
    }

    std::string content(int id) const {
        const Stored& read = schedule_.stored[static_cast<std::size_t>(id)];
        const Stored& root = schedule_.stored[static_cast<std::size_t>(schedule_.root(id))];
        const TensorSpec& spec = graph_.spec(read.value);
        const std::string as = cat(name_of(spec.dtype), spec.shape.str(), read.layout.str());
        if (!root.content.empty()) return cat(root.content, " as ", as);
        const Value& value = graph_.value(root.value);
        if (value.role == Role::constant)
            return cat(
                "literal ",
                hash64({reinterpret_cast<const char*>(value.data.data()), value.data.size()}), ' ',
                as);
        return cat(options_.identity(value), ' ', as);
    }

    /// Whether the node's result is the beginning of its input's memory. A forced engine runs
    /// nevertheless.
    bool is_beginning(const Node& node, const Choice& choice) const {
        return node.engine.empty() && node.epilogue.empty() && node.inputs.size() == 1 &&
               choice.problem.inputs[0].layout == choice.problem.outputs[0].layout &&
               node.op->is_beginning(node, graph_.shape(node.inputs[0]));
    }

    const Traits& device_;
    const Graph& graph_;
    const std::vector<char>& constant_;
    const std::vector<Choice>& choices_;
    const PlanOptions& options_;
    LaunchSchedule schedule_;
    std::vector<Item> setup_, run_;
    std::map<int, std::size_t> conversions_;  ///< by stored form: the item of run_ that makes it
};

}  // namespace

LaunchSchedule make_launch_schedule(const Traits& device, const Graph& graph,
                                    const std::vector<char>& constant,
                                    const std::vector<Choice>& choices,
                                    const PlanOptions& options) {
    return Scheduler(device, graph, constant, choices, options).run();
}

}  // namespace dlprim
