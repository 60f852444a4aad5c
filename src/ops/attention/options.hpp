// SPDX-License-Identifier: MIT
// Options of Attention, and which positions they let a query see.
#pragma once

#include "base/schema.hpp"

#include <dlprim/op_options.hpp>
#include <dlprim/shape.hpp>

#include <algorithm>
#include <cmath>

namespace dlprim::attention {

struct Options : ops::Attention {
    /// `scale` is resolved.
    static Options read(const Attrs& attrs, const Shape& q) {
        Options options{dlprim::read<ops::Attention>(attrs)};
        if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<double>(q[-1]));
        return options;
    }
};

/// The positions that queries see: query i stands at position i + offset. What excludes nothing is
/// left out of it. Where sequences lie behind each other, each has places of its own (spans.hpp).
struct Sight {
    std::int64_t length = 0, positions = 0, offset = 0;
    bool causal = false;
    std::int64_t window = 0;  ///< 0: all

    static Sight of(const Options& options, std::int64_t length, std::int64_t positions) {
        Sight sight{length, positions, options.lower_right ? positions - length : 0,
                    options.is_causal, std::max<std::int64_t>(options.sliding_window, 0)};
        if (sight.offset >= positions - 1) sight.causal = false;
        if (sight.window >= length + sight.offset) sight.window = 0;
        return sight;
    }
    /// Of sequences behind each other, the lengths of which are not known: each may be all.
    static Sight of_sequences(const Options& options, std::int64_t length, std::int64_t positions) {
        const std::int64_t window = std::max<std::int64_t>(options.sliding_window, 0);
        return {length, positions, 0, options.is_causal,
                window >= std::max(length, positions) ? 0 : window};
    }
    /// Query i sees the positions [begin(i), end(i)).
    std::int64_t begin(std::int64_t i) const {
        return window > 0 ? std::max<std::int64_t>(i + offset - window + 1, 0) : 0;
    }
    std::int64_t end(std::int64_t i) const {
        return causal ? std::clamp<std::int64_t>(i + offset + 1, 0, positions) : positions;
    }
    bool has_empty_rows() const {
        return (causal && offset < 0) || (window > 0 && begin(length - 1) >= positions);
    }
    /// Pairs of a query and a position that it sees.
    double pairs() const {
        const double all = static_cast<double>(length) * static_cast<double>(positions);
        return (causal ? up_to(offset) : all) - (window > 0 ? up_to(offset - window) : 0);
    }

  private:
    /// Pairs of query i and a position up to i + shift.
    double up_to(std::int64_t shift) const {
        // Sums of the numbers of positions of all queries that see up to n of them.
        const auto sum = [&](std::int64_t n) {
            const auto seen = static_cast<double>(std::clamp<std::int64_t>(n, 0, positions));
            const auto full = static_cast<double>(std::max<std::int64_t>(n - positions, 0));
            return seen * (seen + 1) / 2 + full * static_cast<double>(positions);
        };
        return sum(length + shift) - sum(shift);
    }
};

}  // namespace dlprim::attention
