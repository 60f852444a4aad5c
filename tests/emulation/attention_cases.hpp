// SPDX-License-Identifier: MIT
// What the tests of attention's emulated kernels share: the sizes that are tried, drawn operands,
// attention and its gradients in double, how far results are from these, and kernels' arguments.
// REAL_DEPTH, REAL_FEATURES, PRODUCTS, MASK, CAUSAL, WINDOW, LOWER_RIGHT, SOFTCAP and DROPOUT are
// those of the kernels.
#pragma once

#include "engine/pointwise/philox.hpp"
#include "work_group.hpp"

#include <cstdio>
#include <random>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
constexpr int depth = REAL_DEPTH, features = REAL_FEATURES, planes = PRODUCTS == 3 ? 2 : 1;
constexpr int window = 45;
constexpr double softcap = 3, dropped = DROPOUT ? 0.8 : 0;
constexpr dlprim::pointwise::RandomKey random_key{0x123456789, 7, 5};
#if MASK == 2
using Mask = uchar;
#else
using Mask = float;
#endif

/// Heads share keys and values in pairs.
struct Sizes {
    int heads, length, positions;
};

struct Data {
    Floats q, k, v, dy;
    std::vector<Mask> mask;  // [length, positions]
};

inline std::size_t at(int row, int columns, int column) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
}

inline Data draw(const Sizes& s) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const auto floats = [&](int count) {
        Floats all(static_cast<std::size_t>(count));
        for (float& x : all) x = normal(random);
        return all;
    };
    Data data{floats(s.heads * s.length * depth),
              floats(s.heads / 2 * s.positions * depth),
              floats(s.heads / 2 * s.positions * features),
              floats(s.heads * s.length * features),
              {}};
    data.q[3] = 30;  // a row of other magnitude
    for (int i = 0; i < s.length * s.positions; ++i) {
#if MASK == 2
        data.mask.push_back(i / s.positions != 1 && random() % 3 != 0);  // row 1 has no position
#else
        data.mask.push_back(normal(random));
#endif
    }
    return data;
}

/// y, lse and the gradients, in double.
struct Results {
    Doubles y, lse, delta, dq, dk, dv;
};

inline Results exact(const Sizes& s, const Data& x, double scale) {
    Results made{Doubles(x.dy.size()),
                 Doubles(at(s.heads, s.length, 0)),
                 Doubles(at(s.heads, s.length, 0)),
                 Doubles(x.q.size()),
                 Doubles(at(s.heads * s.positions, depth, 0)),
                 Doubles(at(s.heads * s.positions, features, 0))};
    for (int row = 0; row < s.heads * s.length; ++row) {
        const int head = row / s.length, own = row % s.length, key0 = head / 2 * s.positions;
        const int place = LOWER_RIGHT ? own + s.positions - s.length : own;
        Doubles p(static_cast<std::size_t>(s.positions)), dp(p.size()), slopes(p.size(), 1),
            kept(p.size(), 1);
        double most = -INFINITY, sum = 0;
        for (int j = 0; j < s.positions; ++j) {
            double score = 0;
            for (int d = 0; d < depth; ++d)
                score += static_cast<double>(x.q[at(row, depth, d)]) *
                         static_cast<double>(x.k[at(key0 + j, depth, d)]);
            score *= scale;
            if (SOFTCAP) {
                const double bent = std::tanh(score / softcap);
                slopes[static_cast<std::size_t>(j)] = 1 - bent * bent;
                score = softcap * bent;
            }
            [[maybe_unused]] const Mask mask = x.mask[at(own, s.positions, j)];
            if (MASK == 1) score += static_cast<double>(mask);
            if ((MASK == 2 && mask == 0) || (CAUSAL && j > place) ||
                (WINDOW && j <= place - window))
                score = -INFINITY;
            p[static_cast<std::size_t>(j)] = score;
            most = std::max(most, score);
        }
        for (int j = 0; j < s.positions && DROPOUT; ++j) {
            const float random = dlprim::pointwise::uniform(random_key, at(row, s.positions, j));
            kept[static_cast<std::size_t>(j)] =
                random >= static_cast<float>(dropped) ? 1 / (1 - dropped) : 0;
        }
        for (double& weight : p) sum += weight = std::isinf(most) ? 0 : std::exp(weight - most);
        made.lse[static_cast<std::size_t>(row)] = most + std::log(sum);
        double delta = 0;
        for (int j = 0; j < s.positions; ++j) {
            double& share = p[static_cast<std::size_t>(j)];
            share /= sum == 0 ? 1 : sum;
            const double keeps = kept[static_cast<std::size_t>(j)], weight = share * keeps;
            for (int e = 0; e < features; ++e) {
                const double value = static_cast<double>(x.v[at(key0 + j, features, e)]),
                             dy = static_cast<double>(x.dy[at(row, features, e)]);
                made.y[at(row, features, e)] += weight * value;
                made.dv[at(head * s.positions + j, features, e)] += weight * dy;
                dp[static_cast<std::size_t>(j)] += dy * value * keeps;
            }
            delta += share * dp[static_cast<std::size_t>(j)];
        }
        made.delta[static_cast<std::size_t>(row)] = delta;
        for (int j = 0; j < s.positions; ++j) {
            const double ds = p[static_cast<std::size_t>(j)] *
                              (dp[static_cast<std::size_t>(j)] - delta) * scale *
                              slopes[static_cast<std::size_t>(j)];
            for (int d = 0; d < depth; ++d) {
                made.dq[at(row, depth, d)] += ds * static_cast<double>(x.k[at(key0 + j, depth, d)]);
                made.dk[at(head * s.positions + j, depth, d)] +=
                    ds * static_cast<double>(x.q[at(row, depth, d)]);
            }
        }
    }
    return made;
}

