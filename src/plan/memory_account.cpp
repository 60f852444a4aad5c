// SPDX-License-Identifier: MIT
// account_for().
#include "plan/memory_account.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

std::string mib(std::uint64_t bytes) {
    return cat(fixed(static_cast<double>(bytes) / (1 << 20), 1), " MiB");
}

class MemoryAccount {
  public:
    MemoryAccount(MemoryPlan& plan, const Traits& device, const Graph& graph,
                  const LaunchSchedule& schedule, const PlanOptions& options)
        : plan_(plan), device_(device), graph_(graph), schedule_(schedule), options_(options) {}

    void run() {
        add_up();
        find_largest();
        if (options_.report) write_report();
        if (options_.over_limit || plan_.setup_peak_bytes > limit()) draw_map();
        if (!options_.over_limit) check();
    }

  private:
    const Stored& home_of(ValueId value) const {
        const int home = schedule_.native[static_cast<std::size_t>(value)];
        return schedule_.stored[static_cast<std::size_t>(schedule_.root(home))];
    }

    std::uint64_t limit() const {
        return options_.memory_limit > 0 ? options_.memory_limit : device_.global_bytes;
    }

    static bool is_scratch(const Stored& s) {
        return s.alias < 0 && s.place.kind == Place::Kind::slab;
    }

    std::string name_of_stored(const Stored& s) const {
        if (s.value != no_value) return graph_.value(s.value).name;
        return s.first >= 0 && s.first < static_cast<int>(schedule_.items.size())
                   ? "workspace of " + schedule_.items[static_cast<std::size_t>(s.first)].name
                   : "workspace";
    }

    void add_up() {
        for (const Block& b : plan_.blocks) persistent_ += b.bytes;
        for (const External& e : plan_.externals)
            if (!e.setup_only) persistent_ += bytes_of(e);
        for (std::uint64_t bytes : plan_.slabs) plan_.slab_bytes += bytes;
        plan_.peak_bytes = persistent_ + plan_.slab_bytes;
        plan_.setup_peak_bytes = plan_.peak_bytes + most_in_setup();
    }

    void find_largest() {
        for (const Stored& s : schedule_.stored)
            if (is_scratch(s)) largest_.push_back(&s);
        std::stable_sort(largest_.begin(), largest_.end(),
                         [](auto* a, auto* b) { return a->bytes > b->bytes; });
    }

    void write_report() {
        TextWriter report;
        report << "peak " << mib(plan_.peak_bytes) << ": scratch " << mib(plan_.slab_bytes)
               << ", persistent " << mib(persistent_) << '\n';
        for (const Block& b : plan_.blocks)
            report << "  block " << b.name << ' ' << mib(b.bytes) << '\n';
        if (plan_.setup_peak_bytes > plan_.peak_bytes)
            report << "  while parameters are packed " << mib(plan_.setup_peak_bytes) << '\n';
        for (std::size_t i = 0; i < largest_.size() && i < 20; ++i)
            report << "  " << name_of_stored(*largest_[i]) << ' ' << mib(largest_[i]->bytes)
                   << " from step " << largest_[i]->first << " to " << largest_[i]->last << '\n';
        plan_.report = report.str();
    }

    void check() const {
        const std::uint64_t most = limit();
        if (plan_.setup_peak_bytes <= most) {
            check_pieces(most);
            return;
        }
        throw TooLarge(cat("the plan needs ", mib(plan_.setup_peak_bytes), at_least(),
                           " (largest: ", largest_users(), "), the ",
                           most < device_.global_bytes ? "memory limit is " : "device has ",
                           mib(most), who_is_first(most)),
                       fitting_batch(most), true);
    }

