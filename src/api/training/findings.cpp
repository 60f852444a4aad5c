// SPDX-License-Identifier: MIT
// Findings.
#include "api/training/findings.hpp"

#include "api/report/page.hpp"
#include "base/text.hpp"
#include "train/scores.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace dlprim {

namespace {

using FindingsJson = nlohmann::ordered_json;

constexpr std::int64_t most_classes = 1024;     ///< of which all confusions are counted
constexpr std::size_t most_shown_classes = 40;  ///< in a matrix
constexpr std::size_t most_pairs = 15;
constexpr std::size_t most_points = 1500;
constexpr std::size_t most_labels = 200;

std::string class_name(const std::vector<std::string>& names, std::size_t index) {
    return index < names.size() ? names[index] : cat(index);
}

/// The probabilities of a target's classes: scores may be these, their logarithms, or logits.
std::vector<double> probabilities(const Scores& scores, std::int64_t target) {
    std::vector<double> p(static_cast<std::size_t>(scores.classes()));
    double least = 0, most = -INFINITY, sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c) {
        p[c] = scores.score(target, static_cast<std::int64_t>(c));
        least = std::min(least, p[c]);
        most = std::max(most, p[c]);
        sum += p[c];
    }
    if (least >= 0 && std::abs(sum - 1) < 1e-3) return p;
    sum = 0;
    for (double& value : p) sum += value = std::exp(value - most);
    for (double& value : p) value /= sum;
    return p;
}

}  // namespace

void Findings::restart() {
    *this = Findings(kind_, most_);
}

void Findings::add_mistake(Mistake mistake) {
    const auto before = [](const Mistake& a, const Mistake& b) {
        return std::make_tuple(-a.wrong, a.index) < std::make_tuple(-b.wrong, b.index);
    };
    if (!std::isfinite(mistake.wrong)) mistake.wrong = 1e300;
    if (mistakes_.size() == most_ && (most_ == 0 || !before(mistake, mistakes_.back()))) return;
    if (mistakes_.size() == most_) mistakes_.pop_back();
    mistakes_.insert(std::upper_bound(mistakes_.begin(), mistakes_.end(), mistake, before),
                     std::move(mistake));
}

void Findings::add(std::span<const float> outputs, const Shape& shape, const Targets& targets) {
    if (targets.examples == 0) return;
    examples_ += targets.examples;
    if (kind_ == TargetKind::values)
        add_values(outputs, targets);
    else
        add_classes(outputs, shape, targets);
}

