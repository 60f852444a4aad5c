// SPDX-License-Identifier: MIT
// choose_devices.
#include "api/placement/choose_devices.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

using Choice = std::vector<std::size_t>;
using Memory = std::vector<std::uint64_t>;

/// Where a value is: its first device, the device of the reader through which its gradient last
/// comes back, and a bit for each device that has it.
struct Whereabouts {
    std::uint16_t home = 0, last = 0;
    std::uint32_t holders = 0;
    auto operator<=>(const Whereabouts&) const = default;  // NOLINT(modernize-use-nullptr)
};
/// Of the values that operators to come read, by their index.
using Live = std::map<std::size_t, Whereabouts>;

/// What each operator reads and makes.
class Flow {
  public:
    explicit Flow(const PlacementProblem& problem)
        : problem_(problem), reads_(problem.operators.size()), makes_(problem.operators.size()) {
        for (std::size_t i = 0; i < problem.values.size(); ++i) {
            const PlacementProblem::Value& value = problem.values[i];
            if (value.readers.empty()) continue;
            if (value.maker >= 0) makes_[static_cast<std::size_t>(value.maker)].push_back(i);
            for (const PlacementProblem::Reader& reader : value.readers)
                reads_[reader.op].emplace_back(i, reader.passes);
        }
    }

    /// Runs an operator on a device. Returns the seconds of it and its moves.
    double run(std::size_t op, std::size_t device, Live& live) const {
        const auto place = static_cast<std::uint16_t>(device);
        const std::uint32_t bit = std::uint32_t{1} << device;
        double seconds = problem_.operators[op].seconds[device];
        for (const auto& [index, passes] : reads_[op]) {
            const PlacementProblem::Value& value = problem_.values[index];
            const auto [found, is_first] = live.emplace(index, Whereabouts{place, place, bit});
            Whereabouts& where = found->second;
            const double move =
                problem_.link_seconds + value.bytes / problem_.link_bytes_per_second;
            if ((where.holders & bit) == 0) seconds += move;
            where.holders |= bit;
            if (passes && where.last != place) seconds += move;
            if (passes) where.last = place;
            if (value.readers.back().op == op) live.erase(index);
        }
        for (const std::size_t index : makes_[op]) live[index] = {place, place, bit};
        return seconds;
    }

  private:
    const PlacementProblem& problem_;
    std::vector<std::vector<std::pair<std::size_t, bool>>> reads_;
    std::vector<std::vector<std::size_t>> makes_;
};

struct Label {
    double seconds = 0, priced = 0;
    Memory memory;
    Live live;
    std::size_t before = 0, device = 0;  ///< the label of the operator before, and the last device
};

/// Whether the first one is as good in everything, so that the second one can be dropped.
bool is_as_good(const Label& a, const Label& b, bool within_limits) {
    if (!within_limits) return a.priced <= b.priced;
    if (a.seconds > b.seconds) return false;
    for (std::size_t i = 0; i < a.memory.size(); ++i)
        if (a.memory[i] > b.memory[i]) return false;
    return true;
}

bool can_run(const PlacementProblem& problem, const PlacementProblem::Operator& op,
             std::size_t device) {
    return op.seconds[device] < PlacementProblem::never &&
           op.bytes[device] <= problem.limits[device];
}

class Search {
  public:
    explicit Search(const PlacementProblem& problem)
        : problem_(problem),
          flow_(problem),
          prices_(problem.devices.size()),
          binds_(problem.devices.size()) {
        for (std::size_t d = 0; d < binds_.size(); ++d) {
            std::uint64_t all = 0;
            for (const auto& op : problem_.operators)
                if (can_run(problem_, op, d)) all += op.bytes[d];
            binds_[d] = all > problem_.limits[d];
        }
    }

    std::optional<PlacementChoice> run() {
        take(pass(false), true);
        for (int i = 0; i < price_rounds && !is_settled(); ++i) {
            raise_prices();
            take(pass(false), true);
        }
        if (!is_settled()) {
            take(pass(true), false);
            if (best_ && exact_) least_ = best_->seconds;
        }
        if (best_) {
            best_->optimal = is_settled();
            best_->least_seconds = std::min(least_, best_->seconds);
        }
        return best_;
    }

