// SPDX-License-Identifier: MIT
// Metrics: accuracy, top-k, mean IoU, mean absolute error, F1 and perplexity.
#include "train/metrics.hpp"

#include "base/text.hpp"
#include "train/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim {

namespace {

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
}

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
    double value(double) const override {
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
    double value(double) const override {
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
    double value(double) const override {
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
    double value(double) const override {
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

/// Of texts, by the loss alone.
class Perplexity : public Metric {
  public:
    std::string name() const override { return "perplexity"; }
    bool higher_is_better() const override { return false; }
    void add(const Judged&) override {}
    double value(double loss) const override { return std::exp(loss); }
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
    if (name == "perplexity") return std::make_unique<Perplexity>();
    const std::vector<std::string> names{"accuracy", "top5",      "mean_iou", "mean_absolute_error",
                                         "f1",       "perplexity"};
    fail(ErrorKind::invalid_argument, "there is no metric '", name, "'", did_you_mean(name, names),
         "; there are ", join(names, ", "));
}

}  // namespace dlprim
