// SPDX-License-Identifier: MIT
// Pad's options and geometry; see options.hpp.
#include "ops/pad/options.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>

#include <algorithm>
#include <cstring>

namespace dlprim::pad {

Options::Options(const Attrs& attrs, const Shape& input)
    : mode(chosen<PaddedCopy::Mode, &ops::Pad::mode>(attrs)), value(attrs.number("value")) {
    const std::string& name = attrs.text("mode");
    const Ints pads = attrs.ints("pads");
    const auto rank = static_cast<std::size_t>(input.rank());
    constexpr std::int64_t most = std::int64_t{1} << 40;
    require(pads.size() % 2 == 0 && pads.size() <= 2 * rank, "pads has ", pads.size(),
            " entries; it needs two for each padded dimension of input ", input,
            ", the last dimension first");
    before.assign(rank, 0);
    after.assign(rank, 0);
    for (std::size_t i = 0; i < pads.size() / 2; ++i) {
        const std::size_t d = rank - 1 - i;
        before[d] = pads[2 * i];
        after[d] = pads[2 * i + 1];
        const std::int64_t size = input[static_cast<int>(d)];
        require(before[d] > -most && before[d] < most && after[d] > -most && after[d] < most,
                "pads ", before[d], " and ", after[d], " of dimension ", d, " of input ", input,
                " are too large");
        require(size + before[d] + after[d] >= 1, "pads ", before[d], " and ", after[d],
                " leave nothing of dimension ", d, " of input ", input);
        require(mode == PaddedCopy::Mode::constant || (before[d] > -size && after[d] > -size),
                "pads ", before[d], " and ", after[d], " crop all of dimension ", d, " of input ",
                input, ", so that mode ", name, " has nothing to repeat");
        require(mode != PaddedCopy::Mode::reflect || (before[d] < size && after[d] < size), "pads ",
                before[d], " and ", after[d], " are not below the size of dimension ", d,
                " of input ", input, "; mode reflect needs them to be");
        require(mode != PaddedCopy::Mode::circular || (before[d] <= size && after[d] <= size),
                "pads ", before[d], " and ", after[d], " are above the size of dimension ", d,
                " of input ", input, "; mode circular can wrap around only once");
    }
    require(mode == PaddedCopy::Mode::constant || pads.size() <= 6 || is_rotation(), "pads has ",
            pads.size(), " entries; mode ", name, " pads at most the last three dimensions");
}

Shape Options::output_shape(const Shape& input) const {
    Ints sizes = input.to_vector();
    for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] += before[d] + after[d];
    return Shape(sizes);
}

bool Options::is_rotation() const {
    if (mode != PaddedCopy::Mode::circular) return false;
    for (std::size_t d = 0; d < before.size(); ++d)
        if (before[d] + after[d] != 0) return false;
    return true;
}

std::vector<PaddedCopy> copies(const Problem& problem) {
    const Operand& input = problem.inputs[0];
    const Options options(problem.attrs, input.shape);
    PaddedCopy result;
    result.x_sizes = input.shape.to_vector();
    result.y_sizes = problem.outputs[0].shape.to_vector();
    result.before = options.before;
    result.mode = options.mode;
    result.element_bytes = size_of(input.dtype);
    convert(&options.value, DType::f64, &result.fill, input.dtype, 1);
    return {result};
}

Readers::Readers(PaddedCopy::Mode mode, std::int64_t c, std::int64_t before, std::int64_t x_size,
                 std::int64_t y_size) {
    const bool first_one = c == 0, last_one = c == x_size - 1;
    const auto clip = [&](int k, std::int64_t a, std::int64_t b) {
        first[k] = std::clamp<std::int64_t>(a, 0, y_size);
        last[k] = std::clamp<std::int64_t>(b, first[k], y_size);
    };
    const std::int64_t own = c + before;
    if (mode == PaddedCopy::Mode::replicate) {
        clip(0, first_one ? 0 : own, last_one ? y_size : own + 1);
        clip(1, 0, 0);
        clip(2, 0, 0);
    } else if (mode == PaddedCopy::Mode::circular) {
        clip(0, own, own + 1);
        clip(1, own - x_size, own - x_size + 1);
        clip(2, own + x_size, own + x_size + 1);
    } else {
        const std::int64_t left = before - c, right = before + 2 * (x_size - 1) - c;
        clip(0, own, own + 1);
        clip(1, left, first_one ? left : left + 1);
        clip(2, right, last_one ? right : right + 1);
    }
}

}  // namespace dlprim::pad