  private:
    static constexpr int price_rounds = 60;

    bool is_settled() const { return best_ && best_->seconds <= least_ * (1 + 1e-12); }

    /// The choice of the least time, or without limits of the least priced time; nothing if no
    /// label is left.
    std::optional<Label> pass(bool within_limits) {
        exact_ = true;
        steps_.assign(1, {Label{0, 0, Memory(prices_.size()), {}, 0, 0}});
        for (std::size_t op = 0; op < problem_.operators.size(); ++op) {
            std::vector<Label> next;
            for (std::size_t i = 0; i < steps_.back().size(); ++i)
                for (std::size_t d = 0; d < prices_.size(); ++d)
                    extend(next, i, op, d, within_limits);
            keep_best(next, within_limits);
            if (next.empty()) return std::nullopt;
            steps_.push_back(std::move(next));
        }
        const auto key = [&](const Label& label) {
            return within_limits ? label.seconds : label.priced;
        };
        return *std::min_element(steps_.back().begin(), steps_.back().end(),
                                 [&](const Label& a, const Label& b) { return key(a) < key(b); });
    }

    void extend(std::vector<Label>& next, std::size_t index, std::size_t op, std::size_t device,
                bool within_limits) const {
        const PlacementProblem::Operator& what = problem_.operators[op];
        if (!can_run(problem_, what, device)) return;
        Label label = steps_.back()[index];
        if (binds_[device]) label.memory[device] += what.bytes[device];
        if (within_limits && label.memory[device] > problem_.limits[device]) return;
        const double seconds = flow_.run(op, device, label.live);
        label.seconds += seconds;
        label.priced += seconds + prices_[device] * static_cast<double>(what.bytes[device]);
        label.before = index;
        label.device = device;
        next.push_back(std::move(label));
    }

    void keep_best(std::vector<Label>& labels, bool within_limits) {
        std::stable_sort(labels.begin(), labels.end(),
                         [](const Label& a, const Label& b) { return a.priced < b.priced; });
        std::map<Live, std::vector<const Label*>> kept;
        std::vector<Label> best;
        best.reserve(std::min(labels.size(), problem_.most_labels));  // pointers stay
        for (Label& label : labels) {
            std::vector<const Label*>& like = kept[label.live];
            if (std::any_of(like.begin(), like.end(), [&](const Label* other) {
                    return is_as_good(*other, label, within_limits);
                }))
                continue;
            if (best.size() == problem_.most_labels) {
                exact_ = false;
                break;
            }
            best.push_back(std::move(label));
            like.push_back(&best.back());
        }
        labels = std::move(best);
    }

    Choice choice_of(const Label& last) const {
        Choice choice(problem_.operators.size());
        const Label* label = &last;
        for (std::size_t op = choice.size(); op-- > 0;) {
            choice[op] = label->device;
            label = &steps_[op][label->before];
        }
        return choice;
    }

    /// Takes the choice if it is within the limits and the best so far. If it is the one of the
    /// least priced time, it bounds the time of all others.
    void take(const std::optional<Label>& label, bool bounds) {
        if (!label) return;
        const Choice choice = choice_of(*label);
        memory_.assign(prices_.size(), 0);
        for (std::size_t op = 0; op < choice.size(); ++op)
            memory_[choice[op]] += problem_.operators[op].bytes[choice[op]];
        bool fits = true;
        double bound = label->priced;
        for (std::size_t d = 0; d < prices_.size(); ++d) {
            fits = fits && memory_[d] <= problem_.limits[d];
            bound -= prices_[d] * static_cast<double>(problem_.limits[d]);
        }
        if (bounds && exact_) least_ = std::max(least_, bound);
        if (fits && (!best_ || label->seconds < best_->seconds))
            best_ = PlacementChoice{choice, label->seconds, 0, false};
    }

