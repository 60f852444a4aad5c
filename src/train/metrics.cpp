// SPDX-License-Identifier: MIT
// Metrics: accuracy, top-k, mean IoU, mean absolute error and F1.
#include "train/metrics.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim {

namespace {

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
}

/// Scores of classes for each target. In images [N, C, ...] the scores of a place lie a plane
/// apart; otherwise they lie side by side.
class Scores {
  public:
    explicit Scores(const Judged& batch) : batch_(batch) {
        const auto targets = static_cast<std::int64_t>(batch.classes.size());
        const auto outputs = static_cast<std::int64_t>(batch.outputs.size());
        require(targets > 0 && outputs % targets == 0, "outputs of shape ", batch.shape.str(),
                " cannot be judged by ", targets, " class numbers");
        classes_ = outputs / targets;
        if (batch.shape.rank() > 2 && batch.shape[1] == classes_)
            places_ = batch.shape.numel() / batch.shape[0] / classes_;
    }
    std::int64_t classes() const { return classes_; }
    std::int32_t label(std::int64_t target) const {
        return batch_.classes[static_cast<std::size_t>(target)];
    }
    /// Whether the target is judged at all.
    bool counts(std::int64_t target) const { return label(target) != batch_.ignored; }
    std::int64_t targets() const { return static_cast<std::int64_t>(batch_.classes.size()); }
    /// The class with the largest score, of equal ones the first.
    std::int64_t best(std::int64_t target) const {
        const float* scores = of(target);
        std::int64_t best = 0;
        for (std::int64_t c = 1; c < classes_; ++c)
            if (scores[best * places_] < scores[c * places_]) best = c;
        return best;
    }
    /// How many classes come before the target's own when scores are sorted.
    std::int64_t rank(std::int64_t target) const {
        const std::int64_t own = label(target);
        if (own < 0 || own >= classes_) return classes_;
        const float* scores = of(target);
        const float own_score = scores[own * places_];
        std::int64_t before = 0;
        for (std::int64_t c = 0; c < classes_; ++c) {
            const float score = scores[c * places_];
            before += score > own_score || (score == own_score && c < own);
        }
        return before;
    }

  private:
    /// The score of class 0, from which the others follow in steps of places_.
    const float* of(std::int64_t target) const {
        const std::int64_t example = target / places_, place = target % places_;
        return batch_.outputs.data() + example * classes_ * places_ + place;
    }

    const Judged& batch_;
    std::int64_t classes_ = 0, places_ = 1;
};

/// sums: how many were right, how many there were.
class TopK : public Metric {
  public:
    explicit TopK(int k) : k_(k) {}
    std::string name() const override { return k_ == 1 ? "accuracy" : cat("top", k_); }
    void add(const Judged& batch) override {
        const Scores scores(batch);
        std::int64_t right = 0, judged = 0;
        for (std::int64_t i = 0; i < scores.targets(); ++i) {
            if (!scores.counts(i)) continue;
            right += k_ == 1 ? scores.best(i) == scores.label(i) : scores.rank(i) < k_;
            ++judged;
        }
        std::vector<double>& all = sums(2);
        all[0] += static_cast<double>(right);
        all[1] += static_cast<double>(judged);
    }
    double value() const override {
        return Metric::sums().empty() ? ratio(0, 0) : ratio(Metric::sums()[0], Metric::sums()[1]);
    }

  private:
    int k_;
};

/// sums: for each class how often outputs and targets agree on it, and how often at least one of
/// them names it.
class MeanIoU : public Metric {
  public:
    std::string name() const override { return "mean_iou"; }
    void add(const Judged& batch) override {
        const Scores scores(batch);
        std::vector<double>& all = sums(static_cast<std::size_t>(2 * scores.classes()));
        for (std::int64_t i = 0; i < scores.targets(); ++i) {
            if (!scores.counts(i)) continue;
            const std::int64_t label = scores.label(i), found = scores.best(i);
            if (label < 0 || label >= scores.classes()) continue;  // does not count
            if (label == found) ++all[static_cast<std::size_t>(2 * label)];
            ++all[static_cast<std::size_t>(2 * label + 1)];
            if (label != found) ++all[static_cast<std::size_t>(2 * found + 1)];
        }
    }
    double value() const override {
        double sum = 0, classes = 0;
        const std::vector<double>& all = Metric::sums();
        for (std::size_t c = 0; c + 1 < all.size(); c += 2) {
            if (all[c + 1] == 0) continue;
            sum += all[c] / all[c + 1];
            ++classes;
        }
        return ratio(sum, classes);
    }
};

