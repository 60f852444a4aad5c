// SPDX-License-Identifier: MIT
// plan_memory: places of persistent values, lifetimes, in-place work, redirection, slabs.
#include "plan/memory.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "plan/kept_values.hpp"
#include "plan/memory_account.hpp"
#include "plan/slabs.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

class MemoryPlanner {
  public:
    MemoryPlanner(const Traits& device, const Graph& graph, const std::vector<char>& constant,
                  LaunchSchedule& schedule, const PlanOptions& options)
        : device_(device),
          graph_(graph),
          constant_(constant),
          schedule_(schedule),
          options_(options),
          alignment_(std::max<std::uint64_t>(device.base_align_bytes, 64)),
          block_offsets_(graph.block_offsets()),
          has_blocks_(options.bind_params_from == ~std::uint64_t{0}) {}

    MemoryPlan run() {
        find_what_runs_read();
        place_homes();
        find_lifetimes();
        work_in_place();
        redirect_outputs();
        redirect_gradients();
        redirect_assignments();
        keep_setup_results();
        place_scratch();
        account_for(plan_, device_, graph_, schedule_, options_);
        return std::move(plan_);
    }

  private:
    Stored& stored(int id) { return schedule_.stored[static_cast<std::size_t>(id)]; }
    Stored& root_of(int id) { return stored(schedule_.root(id)); }
    int home(ValueId value) const { return schedule_.native[static_cast<std::size_t>(value)]; }

    int block(const std::string& name) {
        for (std::size_t i = 0; i < plan_.blocks.size(); ++i)
            if (plan_.blocks[i].name == name) return static_cast<int>(i);
        plan_.blocks.push_back({name, 0});
        return static_cast<int>(plan_.blocks.size()) - 1;
    }

    /// Allocates the next free bytes of a block.
    Place in_block(const std::string& name, std::uint64_t bytes) {
        Place place{Place::Kind::block, block(name), 0};
        Block& b = plan_.blocks[static_cast<std::size_t>(place.index)];
        place.offset = b.bytes;
        b.bytes += aligned(bytes, 256);
        return place;
    }

    /// The same among constants, which are several blocks where one would be larger than what the
    /// device allocates.
    Place among_constants(std::uint64_t bytes) {
        const auto has_room = [&](const Block& b) {
            return b.name == "constants" &&
                   (b.bytes == 0 || b.bytes + aligned(bytes, 256) <= device_.max_alloc_bytes);
        };
        auto found = std::find_if(plan_.blocks.begin(), plan_.blocks.end(), has_room);
        if (found == plan_.blocks.end())
            found = plan_.blocks.insert(plan_.blocks.end(), {"constants", 0});
        const Place place{Place::Kind::block, static_cast<int>(found - plan_.blocks.begin()),
                          found->bytes};
        found->bytes += aligned(bytes, 256);
        return place;
    }

    /// A part with a fixed offset in a block that all plans of a net share.
    Place part_of(const std::string& name, std::uint64_t offset, std::uint64_t block_bytes) {
        const Place place{Place::Kind::block, block(name), offset};
        plan_.blocks[static_cast<std::size_t>(place.index)].bytes = block_bytes;
        return place;
    }

    Place external(External::Kind kind, ValueId value, const std::string& name, int bound) {
        const bool setup_only = kind == External::Kind::parameter &&
                                !runs_read_[static_cast<std::size_t>(schedule_.root(bound))];
        plan_.externals.push_back({kind, value, name, stored(bound).layout, setup_only});
        return {Place::Kind::external, static_cast<int>(plan_.externals.size()) - 1, 0};
    }

    std::uint64_t params_bytes() const {
        return static_cast<std::uint64_t>(graph_.block_elements()) * 4;
    }

    /// Whether a parameter's memory is bound by the caller.
    bool is_bound(std::uint64_t bytes) const { return bytes >= options_.bind_params_from; }

    /// Marks, by root Stored, what steps after setup use.
    void find_what_runs_read() {
        runs_read_.assign(schedule_.stored.size(), 0);
        const auto mark = [&](int id) {
            runs_read_[static_cast<std::size_t>(schedule_.root(id))] = 1;
        };
        for (std::size_t i = schedule_.setup; i < schedule_.items.size(); ++i)
            for (int id : schedule_.items[i].reads) mark(id);
        for (const auto& result : schedule_.results) mark(result.second);
        for (const auto& assignment : graph_.assignments) {
            mark(home(assignment.target));
            mark(schedule_.find(assignment.source, Layout::plain()));
        }
    }