    /// The three that need most.
    std::string largest_users() const {
        std::vector<std::pair<std::uint64_t, std::string>> users;
        users.reserve(largest_.size());
        for (const Stored* s : largest_)
            users.emplace_back(s->bytes, cat("'", name_of_stored(*s), "'"));
        for (const External& e : plan_.externals)
            users.emplace_back(bytes_of(e), cat("'", e.name, "'"));
        for (const Block& b : plan_.blocks) users.emplace_back(b.bytes, "block " + b.name);
        std::stable_sort(users.begin(), users.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        std::string text;
        for (std::size_t i = 0; i < users.size() && i < 3; ++i)
            text += cat(i ? ", " : "", users[i].second, ' ', mib(users[i].first));
        return text;
    }

    /// What was done to need no more.
    std::string at_least() const {
        if (!options_.recompute_to_fit) return "";
        const auto count = std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                                         [](const Node& node) { return node.again; });
        return count == 0 ? " and recomputing tensors does not help"
                          : cat(" at least, with ", count,
                                count == 1 ? " node that recomputes tensors"
                                           : " nodes that recompute tensors");
    }

    /// The first step whose tensors do not fit, with the largest one that it makes.
    std::string who_is_first(std::uint64_t limit) const {
        const MemoryMap& map = plan_.map;
        for (std::size_t i = 0; i < map.steps.size(); ++i) {
            if (map.steps[i].live_bytes <= limit) continue;
            const MemoryMap::Entry* made = nullptr;
            for (const MemoryMap::Entry& entry : map.entries)
                if (entry.slab >= 0 && entry.first == static_cast<int>(i) &&
                    (made == nullptr || entry.bytes > made->bytes))
                    made = &entry;
            if (made == nullptr) return "";
            return cat("; [", map.steps[i].type, " '", map.steps[i].name, "'] wants ",
                       mib(made->bytes), " for '", made->name, "' while ",
                       mib(map.steps[i].live_bytes - made->bytes), " are live");
        }
        return "";
    }

    void draw_map() {
        MemoryMap& map = plan_.map;
        map.slabs = plan_.slabs;
        map.peak_bytes = plan_.peak_bytes;
        map.setup_peak_bytes = plan_.setup_peak_bytes;
        map.persistent_bytes = persistent_;
        map.limit_bytes = limit();
        map.largest_allocation = device_.max_alloc_bytes;
        map.batch = batch();
        map.estimated_batch = fitting_batch(map.limit_bytes).value_or(0);
        for (std::size_t i = 0; i < schedule_.items.size(); ++i) {
            const Item& item = schedule_.items[i];
            const char* const phase = i < schedule_.setup ? "setup" : name_of(item.part);
            map.steps.push_back({item.name, item.type, phase, 0});
        }
        const int end = static_cast<int>(map.steps.size()) - 1;
        using Kind = MemoryMap::Entry::Kind;
        for (const Block& b : plan_.blocks)
            map.entries.push_back({Kind::block, b.name, b.bytes, 0, end, -1, false, 0});
        for (const External& e : plan_.externals) {
            map.entries.push_back({Kind::bound, e.name, bytes_of(e), 0, end, -1, false, 0});
            if (!e.setup_only) continue;
            map.entries.back().first = home_of(e.value).first;
            map.entries.back().last = home_of(e.value).last;
        }
        for (const Stored& s : schedule_.stored)
            if (is_scratch(s))
                map.entries.push_back({s.value == no_value ? Kind::workspace : Kind::scratch,
                                       name_of_stored(s), s.bytes, s.first, s.last, s.place.index,
                                       is_recomputed(s), s.place.offset});
        for (const MemoryMap::Entry& entry : map.entries)
            for (int i = std::max(0, entry.first); i <= std::min(end, entry.last); ++i)
                map.steps[static_cast<std::size_t>(i)].live_bytes += entry.bytes;
    }

    bool is_recomputed(const Stored& s) const {
        const NodeId maker = s.value == no_value ? -1 : graph_.value(s.value).producer;
        return maker >= 0 && graph_.nodes[static_cast<std::size_t>(maker)].again;
    }

    /// The most bytes needed at once by parameters that only setup reads.
    std::uint64_t most_in_setup() const {
        std::uint64_t most = 0;
        for (int i = 0; i < static_cast<int>(schedule_.setup); ++i) {
            std::uint64_t bytes = 0;
            for (const External& e : plan_.externals) {
                const Stored& s = home_of(e.value);
                if (e.setup_only && s.first <= i && i <= s.last) bytes += bytes_of(e);
            }
            most = std::max(most, bytes);
        }
        return most;
    }

    std::uint64_t bytes_of(const External& external) const {
        const TensorSpec& spec = graph_.spec(external.value);
        return storage_bytes(spec.shape, spec.dtype, external.layout);
    }

