// SPDX-License-Identifier: MIT
// Runs the kernel of attention.wgmma, emulated on the host, and compares it with attention in
// double. It is built once per number of features, mask, and operands: KIND, GROUPS, STAGES, DEPTH,
// FEATURES, MASK, CAUSAL, WINDOW, LOWER_RIGHT, SOFTCAP, DROPOUT and PRODUCTS are the kernel's
// defines.
#include "attention_cases.hpp"

namespace packing {
#include "attention/pack.inc"
}
namespace forward {
#include "attention/wgmma.inc"
}

/// The largest error of both results. in_rows: heads lie in rows of all operands.
static double run(const Sizes& s, bool in_rows) {
    Data x = draw(s);
    const float scale = 1 / std::sqrt(static_cast<float>(depth));
    const uint2 seed{static_cast<uint>(random_key.seed), static_cast<uint>(random_key.seed >> 32)},
        step{static_cast<uint>(random_key.step), 0};
    const int groups = (s.length + 64 * GROUPS - 1) / (64 * GROUPS) * s.heads;
    const Lie q_lies(in_rows, s.heads, s.length, depth),
        y_lies(in_rows, s.heads, s.length, features),
        k_lies(in_rows, s.heads / 2, s.positions, depth),
        v_lies(in_rows, s.heads / 2, s.positions, features);
    Floats y(y_lies.size(), NAN), lse(at(s.heads, s.length, 0), NAN);
#if KIND
    const std::vector<ushort> q = stored(x.q, q_lies, KIND), k = stored(x.k, k_lies, KIND),
                              v = stored(x.v, v_lies, KIND);
    const Strides strides{2 * q_lies.head, q_lies.head, k_lies.head, v_lies.head,
                          q_lies.row,      k_lies.row,  v_lies.row};
#define OPERANDS bytes(q), 0, bytes(k), 0, bytes(v), 0, 0, 0, 0, 0, 0
#else
    const Places places(s);
    const Strides strides = places.strides();
    std::vector<uint4> workspace(static_cast<std::size_t>(places.bytes / 16 + 1));
    auto* const to = reinterpret_cast<uchar*>(workspace.data());
    const Floats q = q_lies.placed(x.q), k = k_lies.placed(x.k), v = v_lies.placed(x.v);
    run_kernel(places.q_groups + 2 * places.k_groups, 1, 256, [&] {
        packing::attention_pack(
            q.data(), 0, k.data(), 0, v.data(), 0, x.dy.data(), 0, to, 0, s.length, s.positions,
            depth, features, places.q_groups, places.k_groups, places.k_groups, s.heads / 2, 2, 0,
            2 * q_lies.head, q_lies.head, q_lies.row, s.heads / 2, 1, 0, k_lies.head, 0, k_lies.row,
            s.heads / 2, 1, 0, v_lies.head, 0, v_lies.row, 1, 1, 0, 0, 0, 0, places.k_planes,
            places.v_planes, places.dy_planes, places.q_factors, places.k_factors, places.v_factors,
            places.dy_factors);
    });
#define OPERANDS                                                                               \
    to, 0, to, 0, to, 0, places.k_planes, places.v_planes, places.q_factors, places.k_factors, \
        places.v_factors
#endif
    run_kernel(groups, 1, 128 * GROUPS, [&] {
        forward::attention_wgmma(OPERANDS, x.mask.data(), 0, &seed, 0, &step, 0, y.data(), 0,
                                 lse.data(), 0, heads_of<forward::Heads>(s, strides, y_lies), depth,
                                 scale * 1.44269504f);
    });
    y = y_lies.gathered(y);
    const Results wanted = exact(s, x, static_cast<double>(scale));
    double largest = 0;
    for (const auto& [name, found, exactly] :
         {std::tuple("y", &y, &wanted.y), {"lse", &lse, &wanted.lse}}) {
        const double error = error_of(*found, *exactly);
        std::printf("%s: relative error %.2g\n", name, error);
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    return largest;
}

int main() {
    return failures(PRODUCTS == 3 ? 2e-6 : KIND == 2 ? 8e-3 : 1e-3, run) == 0 ? 0 : 1;
}