void check_values(const Judged& batch) {
    require(batch.values.size() == batch.outputs.size(), "outputs of shape ", batch.shape.str(),
            " cannot be judged by ", batch.values.size(), " numbers");
}

/// sums: of the differences, and how many there were.
class MeanAbsoluteError : public Metric {
  public:
    std::string name() const override { return "mean_absolute_error"; }
    bool higher_is_better() const override { return false; }
    void add(const Judged& batch) override {
        check_values(batch);
        double sum = 0;
        for (std::size_t i = 0; i < batch.values.size(); ++i)
            sum += std::abs(static_cast<double>(batch.outputs[i]) -
                            static_cast<double>(batch.values[i]));
        std::vector<double>& all = sums(2);
        all[0] += sum;
        all[1] += static_cast<double>(batch.values.size());
    }
    double value() const override {
        return Metric::sums().empty() ? ratio(0, 0) : ratio(Metric::sums()[0], Metric::sums()[1]);
    }
};

/// sums: for each class how often outputs and targets both say yes, and how many yeses there are in
/// both together.
class F1 : public Metric {
  public:
    std::string name() const override { return "f1"; }
    void add(const Judged& batch) override {
        check_values(batch);
        const auto classes = static_cast<std::size_t>(batch.shape.numel() /
                                                      std::max<std::int64_t>(1, batch.shape[0]));
        std::vector<double>& all = sums(2 * classes);
        for (std::size_t i = 0; i < batch.values.size(); ++i) {
            const bool said = batch.outputs[i] > 0.5f, is = batch.values[i] > 0.5f;
            all[2 * (i % classes)] += said && is;
            all[2 * (i % classes) + 1] += static_cast<double>(said) + static_cast<double>(is);
        }
    }
    double value() const override {
        double sum = 0, classes = 0;
        const std::vector<double>& all = Metric::sums();
        for (std::size_t c = 0; c + 1 < all.size(); c += 2) {
            if (all[c + 1] == 0) continue;
            sum += 2 * all[c] / all[c + 1];
            ++classes;
        }
        return ratio(sum, classes);
    }
};

/// The K of "topK"; 0 for any other name.
int top_of(const std::string& name) {
    if (name.rfind("top", 0) != 0 || name.size() < 4 || name.size() > 8) return 0;
    int k = 0;
    for (const char c : name.substr(3)) {
        if (c < '0' || c > '9') return 0;
        k = 10 * k + (c - '0');
    }
    return k;
}

}  // namespace

bool judges_classes(const std::string& name) {
    const std::unique_ptr<Metric> metric = make_metric(name);
    return name != "mean_absolute_error" && name != "f1";
}

std::unique_ptr<Metric> make_metric(const std::string& name) {
    if (name == "accuracy") return std::make_unique<TopK>(1);
    if (const int k = top_of(name); k > 0) return std::make_unique<TopK>(k);
    if (name == "mean_iou") return std::make_unique<MeanIoU>();
    if (name == "mean_absolute_error") return std::make_unique<MeanAbsoluteError>();
    if (name == "f1") return std::make_unique<F1>();
    const std::vector<std::string> names{"accuracy", "top5", "mean_iou", "mean_absolute_error",
                                         "f1"};
    fail(ErrorKind::invalid_argument, "there is no metric '", name, "'", did_you_mean(name, names),
         "; there are ", join(names, ", "));
}

}  // namespace dlprim
