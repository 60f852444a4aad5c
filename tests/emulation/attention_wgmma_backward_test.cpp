// SPDX-License-Identifier: MIT
// Runs the kernels of attention.wgmma_backward, emulated on the host, and compares them with
// attention's gradients in double. It is built once per number of features, mask, and operands:
// KIND, GROUPS, VALUE_STAGES, DEPTH, FEATURES, MASK, CAUSAL, WINDOW, LOWER_RIGHT, SOFTCAP and
// DROPOUT are the kernels' defines.
#include "attention_cases.hpp"

namespace of_queries {
#define OF_KEYS 0
#include "attention/wgmma_backward.inc"
#undef OF_KEYS
}  // namespace of_queries
namespace of_keys {
#define OF_KEYS 1
#include "attention/wgmma_backward.inc"
#undef OF_KEYS
}  // namespace of_keys

/// The gradients of one side, by the kernel of namespace `of`.
#define DIFFERENTIATE(of, rows_of_side, d_keys, lies)                                            \
    run_kernel(                                                                                  \
        ((rows_of_side) + 64 * GROUPS - 1) / (64 * GROUPS) * s.heads, 1, 128 * GROUPS, [&] {     \
            of::attention_wgmma_backward(                                                        \
                bytes(q), 0, bytes(k), 0, bytes(v), 0, bytes(dy), 0, x.mask.data(), 0, &seed, 0, \
                &step, 0, rows.data(), 0, delta.data(), 0, (d_keys).data(), 0, dv.data(), 0,     \
                heads_of<of::Heads>(s, strides, y_lies), depth, 0, 2 * (lies).head, (lies).head, \
                (lies).row, 0, 2 * dv_lies.head, dv_lies.head, dv_lies.row, scale);              \
        })

/// The largest error of all results. in_rows: heads lie in rows of all operands.
static double run(const Sizes& s, bool in_rows) {
    Data x = draw(s);
    const float scale = 1 / std::sqrt(static_cast<float>(depth));
    const uint2 seed{static_cast<uint>(random_key.seed), static_cast<uint>(random_key.seed >> 32)},
        step{static_cast<uint>(random_key.step), 0};
    const Lie q_lies(in_rows, s.heads, s.length, depth),
        y_lies(in_rows, s.heads, s.length, features),
        k_lies(in_rows, s.heads / 2, s.positions, depth),
        v_lies(in_rows, s.heads / 2, s.positions, features),
        dk_lies(in_rows, s.heads, s.positions, depth),
        dv_lies(in_rows, s.heads, s.positions, features);
    const std::vector<ushort> q = stored(x.q, q_lies, KIND), k = stored(x.k, k_lies, KIND),
                              v = stored(x.v, v_lies, KIND), dy = stored(x.dy, y_lies, KIND);
    const Results wanted = exact(s, x, static_cast<double>(scale));
    const Floats rows(wanted.lse.begin(), wanted.lse.end()),
        delta(wanted.delta.begin(), wanted.delta.end());
    Floats dq(q_lies.size(), NAN), dk(dk_lies.size(), NAN), dv(dv_lies.size(), NAN);
    const Strides strides{2 * q_lies.head, q_lies.head, k_lies.head, v_lies.head,
                          q_lies.row,      k_lies.row,  v_lies.row};
    DIFFERENTIATE(of_queries, s.length, dq, q_lies);
    DIFFERENTIATE(of_keys, s.positions, dk, dk_lies);
    dq = q_lies.gathered(dq);
    dk = dk_lies.gathered(dk);
    dv = dv_lies.gathered(dv);
    double largest = 0;
    for (const auto& [name, found, exactly] :
         {std::tuple("dq", &dq, &wanted.dq), {"dk", &dk, &wanted.dk}, {"dv", &dv, &wanted.dv}}) {
        const double error = error_of(*found, *exactly);
        std::printf("%s: relative error %.2g\n", name, error);
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    return largest;
}

int main() {
    return failures(KIND == 2 ? 8e-3 : 1e-3, run) == 0 ? 0 : 1;
}
