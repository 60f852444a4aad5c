// SPDX-License-Identifier: MIT
// normal() on the host. Products and sums must not be contracted, so that it gives the same bits as
// kernels do.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#include "engine/pointwise/philox.hpp"

#include <cstring>

namespace dlprim::pointwise {

float normal_of(std::uint32_t a, std::uint32_t b) {
    const auto bits_of = [](float value) {
        std::int32_t bits;
        std::memcpy(&bits, &value, 4);
        return bits;
    };
    const auto float_of = [](std::int32_t bits) {
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
    };
    // -2 log u of a number u in (0, 1] = m 2^e, with m in [1/sqrt 2, sqrt 2).
    const float u = static_cast<float>(a) * 0x1p-32f + 0x1p-33f;
    const std::int32_t e = (bits_of(u) - 0x3f3504f3) >> 23;
    const float f = float_of(bits_of(u) - e * 0x800000) - 1.0f, ff = f * f;
    float p = 0;
    for (const float c : normal_log) p = p * f + c;
    const auto exponent = static_cast<float>(e);
    const float log_u =
        ((p * f * ff + exponent * -2.12194440e-4f) - 0.5f * ff) + f + exponent * 0.693359375f;
    const float s = -2.0f * log_u;
    // Its root by Newton's method for 1 / sqrt s.
    float r = float_of(0x5f375a86 - (bits_of(s) >> 1));
    for (int step = 0; step < 3; ++step) r = r * (1.5f - 0.5f * s * r * r);
    const float radius = s * r;
    // The cosine of b 2^-32 turns: a quarter, and an angle in [-1/8, 1/8] of a turn around it.
    const std::uint32_t quarter = (b + 0x20000000u) >> 30;
    const float t =
        static_cast<float>(static_cast<std::int32_t>(b - (quarter << 30))) * 1.46291807926716e-9f;
    const float tt = t * t;
    float sine = 0, cosine = 0;
    for (const float c : normal_sine) sine = sine * tt + c;
    for (const float c : normal_cosine) cosine = cosine * tt + c;
    sine = sine * tt * t + t;
    cosine = cosine * tt * tt - 0.5f * tt + 1.0f;
    const float part = (quarter & 1u) != 0 ? sine : cosine;
    return radius * (quarter == 1 || quarter == 2 ? -part : part);
}

}  // namespace dlprim::pointwise
