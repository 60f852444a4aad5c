// SPDX-License-Identifier: MIT
// Mixup and the targets that it needs.
#include "train/data/mixup.hpp"

#include "base/text.hpp"
#include "train/data/loader.hpp"
#include "train/data/random.hpp"

#include <cmath>

namespace dlprim {

namespace {

/// Numbers of one batch, four words at a time.
class MixupRandom {
  public:
    MixupRandom(std::uint64_t seed, const Batch& batch) : seed_(seed), batch_(batch) {}
    std::uint32_t word() {
        if (at_ % 4 == 0)
            words_ = data_random(seed_, static_cast<std::uint64_t>(batch_.epoch), batch_.number,
                                 RandomUse::mixing, at_ / 4);
        return words_[at_++ % 4];
    }
    /// Above 0 and below 1.
    double uniform() { return (word() + 0.5) * 0x1p-32; }

  private:
    std::uint64_t seed_;
    const Batch& batch_;
    std::uint32_t at_ = 0;
    std::array<std::uint32_t, 4> words_{};
};

/// A number of the gamma distribution of shape `alpha` (Marsaglia and Tsang, 2000), as a logarithm,
/// since it may be smaller than any double.
double log_gamma_number(MixupRandom& random, double alpha) {
    const double less = alpha < 1 ? std::log(random.uniform()) / alpha : 0;
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        const std::uint32_t first = random.word(), second = random.word();
        const double x = normals_from_bits(first, second)[0];
        const double v = std::pow(1 + c * x, 3);
        if (v > 0 && std::log(random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
            return std::log(d * v) + less;
    }
}

double beta_number(MixupRandom& random, double alpha) {
    const double a = log_gamma_number(random, alpha), b = log_gamma_number(random, alpha);
    return 1 / (1 + std::exp(b - a));
}

void mix_rows(std::vector<float>& values, std::int64_t count, float weight) {
    const std::size_t each = values.size() / static_cast<std::size_t>(count);
    for (std::int64_t i = 0; i < count / 2; ++i) {
        float* const a = values.data() + static_cast<std::size_t>(i) * each;
        float* const b = values.data() + static_cast<std::size_t>(count - 1 - i) * each;
        for (std::size_t k = 0; k < each; ++k) {
            const float x = a[k], y = b[k];
            a[k] = weight * x + (1 - weight) * y;
            b[k] = weight * y + (1 - weight) * x;
        }
    }
}

}  // namespace

void make_one_hot(Batch& batch, std::int64_t classes) {
    batch.targets.assign(static_cast<std::size_t>(batch.count * classes), 0.0f);
    for (std::int64_t i = 0; i < batch.count; ++i) {
        const std::int32_t label = batch.labels[static_cast<std::size_t>(i)];
        if (label < 0 || label >= classes)
            fail(ErrorKind::format, "label ", label, " is no class: there are ", classes);
        batch.targets[static_cast<std::size_t>(i * classes + label)] = 1;
    }
}

void mix_up(Batch& batch, double alpha, std::uint64_t seed) {
    if (batch.count < 2) return;
    MixupRandom random(seed, batch);
    const auto weight = static_cast<float>(beta_number(random, alpha));
    mix_rows(batch.inputs, batch.count, weight);
    mix_rows(batch.targets, batch.count, weight);
}

}  // namespace dlprim