    /// A step of the subgradient method, as long as the bound is from the best choice (Polyak). In
    /// the place of one that is not known yet stands the slowest.
    void raise_prices() {
        double goal = 0, square = 0;
        for (const auto& op : problem_.operators) {
            double slowest = 0;
            for (const double seconds : op.seconds)
                if (seconds < PlacementProblem::never) slowest = std::max(slowest, seconds);
            goal += slowest;
        }
        if (best_) goal = best_->seconds;
        std::vector<double> over;
        for (std::size_t d = 0; d < prices_.size(); ++d) {
            over.push_back(static_cast<double>(memory_[d]) -
                           static_cast<double>(problem_.limits[d]));
            if (prices_[d] == 0 && over[d] < 0) over[d] = 0;
            square += over[d] * over[d];
        }
        if (square == 0) return;
        const double step = std::max(goal - least_, goal * 1e-3) / square;
        for (std::size_t d = 0; d < prices_.size(); ++d)
            prices_[d] = std::max(0.0, prices_[d] + step * over[d]);
    }

    const PlacementProblem& problem_;
    const Flow flow_;
    std::vector<double> prices_;  ///< seconds a byte
    std::vector<char> binds_;     ///< whether the limit is below what all operators need
    std::vector<std::vector<Label>> steps_;
    Memory memory_;  ///< of the last choice
    double least_ = 0;
    bool exact_ = true;  ///< whether the last pass dropped no label for the number of them
    std::optional<PlacementChoice> best_;
};

std::string in_bytes(std::uint64_t bytes) {
    return cat(bytes, " bytes (", bytes >> 20, " MiB)");
}

void check_each_fits(const PlacementProblem& problem) {
    for (const PlacementProblem::Operator& op : problem.operators) {
        std::string why;
        bool fits = false;
        for (std::size_t d = 0; d < problem.devices.size(); ++d) {
            fits = fits || can_run(problem, op, d);
            if (op.bytes[d] <= problem.limits[d]) continue;
            why += cat(why.empty() ? ": it needs " : ", and ", in_bytes(op.bytes[d]),
                       " on device '", problem.devices[d], "', ",
                       in_bytes(op.bytes[d] - problem.limits[d]), " more than that may use");
        }
        if (!fits)
            fail(ErrorKind::out_of_memory, "operator '", op.name, "' fits on no device", why,
                 ". A smaller batch or a larger device would help");
    }
}

[[noreturn]] void fail_together(const PlacementProblem& problem) {
    std::uint64_t least = 0, all = 0;
    for (const PlacementProblem::Operator& op : problem.operators) {
        std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
        for (std::size_t d = 0; d < problem.devices.size(); ++d)
            if (can_run(problem, op, d)) bytes = std::min(bytes, op.bytes[d]);
        least += bytes;
    }
    for (const std::uint64_t limit : problem.limits) all += limit;
    const std::string what = cat("the network does not fit on '", join(problem.devices, "', '"),
                                 "' together: its operators need ", in_bytes(least));
    if (least > all)
        fail(ErrorKind::out_of_memory, what, ", ", in_bytes(least - all),
             " more than they may use. A smaller batch or larger devices would help");
    fail(ErrorKind::out_of_memory, what,
         ", and no way was found to spread them within the limit of each. A smaller batch, or "
         "naming devices of some operators by hand, would help");
}

}  // namespace

PlacementChoice choose_devices(const PlacementProblem& problem) {
    constexpr std::size_t most = 8 * sizeof(Whereabouts::holders);
    require(problem.devices.size() <= most, "operators can be placed on ", most,
            " devices at most, and there are ", problem.devices.size());
    check_each_fits(problem);
    std::optional<PlacementChoice> choice = Search(problem).run();
    if (!choice) fail_together(problem);
    return std::move(*choice);
}

double seconds_of(const PlacementProblem& problem, const std::vector<std::size_t>& devices) {
    const Flow flow(problem);
    Live live;
    double seconds = 0;
    for (std::size_t op = 0; op < devices.size(); ++op) seconds += flow.run(op, devices[op], live);
    return seconds;
}

}  // namespace dlprim
