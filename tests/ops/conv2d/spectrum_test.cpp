// SPDX-License-Identifier: MIT
// A short-time Fourier transform as a convolution on the host, as in detectors of voice: in most of
// its results large terms cancel, and the logarithm shows what is left.
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

constexpr int window = 256, bins = window / 2 + 1, step = 64, samples = 3264;
constexpr double pi = 3.14159265358979323846;

std::vector<float> tone() {
    std::vector<float> sound;
    for (int t = 0; t < samples; ++t)
        sound.push_back(static_cast<float>(0.5 * std::sin(2 * pi * 440 * t / 16000)));
    return sound;
}

/// The real parts' filters, then the imaginary parts', with Hann's window.
std::vector<float> filters() {
    std::vector<float> all;
    for (const bool imaginary : {false, true})
        for (int bin = 0; bin < bins; ++bin)
            for (int t = 0; t < window; ++t) {
                const double angle = 2 * pi * bin * t / window;
                const double hann = 0.5 - 0.5 * std::cos(2 * pi * t / window);
                all.push_back(
                    static_cast<float>(hann * (imaginary ? -std::sin(angle) : std::cos(angle))));
            }
    return all;
}

template <typename T>
double log_magnitude(T real, T imaginary) {
    const double re = static_cast<double>(real), im = static_cast<double>(imaginary);
    return std::log1p(std::sqrt(re * re + im * im) * 1048576);
}

}  // namespace

TEST_CASE("a spectrum keeps what is left where large terms cancel") {
    using namespace dlprim;
    const Context host("cpu");
    const std::vector<float> sound = tone(), basis = filters();
    constexpr int frames = (samples - window) / step + 1;
    Tensor x(host, Shape{1, 1, 1, samples}), w(host, Shape{2 * bins, 1, 1, window});
    x.copy_from_host(sound.data(), sound.size() * sizeof(float));
    w.copy_from_host(basis.data(), basis.size() * sizeof(float));
    const Tensor y = ops::conv2d(x, w, {.stride = {1, step}});
    std::vector<float> made(2 * bins * frames);
    y.copy_to_host(made.data(), made.size() * sizeof(float));
    double worst = 0;
    for (int frame = 0; frame < frames; ++frame)
        for (int bin = 0; bin < bins; ++bin) {
            const auto exact = [&](int filter) {
                double sum = 0;
                for (int t = 0; t < window; ++t)
                    sum +=
                        static_cast<double>(basis[static_cast<std::size_t>(filter * window + t)]) *
                        static_cast<double>(sound[static_cast<std::size_t>(frame * step + t)]);
                return sum;
            };
            const auto at = [&](int filter) {
                return made[static_cast<std::size_t>(filter * frames + frame)];
            };
            worst = std::max(worst, std::abs(log_magnitude(at(bin), at(bins + bin)) -
                                             log_magnitude(exact(bin), exact(bins + bin))));
        }
    INFO(worst);
    CHECK(worst < 0.1);
}