    void place_homes() {
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const auto id = static_cast<ValueId>(i);
            const Value& value = graph_.values[i];
            if (value.role == Role::intermediate || home(id) < 0) continue;
            const std::uint64_t bytes = stored(home(id)).bytes;
            Place place;
            switch (value.role) {
                case Role::input:
                    place = external(External::Kind::input, id, value.name, home(id));
                    break;
                case Role::parameter:
                    if (is_bound(bytes))
                        place = external(External::Kind::parameter, id, value.name, home(id));
                    else if (auto found = block_offsets_.find(id);
                             found != block_offsets_.end() && has_blocks_)
                        place = part_of("params", static_cast<std::uint64_t>(found->second) * 4,
                                        params_bytes());
                    else
                        place = in_block("fixed", bytes);
                    break;
                case Role::block:
                    // Solvers and norms work on whole blocks, so the gaps between parts hold zeros.
                    place = part_of(
                        value.name.rfind("@params", 0) == 0 ? "params" : "gradients",
                        static_cast<std::uint64_t>(std::max<std::int64_t>(value.part_begin, 0)) * 4,
                        params_bytes());
                    break;
                case Role::scalar: {
                    const auto found =
                        std::find(std::begin(scalar_names), std::end(scalar_names), value.name);
                    require(found != std::end(scalar_names), "no slot for scalar '", value.name,
                            "'");
                    place = part_of(
                        "scalars", static_cast<std::uint64_t>(found - std::begin(scalar_names)) * 8,
                        128);
                    break;
                }
                case Role::constant:
                    place = among_constants(bytes);
                    plan_.literals.push_back(id);
                    break;
                case Role::state:
                    place = in_block("states", bytes);
                    break;
                case Role::intermediate:
                    break;
            }
            stored(home(id)).place = place;
        }
    }

    void touch(int id, int position) {
        Stored& root = root_of(id);
        root.first = std::min(root.first, position);
        root.last = std::max(root.last, position);
    }

    void find_lifetimes() {
        for (std::size_t i = 0; i < schedule_.items.size(); ++i) {
            const Item& item = schedule_.items[i];
            const int position = static_cast<int>(i);
            for (int id : item.reads) touch(id, position);
            for (int id : item.writes) touch(id, position);
            if (item.workspace >= 0) touch(item.workspace, position);
        }
    }

    void work_in_place() {
        // Values that the caller or the next step reads must stay alive after their last reader
        // here.
        std::vector<char> kept(schedule_.stored.size(), 0);
        const auto keep = [&](int id) { kept[static_cast<std::size_t>(schedule_.root(id))] = 1; };
        for (const auto& result : schedule_.results) keep(result.second);
        for (const auto& assignment : graph_.assignments)
            keep(schedule_.find(assignment.source, Layout::plain()));
        for (std::size_t i = 0; i < schedule_.items.size(); ++i) {
            const Item& item = schedule_.items[i];
            if (item.kind != Item::Kind::node) continue;
            const Node& node = graph_.nodes[static_cast<std::size_t>(item.choice)];
            std::vector<int> taken;
            for (const auto& [output, input] : matching_in_place(graph_, node)) {
                const int made = item.writes[static_cast<std::size_t>(output)];
                const int from = schedule_.root(item.reads[static_cast<std::size_t>(input)]);
                Stored& source = stored(from);
                const bool free =
                    source.place.kind == Place::Kind::none && source.last == static_cast<int>(i);
                const bool alike = source.bytes == stored(made).bytes &&
                                   stored(item.reads[static_cast<std::size_t>(input)]).layout ==
                                       stored(made).layout;
                if (kept[static_cast<std::size_t>(from)]) continue;
                // If an operand is only a part of that memory, or lies there in other strides, the
                // kernel would read elements at other positions than it writes.
                const bool in_part =
                    std::any_of(item.reads.begin(), item.reads.end(), [&](int read) {
                        return schedule_.root(read) == from &&
                               (stored(read).bytes != source.bytes ||
                                !(stored(read).layout == stored(made).layout));
                    });
                const bool twice = std::find(taken.begin(), taken.end(), from) != taken.end();
                // An input that setup makes is needed again in the next run.
                const bool made_once =
                    i >= schedule_.setup && source.first < static_cast<int>(schedule_.setup);
                if (!free || !alike || twice || in_part || made_once || stored(made).alias >= 0 ||
                    schedule_.root(made) == from)
                    continue;
                taken.push_back(from);
                source.last = std::max(source.last, stored(made).last);
                stored(made).alias = from;
                if (kept[static_cast<std::size_t>(made)]) kept[static_cast<std::size_t>(from)] = 1;
            }
        }
    }

    /// What setup makes and a run reads, be it by a copy to a result, outlives the run.
    void keep_setup_results() {
        const int setup = static_cast<int>(schedule_.setup);
        const std::vector<std::string> contents = setup_contents();
        std::vector<char> wanted(schedule_.stored.size(), 0);  // whether setup has to make it
        for (std::size_t i = 0; i < schedule_.stored.size(); ++i) {
            Stored& s = schedule_.stored[i];
            if (s.alias >= 0 || s.place.kind != Place::Kind::none) continue;
            if (s.first >= setup || s.last < setup) continue;
            s.place = place_found(contents[i]);
            wanted[i] = s.place.kind == Place::Kind::none;
            if (wanted[i]) s.place = among_constants(s.bytes);
            if (!contents[i].empty()) plan_.kept.emplace_back(contents[i], s.place);
        }
        if (options_.kept != nullptr) find_done_setup(std::move(wanted));
    }

    /// By root: the content of what one item of setup makes there. Empty where several items write.
    std::vector<std::string> setup_contents() const {
        std::vector<std::string> contents(schedule_.stored.size());
        std::vector<int> writers(schedule_.stored.size(), 0);
        for (std::size_t i = 0; i < schedule_.setup; ++i)
            for (const int id : schedule_.items[i].writes) {
                const auto root = static_cast<std::size_t>(schedule_.root(id));
                contents[root] = ++writers[root] > 1
                                     ? ""
                                     : schedule_.stored[static_cast<std::size_t>(id)].content;
            }
        return contents;
    }

    /// Where another plan has such a value. The place of kind none, where there is none, or if the
    /// plan would read too many buffers for that: kernels of chains have one argument for each.
    Place place_found(const std::string& content) {
        constexpr std::size_t most_found = 4;
        if (options_.kept == nullptr || content.empty()) return {};
        std::optional<KeptValues::Found> found = options_.kept->find(content);
        if (!found) return {};
        std::size_t used = 0;
        for (std::size_t i = 0; i < plan_.blocks.size(); ++i) {
            if (plan_.blocks[i].memory == found->memory)
                return {Place::Kind::block, static_cast<int>(i), found->offset};
            if (plan_.blocks[i].memory) ++used;
        }
        if (used >= most_found) return {};
        const std::uint64_t bytes = found->memory->bytes();
        plan_.blocks.push_back({"constants of another plan", bytes, std::move(found->memory)});
        return {Place::Kind::block, static_cast<int>(plan_.blocks.size()) - 1, found->offset};
    }

    /// Which items of setup make nothing that is wanted, by root, be it by way of another item.
    void find_done_setup(std::vector<char> wanted) {
        plan_.setup_found.assign(schedule_.setup, 1);
        for (std::size_t i = schedule_.setup; i-- > 0;) {
            const Item& item = schedule_.items[i];
            for (const int id : item.writes)
                if (wanted[static_cast<std::size_t>(schedule_.root(id))]) plan_.setup_found[i] = 0;
            if (plan_.setup_found[i]) continue;
            for (const int id : item.reads) {
                const auto root = static_cast<std::size_t>(schedule_.root(id));
                if (!is_found(schedule_.stored[root].place)) wanted[root] = 1;
            }
        }
    }

    bool is_found(const Place& place) const {
        return place.kind == Place::Kind::block &&
               plan_.blocks[static_cast<std::size_t>(place.index)].memory;
    }

    /// Makes a form of a value directly at `place`, if its memory has not been chosen yet.
    /// Otherwise copies it there at the end of `part`. `not_before`: the lifetime of the root must
    /// not begin before this position.
    void redirect(int form, const Place& place, Part part, int not_before = -1) {
        const ValueId value = stored(form).value;
        Stored& root = root_of(form);
        const bool persistent_source = constant_[static_cast<std::size_t>(value)] != 0;
        if (!persistent_source && root.place.kind == Place::Kind::none &&
            root.first >= not_before && root.bytes == stored(form).bytes) {
            root.place = place;
            return;
        }
        if (root.place == place) return;
        Item item;
        item.kind = Item::Kind::copy;
        item.type = "Copy";
        item.name = "copy " + graph_.value(value).name;
        item.part = part;
        item.reads = {form};
        Stored target;
        target.value = value;
        target.layout = stored(form).layout;
        target.bytes = stored(form).bytes;
        target.place = place;
        schedule_.stored.push_back(target);
        item.writes = {static_cast<int>(schedule_.stored.size()) - 1};
        // Inserted after the last item of its part. Lifetimes after that position shift by one.
        std::size_t at = schedule_.items.size();
        while (at > schedule_.setup && schedule_.items[at - 1].part > part) --at;
        schedule_.items.insert(schedule_.items.begin() + static_cast<std::ptrdiff_t>(at), item);
        for (Stored& s : schedule_.stored) {
            if (s.last < 0) continue;
            if (s.first >= static_cast<int>(at)) ++s.first;
            if (s.last >= static_cast<int>(at)) ++s.last;
        }
        touch(form, static_cast<int>(at));
    }

    void redirect_outputs() {
        for (const auto& [value, name] : graph_.outputs) {
            const int form = schedule_.results.at(value);
            redirect(form, external(External::Kind::output, value, name, form), Part::forward);
        }
    }

    void redirect_gradients() {
        for (const auto& [value, gradient] : graph_.gradients) {
            const int form = schedule_.results.at(gradient);
            const auto found = block_offsets_.find(value);
            const Place place =
                found != block_offsets_.end() && has_blocks_
                    ? part_of("gradients", static_cast<std::uint64_t>(found->second) * 4,
                              params_bytes())
                    : external(External::Kind::gradient, value, graph_.value(value).name, form);
            redirect(form, place, Part::backward);
        }
    }

    void redirect_assignments() {
        for (const Assignment& assignment : graph_.assignments) {
            const Place place = stored(home(assignment.target)).place;
            // The target may be overwritten after its last reader has run. That reader itself may
            // overwrite it if it reads each element only where it writes.
            int last_read = -1, last_reader_part = 0;
            const bool whole_block = graph_.value(assignment.target).role == Role::block;
            for (std::size_t i = schedule_.setup; i < schedule_.items.size(); ++i) {
                for (std::size_t k = 0; k < schedule_.items[i].reads.size(); ++k) {
                    const Place& read = root_of(schedule_.items[i].reads[k]).place;
                    const bool same = whole_block
                                          ? read.kind == place.kind && read.index == place.index
                                          : read == place;
                    if (!same) continue;
                    last_read = static_cast<int>(i) +
                                (reads_in_place(schedule_.items[i], k, assignment.source) ? 0 : 1);
                    last_reader_part = static_cast<int>(schedule_.items[i].part);
                }
            }
            const NodeId producer = graph_.value(assignment.source).producer;
            const Part made = producer < 0 ? Part::forward
                                           : graph_.nodes[static_cast<std::size_t>(producer)].part;
            redirect(schedule_.find(assignment.source, Layout::plain()), place,
                     std::max(made, static_cast<Part>(last_reader_part)), last_read);
        }
    }

    bool reads_in_place(const Item& item, std::size_t read, ValueId source) const {
        if (item.kind != Item::Kind::node) return false;
        const Node& node = graph_.nodes[static_cast<std::size_t>(item.choice)];
        for (const auto& [output, input] : matching_in_place(graph_, node))
            if (static_cast<std::size_t>(input) == read &&
                node.outputs[static_cast<std::size_t>(output)] == source)
                return true;
        return false;
    }

    void place_scratch() {
        std::vector<Lifetime> lifetimes;
        std::vector<int> ids;
        for (std::size_t i = 0; i < schedule_.stored.size(); ++i) {
            const Stored& s = schedule_.stored[i];
            if (s.alias >= 0 || s.place.kind != Place::Kind::none || s.last < 0) continue;
            lifetimes.push_back({std::max<std::uint64_t>(s.bytes, 1), s.first, s.last});
            ids.push_back(static_cast<int>(i));
        }
        plan_.slabs = place_in_slabs(lifetimes, alignment_, device_.max_alloc_bytes);
        for (std::size_t i = 0; i < ids.size(); ++i)
            stored(ids[i]).place = {Place::Kind::slab, lifetimes[i].slab, lifetimes[i].offset};
    }

    const Traits& device_;
    const Graph& graph_;
    const std::vector<char>& constant_;
    LaunchSchedule& schedule_;
    const PlanOptions& options_;
    std::uint64_t alignment_;
    std::map<ValueId, std::int64_t> block_offsets_;
    bool has_blocks_;  ///< trainable parameters are contiguous, and so are their gradients
    std::vector<char> runs_read_;
    MemoryPlan plan_;
};

}  // namespace

std::vector<std::pair<int, int>> matching_in_place(const Graph& graph, const Node& node) {
    std::vector<std::pair<int, int>> pairs = node.op->in_place(node);
    std::erase_if(pairs, [&](const std::pair<int, int>& pair) {
        const TensorSpec& made = graph.spec(node.outputs[static_cast<std::size_t>(pair.first)]);
        const TensorSpec& read = graph.spec(node.inputs[static_cast<std::size_t>(pair.second)]);
        return made.dtype != read.dtype || made.shape.numel() != read.shape.numel();
    });
    return pairs;
}

MemoryPlan plan_memory(const Traits& device, const Graph& graph, const std::vector<char>& constant,
                       LaunchSchedule& schedule, const PlanOptions& options) {
    return MemoryPlanner(device, graph, constant, schedule, options).run();
}

}  // namespace dlprim