    std::int64_t batch() const {
        std::int64_t batch = 0;
        for (ValueId input : graph_.inputs)
            if (graph_.shape(input).rank() > 0) batch = std::max(batch, graph_.shape(input)[0]);
        return batch;
    }

    bool grows_with_batch(ValueId value) const {
        return graph_.shape(value).rank() > 0 && graph_.shape(value)[0] == batch();
    }

    /// Calls f(bytes, what returns the name, whether it grows with the batch) for everything that
    /// needs one allocation.
    template <typename F>
    void for_each_piece(F&& f) const {
        for (const Stored& s : schedule_.stored)
            if (is_scratch(s))
                f(
                    s.bytes, [&] { return name_of_stored(s); },
                    s.value == no_value || grows_with_batch(s.value));
        for (const External& e : plan_.externals)
            f(
                bytes_of(e), [&] { return e.name; }, grows_with_batch(e.value));
    }

    void check_pieces(std::uint64_t limit) const {
        const auto check = [&](std::uint64_t bytes, const auto& name, bool grows) {
            if (bytes > device_.max_alloc_bytes)
                throw TooLarge(
                    cat(name(), " needs ", mib(bytes), " in one allocation, the device allows ",
                        mib(device_.max_alloc_bytes), " per allocation and has ",
                        mib(device_.global_bytes)),
                    grows ? fitting_batch(limit) : std::nullopt, true);
        };
        for_each_piece([&](std::uint64_t bytes, const auto& name, bool grows) {
            check(
                bytes, [&] { return cat("'", name(), "'"); }, grows);
        });
        for (const Stored& s : schedule_.stored)
            if (s.alias < 0 && s.place.kind == Place::Kind::block)
                check(
                    s.bytes, [&] { return cat("'", name_of_stored(s), "'"); }, false);
        for (const Block& b : plan_.blocks)
            check(
                b.bytes, [&] { return cat("the block of ", b.name); }, false);
    }

    /// Scratch, inputs and outputs grow with the batch, and the rest (nearly) does not. Both the
    /// sum and the largest allocation must fit. Nothing if another batch would not help.
    std::optional<std::int64_t> fitting_batch(std::uint64_t limit) const {
        std::uint64_t growing = plan_.slab_bytes, piece = 1;
        for (const External& e : plan_.externals)
            if (grows_with_batch(e.value)) growing += bytes_of(e);
        for_each_piece([&](std::uint64_t bytes, const auto&, bool grows) {
            if (grows) piece = std::max(piece, bytes);
        });
        const std::uint64_t fixed = plan_.setup_peak_bytes - growing;
        if (batch() <= 1 || fixed >= limit) return std::nullopt;
        const double share =
            std::min(static_cast<double>(limit - fixed) / static_cast<double>(growing),
                     static_cast<double>(device_.max_alloc_bytes) / static_cast<double>(piece));
        return static_cast<std::int64_t>(share * static_cast<double>(batch()));
    }

    MemoryPlan& plan_;
    const Traits& device_;
    const Graph& graph_;
    const LaunchSchedule& schedule_;
    const PlanOptions& options_;
    std::uint64_t persistent_ = 0;
    std::vector<const Stored*> largest_;  ///< scratch, the largest first
};

std::string batch_hint(const std::optional<std::int64_t>& batch, bool is_estimate) {
    if (!batch) return "";
    return *batch > 0
               ? cat("; the largest batch that fits is ", is_estimate ? "about " : "", *batch)
               : "; not even one sample fits in a batch";
}

}  // namespace

TooLarge::TooLarge(const std::string& needed, std::optional<std::int64_t> batch, bool is_estimate)
    : Error(ErrorKind::out_of_memory, needed + batch_hint(batch, is_estimate)),
      need(needed),
      largest_batch(batch) {}

bool MemoryMap::fits() const {
    return setup_peak_bytes <= limit_bytes &&
           std::all_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.bytes <= largest_allocation; });
}

void account_for(MemoryPlan& plan, const Traits& device, const Graph& graph,
                 const LaunchSchedule& schedule, const PlanOptions& options) {
    MemoryAccount(plan, device, graph, schedule, options).run();
}

}  // namespace dlprim
