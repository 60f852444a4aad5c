// SPDX-License-Identifier: MIT
// Runs the kernels of attention.matrix and attention.matrix_backward, emulated on the host, and
// compares them with attention and its gradients in double. It is built once per number of
// features, mask, and precision: DEPTH, FEATURES, KEYS, Q_LOCAL, INNER, BACKWARD_ROWS, MASK,
// CAUSAL, WINDOW, LOWER_RIGHT, SOFTCAP, DROPOUT and PRODUCTS are the kernels' defines.
#include "attention_cases.hpp"

namespace packing {
#include "attention/pack.inc"
}
namespace forward {
#include "attention/matrix.inc"
}
namespace of_queries {
#define OF_KEYS 0
#define ROWS BACKWARD_ROWS
#include "attention/backward.inc"
#undef OF_KEYS
}  // namespace of_queries
namespace of_keys {
#define OF_KEYS 1
#define ROWS BACKWARD_ROWS
#include "attention/backward.inc"
#undef OF_KEYS
}  // namespace of_keys

static int tiles_of(int rows) {
    return (rows + BACKWARD_ROWS - 1) / BACKWARD_ROWS;
}

/// The gradients of one side, by kernel `backward` of namespace `of`.
#define DIFFERENTIATE(of, rows_of_side, d_keys, lies)                                             \
    run_kernel(tiles_of(rows_of_side) * s.heads, 1, 2 * BACKWARD_ROWS, [&] {                      \
        of::attention_backward(to, 0, x.mask.data(), 0, &seed, 0, &step, 0, rows.data(), 0,       \
                               delta.data(), 0, (d_keys).data(), 0, dv.data(), 0,                 \
                               heads_of<of::Heads>(s, at.strides(), y_lies), depth, 0,            \
                               2 * (lies).head, (lies).head, (lies).row, 0, 2 * dv_lies.head,     \
                               dv_lies.head, dv_lies.row, at.k_planes, at.v_planes, at.dy_planes, \
                               at.q_factors, at.k_factors, at.v_factors, at.dy_factors, scale);   \
    })

/// The largest error of all results. in_rows: heads lie in rows of all operands.
static double run(const Sizes& s, bool in_rows) {
    const Data x = draw(s);
    const float scale = 1 / std::sqrt(static_cast<float>(depth));
    const Results wanted = exact(s, x, static_cast<double>(scale));
    const Places at(s);
    const uint2 seed{static_cast<uint>(random_key.seed), static_cast<uint>(random_key.seed >> 32)},
        step{static_cast<uint>(random_key.step), 0};
    std::vector<uint4> workspace(static_cast<std::size_t>(at.bytes / 16 + 1));
    auto* const to = reinterpret_cast<uchar*>(workspace.data());
    const Lie q_lies(in_rows, s.heads, s.length, depth),
        y_lies(in_rows, s.heads, s.length, features),
        k_lies(in_rows, s.heads / 2, s.positions, depth),
        v_lies(in_rows, s.heads / 2, s.positions, features),
        dk_lies(in_rows, s.heads, s.positions, depth),
        dv_lies(in_rows, s.heads, s.positions, features);
    const Floats q = q_lies.placed(x.q), k = k_lies.placed(x.k), v = v_lies.placed(x.v),
                 dy = y_lies.placed(x.dy);
    run_kernel(2 * (at.q_groups + at.k_groups), 1, 256, [&] {
        packing::attention_pack(
            q.data(), 0, k.data(), 0, v.data(), 0, dy.data(), 0, to, 0, s.length, s.positions,
            depth, features, at.q_groups, at.k_groups, at.k_groups, s.heads / 2, 2, 0,
            2 * q_lies.head, q_lies.head, q_lies.row, s.heads / 2, 1, 0, k_lies.head, 0, k_lies.row,
            s.heads / 2, 1, 0, v_lies.head, 0, v_lies.row, s.heads / 2, 2, 0, 2 * y_lies.head,
            y_lies.head, y_lies.row, at.k_planes, at.v_planes, at.dy_planes, at.q_factors,
            at.k_factors, at.v_factors, at.dy_factors);
    });
    Floats y(y_lies.size(), NAN), lse(wanted.lse.size(), NAN), dq(q_lies.size(), NAN),
        dk(dk_lies.size(), NAN), dv(dv_lies.size(), NAN);
    run_kernel(at.q_blocks * s.heads, 1, 128, [&] {
        forward::attention_matrix(to, 0, x.mask.data(), 0, &seed, 0, &step, 0, y.data(), 0,
                                  lse.data(), 0, heads_of<forward::Heads>(s, at.strides(), y_lies),
                                  at.k_planes, at.v_planes, at.q_factors, at.k_factors,
                                  at.v_factors, scale * 1.44269504f);
    });
    const Floats rows(wanted.lse.begin(), wanted.lse.end()),
        delta(wanted.delta.begin(), wanted.delta.end());
    DIFFERENTIATE(of_queries, s.length, dq, q_lies);
    DIFFERENTIATE(of_keys, s.positions, dk, dk_lies);
    y = y_lies.gathered(y);
    dq = q_lies.gathered(dq);
    dk = dk_lies.gathered(dk);
    dv = dv_lies.gathered(dv);
    double largest = 0;
    for (const auto& [name, found, exactly] : {std::tuple("y", &y, &wanted.y),
                                               {"lse", &lse, &wanted.lse},
                                               {"dq", &dq, &wanted.dq},
                                               {"dk", &dk, &wanted.dk},
                                               {"dv", &dv, &wanted.dv}}) {
        const double error = error_of(*found, *exactly);
        std::printf("%s: relative error %.2g\n", name, error);
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    return largest;
}

int main() {
    return failures(PRODUCTS == 3 ? 2e-6 : 3e-3, run) == 0 ? 0 : 1;
}
