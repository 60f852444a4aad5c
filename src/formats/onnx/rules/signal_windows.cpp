// SPDX-License-Identifier: MIT
// Constants of signal processing: windows, and the matrix that turns a spectrum into mel bins.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

constexpr std::int64_t most_window_elements = 1 << 24;
const double turn = 8 * std::atan(1.0);

/// Cosines with these factors: of the constant, of one turn along the window, of two turns.
Rule window(std::string_view type, double constant, double first, double second) {
    return {
        type, 17, [=](Call& call) {
            const std::int64_t size = call.known_integer(0, "the window's sizes");
            const bool periodic = call.integer("periodic", 1) != 0;
            const DType dtype = call.type("output_datatype", DType::f32);
            call.check(size >= 0, "a window of ", size, " elements");
            call.supports(size <= most_window_elements, "a window of ", size,
                          " elements is too large");
            call.build.claim({size}, dtype);
            const double step =
                turn / static_cast<double>(std::max<std::int64_t>(periodic ? size : size - 1, 1));
            std::vector<double> values;
            for (std::int64_t i = 0; i < size; ++i) {
                const double angle = static_cast<double>(i) * step;
                values.push_back(constant + first * std::cos(angle) + second * std::cos(2 * angle));
            }
            call.set(0, call.build.constant("", host_numbers({size}, values, dtype)));
        }};
}

double mel_of(double hertz) {
    return 2595 * std::log10(1 + hertz / 700);
}
double hertz_of(double mel) {
    return 700 * (std::pow(10, mel / 2595) - 1);
}

double single(Call& call, int i, std::string_view what) {
    const std::vector<double> values = call.known_numbers(i, what);
    call.check(values.size() == 1, what, " is no single number");
    return values[0];
}

/// Triangles between points that stand at equal steps of mel.
void mel_weights(Call& call) {
    const std::int64_t bins = call.known_integer(0, "num_mel_bins"),
                       length = call.known_integer(1, "dft_length"),
                       rate = call.known_integer(2, "sample_rate");
    const double low = mel_of(single(call, 3, "lower_edge_hertz")),
                 high = mel_of(single(call, 4, "upper_edge_hertz"));
    const DType dtype = call.type("output_datatype", DType::f32);
    call.check(bins >= 1 && length >= 1 && rate >= 1, "num_mel_bins is ", bins, ", dft_length ",
               length, ", sample_rate ", rate);
    const std::int64_t rows = length / 2 + 1;
    call.supports(rows <= most_window_elements / bins, "a matrix of ", rows, " x ", bins,
                  " is too large");
    call.build.claim({rows, bins}, DType::f64);
    std::vector<std::int64_t> points;
    for (std::int64_t i = 0; i < bins + 2; ++i) {
        const double mel =
            low + static_cast<double>(i) * (high - low) / static_cast<double>(bins + 2);
        const double place =
            std::floor(static_cast<double>(length + 1) * hertz_of(mel) / static_cast<double>(rate));
        call.check(place >= 0 && place < static_cast<double>(rows),
                   "a frequency is outside of the spectrum");
        points.push_back(static_cast<std::int64_t>(place));
    }
    std::vector<double> values(static_cast<std::size_t>(rows * bins), 0);
    for (std::int64_t bin = 0; bin < bins; ++bin) {
        const auto at = static_cast<std::size_t>(bin);
        const std::int64_t lower = points[at], center = points[at + 1], upper = points[at + 2];
        const auto weight = [&](std::int64_t row) -> double& {
            return values[static_cast<std::size_t>(row * bins + bin)];
        };
        weight(center) = 1;
        for (std::int64_t row = lower; row < center; ++row)
            weight(row) = static_cast<double>(row - lower) / static_cast<double>(center - lower);
        for (std::int64_t row = center; row < upper; ++row)
            weight(row) = static_cast<double>(upper - row) / static_cast<double>(upper - center);
    }
    call.set(0, call.build.constant("", host_numbers({rows, bins}, values, dtype)));
}

}  // namespace

std::vector<Rule> signal_window_rules() {
    return {
        window("HannWindow", 0.5, -0.5, 0),
        window("HammingWindow", 25.0 / 46, -21.0 / 46, 0),
        window("BlackmanWindow", 0.42, -0.5, 0.08),
        {"MelWeightMatrix", 17, mel_weights},
    };
}

}  // namespace dlprim::onnx