void Findings::add_classes(std::span<const float> outputs, const Shape& shape,
                           const Targets& targets) {
    const Judged batch{outputs, shape, targets.classes, targets.values, targets.ignored};
    const Scores scores(batch);
    classes_ = scores.classes();
    const bool counted = classes_ <= most_classes;
    if (counted) counts_.resize(static_cast<std::size_t>(classes_ * classes_));
    const std::int64_t places = scores.targets() / targets.examples;
    std::vector<std::int32_t> found(static_cast<std::size_t>(places));
    for (std::int64_t example = 0; example < targets.examples; ++example) {
        std::int64_t wrong = 0, known = 0;
        for (std::int64_t i = 0; i < places; ++i) {
            const std::int64_t at = example * places + i, label = scores.label(at);
            const std::int64_t best = scores.best(at);
            found[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(best);
            if (!scores.counts(at) || label < 0 || label >= classes_) continue;
            ++known;
            wrong += label != best;
            if (counted) ++counts_[static_cast<std::size_t>(label * classes_ + best)];
        }
        if (wrong == 0) continue;
        Mistake mistake;
        mistake.index = targets.indices.at(static_cast<std::size_t>(example));
        if (places > 1) {
            mistake.wrong = static_cast<double>(wrong) / static_cast<double>(known);
            mistake.mask = found;
        } else {
            const std::vector<double> p = probabilities(scores, example);
            mistake.target = scores.label(example);
            mistake.predicted = found[0];
            mistake.output = p[static_cast<std::size_t>(found[0])];
            mistake.wanted = p[static_cast<std::size_t>(mistake.target)];
            mistake.wrong = mistake.output - mistake.wanted;
        }
        add_mistake(std::move(mistake));
    }
}

void Findings::add_values(std::span<const float> outputs, const Targets& targets) {
    const std::size_t each = targets.values.size() / static_cast<std::size_t>(targets.examples);
    require(outputs.size() == targets.values.size(), "there are ", outputs.size(), " outputs for ",
            targets.values.size(), " numbers");
    labels_.resize(each);
    for (std::size_t example = 0; example < static_cast<std::size_t>(targets.examples); ++example) {
        Mistake mistake;
        mistake.index = targets.indices.at(example);
        for (std::size_t i = 0; i < each; ++i) {
            const float target = targets.values[example * each + i];
            const float output = outputs[example * each + i];
            yes_or_no_ = yes_or_no_ && (target == 0 || target == 1);
            const bool yes = output > 0.5f, right = target > 0.5f;
            labels_[i].right_yes += yes && right;
            labels_[i].wrong_yes += yes && !right;
            labels_[i].missed += !yes && right;
            if (points_seen_++ % points_step_ == 0) points_.emplace_back(target, output);
            const double error = std::abs(static_cast<double>(output) - target);
            if (error <= mistake.wrong) continue;
            mistake.wrong = error;
            mistake.target = static_cast<std::int32_t>(i);
            mistake.output = output;
            mistake.wanted = target;
        }
        if (mistake.wrong > 0) add_mistake(std::move(mistake));
        if (points_.size() <= 2 * most_points) continue;
        // Every second one goes, which leaves them evenly spread.
        for (std::size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
        points_.resize((points_.size() + 1) / 2);
        points_step_ *= 2;
    }
}

nlohmann::ordered_json Findings::confusion(const std::vector<std::string>& classes) const {
    const auto size = static_cast<std::size_t>(classes_);
    std::vector<std::int64_t> actual(size), found(size), wrong(size);
    std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> pairs;
    for (std::size_t t = 0; t < size; ++t) {
        for (std::size_t p = 0; p < size; ++p) {
            const std::int64_t count = counts_[t * size + p];
            actual[t] += count;
            found[p] += count;
            if (t == p || count == 0) continue;
            wrong[t] += count;
            wrong[p] += count;
            pairs.emplace_back(-count, t, p);
        }
    }
    std::sort(pairs.begin(), pairs.end());
    if (pairs.size() > most_pairs) pairs.resize(most_pairs);
    FindingsJson result = {{"classes", FindingsJson::array()}};
    for (std::size_t c = 0; c < size; ++c)
        result["classes"].push_back(
            {class_name(classes, c), actual[c], found[c], counts_[c * size + c]});
    std::vector<std::size_t> shown(size);
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    if (size > most_shown_classes) {
        std::stable_sort(shown.begin(), shown.end(),
                         [&](std::size_t a, std::size_t b) { return wrong[a] > wrong[b]; });
        shown.resize(most_shown_classes);
        std::sort(shown.begin(), shown.end());
    }
    result["shown"] = shown;
    result["cells"] = FindingsJson::array();
    for (const std::size_t t : shown) {
        FindingsJson row = FindingsJson::array();
        for (const std::size_t p : shown) row.push_back(counts_[t * size + p]);
        result["cells"].push_back(row);
    }
    result["pairs"] = FindingsJson::array();
    for (const auto& [count, t, p] : pairs) result["pairs"].push_back({t, p, -count});
    return result;
}

nlohmann::ordered_json Findings::labels(const std::vector<std::string>& classes) const {
    FindingsJson list = FindingsJson::array();
    for (std::size_t i = 0; i < labels_.size() && i < most_labels; ++i)
        list.push_back({class_name(classes, i), labels_[i].right_yes, labels_[i].wrong_yes,
                        labels_[i].missed});
    return list;
}

nlohmann::ordered_json Findings::json(const std::vector<std::string>& classes) const {
    FindingsJson result = {{"kind", kind_ == TargetKind::mask    ? "pixels"
                                    : kind_ == TargetKind::label ? "classes"
                                    : is_yes_or_no()             ? "labels"
                                                                 : "numbers"},
                           {"examples", examples_}};
    if (!counts_.empty()) result["confusion"] = confusion(classes);
    if (kind_ != TargetKind::values) return result;
    if (is_yes_or_no()) {
        result["labels"] = labels(classes);
        return result;
    }
    result["points"] = FindingsJson::array();
    for (const auto& [target, output] : points_)
        result["points"].push_back({short_number(target), short_number(output)});
    return result;
}

}  // namespace dlprim