/// The relative L2 error. Infinities must be the same.
inline double error_of(const Floats& found, const Doubles& wanted) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (std::isinf(wanted[i]) && static_cast<double>(found[i]) == wanted[i]) continue;
        const double d = static_cast<double>(found[i]) - wanted[i];
        error += d * d;
        size += wanted[i] * wanted[i];
    }
    return std::sqrt(error / size);
}

/// Of q, k and v: from pair to pair of heads of q, k and v, from head to head of q, and from row to
/// row, where the kernel reads these.
struct Strides {
    long q, own_q, k, v, q_row = 0, k_row = 0, v_row = 0;
};

/// Where the workspace has everything, as src/ops/attention/packed.cpp plans it.
struct Places {
    explicit Places(const Sizes& s)
        : q_blocks((s.length + 63) / 64),
          k_blocks((s.positions + 63) / 64),
          q_groups(s.heads * q_blocks),
          k_groups(s.heads / 2 * k_blocks) {
        constexpr long block = planes * 64 * 2;
        k_planes = q_groups * block * DEPTH;
        v_planes = k_planes + k_groups * block * DEPTH;
        dy_planes = v_planes + k_groups * block * FEATURES;
        q_factors = dy_planes + q_groups * block * FEATURES;
        k_factors = q_factors + q_groups * 4;
        v_factors = k_factors + k_groups * 4;
        dy_factors = v_factors + k_groups * 4;
        bytes = dy_factors + q_groups * 4;
    }
    /// Of q, k and v from pair to pair of heads, in blocks, and from head to head of q.
    Strides strides() const { return {2 * q_blocks, q_blocks, k_blocks, k_blocks}; }

    int q_blocks, k_blocks, q_groups, k_groups;
    long k_planes, v_planes, dy_planes, q_factors, k_factors, v_factors, dy_factors, bytes;
};

/// Where the heads and rows of an operand lie: beside each other, or as heads in the rows of a
/// packed projection.
struct Lie {
    Lie(bool in_rows, int heads, int rows, int columns)
        : heads(heads),
          rows(rows),
          columns(columns),
          head(in_rows ? columns : rows * columns),
          row(in_rows ? 3 * heads * columns : columns) {}
    int heads, rows, columns;
    long head, row;

    std::size_t size() const {
        return static_cast<std::size_t>(std::max(head * heads, row * rows));
    }
    Floats placed(const Floats& plain) const {
        Floats all(size(), NAN);
        visit([&](std::size_t place, std::size_t i) { all[place] = plain[i]; });
        return all;
    }
    Floats gathered(const Floats& all) const {
        Floats plain(at(heads * rows, columns, 0));
        visit([&](std::size_t place, std::size_t i) { plain[i] = all[place]; });
        return plain;
    }

  private:
    template <class Visit>
    void visit(Visit f) const {
        for (int i = 0; i < heads * rows * columns; ++i)
            f(static_cast<std::size_t>(i / columns / rows * head + i / columns % rows * row +
                                       i % columns),
              static_cast<std::size_t>(i));
    }
};

/// An operand as a kernel of 16 bits reads it. `x` is rounded to what it is.
inline std::vector<ushort> stored(Floats& x, const Lie& lies, int kind) {
    std::vector<ushort> bits;
    for (float& v : x) v = float_of_kind(kind == 2 ? bfloat_of(v) : half_of(v), kind);
    for (const float v : lies.placed(x))
        bits.push_back(static_cast<ushort>(kind == 2 ? bfloat_of(v) : half_of(v)));
    return bits;
}
inline const uchar* bytes(const std::vector<ushort>& x) {
    return reinterpret_cast<const uchar*>(x.data());
}

template <class Heads>
Heads heads_of(const Sizes& s, const Strides& strides, const Lie& y) {
    // The last digit counts the heads of a pair.
    return {s.length,
            s.positions,
            features,
            s.heads,
            s.heads / 2,
            2,
            window,
            static_cast<float>(softcap * 1.4426950408889634),
            static_cast<float>(dropped),
            static_cast<float>(1 / (1 - dropped)),
            static_cast<int>(random_key.id),
            0,
            strides.q,
            strides.own_q,
            strides.q_row,
            0,
            strides.k,
            0,
            strides.k_row,
            0,
            strides.v,
            0,
            strides.v_row,
            0,
            2 * y.head,
            y.head,
            y.row,
            0,
            0,
            0,
            s.positions,
            1};
}

/// Tiles that are not full, several of them, fewer positions than queries and more. Beyond a window
/// there are tiles to skip.
inline std::vector<Sizes> sizes_to_try() {
    std::vector<Sizes> all{{2, 70, 90}, {4, 5, 3}, {2, 130, 40}};
    if (WINDOW) all.push_back({2, 200, 210});
    return all;
}

/// Runs `error_for`, which returns the largest error, for these sizes and every order of copies and
/// products, and in turns for heads beside each other and in rows. Returns how many errors are
/// above the bound.
template <class Run>
int failures(double bound, const Run& error_for) {
    int failed = 0;
    for (const Sizes& s : sizes_to_try())
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const bool bad = !(error_for(s, order % 2 != 0) <= bound);
            std::printf("%s %d heads, %d queries, %d positions, %s\n", bad ? "FAILED" : "ok",
                        s.heads, s.length, s.positions, when);
            failed += bad;
        }
    return failed;
}
