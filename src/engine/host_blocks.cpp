// SPDX-License-Identifier: MIT
// Kernels for weights in GGUF's blocks on the host. src/base/blocks.cpp has the pictures of the
// types. A block consists of parts of 16 weights, scale * q + offset, of which one or two that
// follow each other share the scale and the offset, as in kernels/matrix/blocks.clh.
#include "engine/host_blocks.hpp"

#include "base/text.hpp"
#include "engine/host_gemm_kernels.hpp"
#include "runtime/host_vector_width.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dlprim {

namespace {

/// GGUF's codes.
enum Code : std::uint32_t {
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    bf16 = 30,
};

#if defined(__x86_64__)

#define DLPRIM_AVX2 __attribute__((target("avx2,fma,f16c")))

template <Code code>
struct Avx2 {
    static constexpr bool floats = code == f16 || code == bf16, large = code >= q4_k && !floats;
    static constexpr int bytes = code == q4_0   ? 18
                                 : code == q4_1 ? 20
                                 : code == q5_0 ? 22
                                 : code == q5_1 ? 24
                                 : code == q8_0 ? 34
                                 : code == q4_k ? 144
                                 : code == q5_k ? 176
                                 : code == q6_k ? 210
                                                : 64;
    static constexpr int parts = large ? 16 : 2;
    static constexpr int shared = code == q6_k ? 1 : 2;  ///< parts with one scale
    static constexpr bool has_offset = !floats && code != q8_0;

    struct Sixteen {
        __m256 low, high;
    };
    struct Scale {
        float scale, offset;
    };

    DLPRIM_AVX2 static float half_at(const std::byte* from) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from, sizeof bits);
        return _cvtsh_ss(bits);
    }
    static int byte_at(const std::byte* from) { return std::to_integer<int>(*from); }
    DLPRIM_AVX2 static __m128i load(const std::byte* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    DLPRIM_AVX2 static __m128i nibbles(const std::byte* from, int shift) {
        return _mm_and_si128(_mm_srli_epi16(load(from), shift), _mm_set1_epi8(15));
    }
    /// 16 where the bit of 16 is set, else 0.
    DLPRIM_AVX2 static __m128i fifth(const std::byte* from) {
        std::int16_t bits = 0;
        std::memcpy(&bits, from, sizeof bits);
        const __m128i spread = _mm_shuffle_epi8(
            _mm_set1_epi16(bits), _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
        const __m128i one = _mm_set1_epi64x(std::int64_t(0x8040201008040201u));
        const __m128i set = _mm_cmpeq_epi8(_mm_and_si128(spread, one), one);
        return _mm_and_si128(set, _mm_set1_epi8(16));
    }
    /// q of a part, of which only q8_0 has signed ones.
    DLPRIM_AVX2 static __m128i numbers(const std::byte* block, int part) {
        const int within = part % 2 * 16, pair = part / 2;
        if constexpr (code == q4_0) return nibbles(block + 2, 4 * part);
        if constexpr (code == q4_1) return nibbles(block + 4, 4 * part);
        if constexpr (code == q5_0)
            return _mm_or_si128(nibbles(block + 6, 4 * part), fifth(block + 2 + 2 * part));
        if constexpr (code == q5_1)
            return _mm_or_si128(nibbles(block + 8, 4 * part), fifth(block + 4 + 2 * part));
        if constexpr (code == q8_0) return load(block + 2 + 16 * part);
        if constexpr (code == q4_k)
            return nibbles(block + 16 + pair / 2 * 32 + within, pair % 2 * 4);
        if constexpr (code == q5_k) {
            const __m128i low = nibbles(block + 48 + pair / 2 * 32 + within, pair % 2 * 4);
            const __m128i bit =
                _mm_and_si128(_mm_srl_epi16(load(block + 16 + within), _mm_cvtsi32_si128(pair)),
                              _mm_set1_epi8(1));
            return _mm_or_si128(low, _mm_slli_epi16(bit, 4));
        }
        if constexpr (code == q6_k) {
            const int side = part / 8, quarter = pair % 4;
            const __m128i low = nibbles(block + side * 64 + part % 4 * 16, quarter / 2 * 4);
            const __m128i two = _mm_and_si128(_mm_srl_epi16(load(block + 128 + side * 32 + within),
                                                            _mm_cvtsi32_si128(2 * quarter)),
                                              _mm_set1_epi8(3));
            return _mm_or_si128(low, _mm_slli_epi16(two, 4));
        }
    }
    DLPRIM_AVX2 static Sixteen part_at(const std::byte* block, int part) {
        if constexpr (floats) {
            const __m128i first = load(block + 32 * part), second = load(block + 32 * part + 16);
            if constexpr (code == f16) return {_mm256_cvtph_ps(first), _mm256_cvtph_ps(second)};
            return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(first), 16)),
                    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(second), 16))};
        } else {
            const __m128i all = numbers(block, part), upper = _mm_unpackhi_epi64(all, all);
            if constexpr (code == q8_0)
                return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(all)),
                        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(upper))};
            return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(all)),
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(upper))};
        }
    }
    DLPRIM_AVX2 static Scale scale_of(const std::byte* block, int group) {
        if constexpr (floats) return {1, 0};
        if constexpr (code == q4_1 || code == q5_1) return {half_at(block), half_at(block + 2)};
        if constexpr (code == q4_k || code == q5_k) {
            const std::byte* packed = block + 4;
            const auto at = [&](int i) { return byte_at(packed + i); };
            const bool first = group < 4;
            const int scale =
                first ? at(group) & 63 : (at(group + 4) & 15) | (at(group - 4) >> 2 & 48);
            const int minimum =
                first ? at(group + 4) & 63 : (at(group + 4) >> 4) | (at(group) >> 2 & 48);
            return {half_at(block) * static_cast<float>(scale),
                    -half_at(block + 2) * static_cast<float>(minimum)};
        }
        if constexpr (code == q6_k) {
            const auto own = static_cast<std::int8_t>(byte_at(block + 192 + group));
            const float scale = half_at(block + 208) * static_cast<float>(own);
            return {scale, -32 * scale};
        }
        const float scale = half_at(block);
        return {scale, code == q4_0 ? -8 * scale : code == q5_0 ? -16 * scale : 0};
    }

    DLPRIM_AVX2 static float dot(std::int64_t weights, const float* x, const std::byte* blocks) {
        __m256 sum = _mm256_setzero_ps(), offsets = sum;
        for (std::int64_t at = 0; at < weights; at += 16 * parts, blocks += bytes)
            _Pragma("GCC unroll 16") for (int group = 0; group < parts / shared; ++group) {
                __m256 products = _mm256_setzero_ps(), inputs = products;
                _Pragma("GCC unroll 2") for (int i = 0; i < shared; ++i) {
                    const float* from = x + at + (group * shared + i) * 16;
                    const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + 8);
                    const Sixteen q = part_at(blocks, group * shared + i);
                    products = _mm256_fmadd_ps(q.low, low, products);
                    products = _mm256_fmadd_ps(q.high, high, products);
                    if (has_offset) inputs = _mm256_add_ps(inputs, _mm256_add_ps(low, high));
                }
                const Scale scale = scale_of(blocks, group);
                if (floats)
                    sum = _mm256_add_ps(sum, products);
                else
                    sum = _mm256_fmadd_ps(_mm256_set1_ps(scale.scale), products, sum);
                if (has_offset)
                    offsets = _mm256_fmadd_ps(_mm256_set1_ps(scale.offset), inputs, offsets);
            }
        sum = _mm256_add_ps(sum, offsets);
        float lanes[8];
        _mm256_storeu_ps(lanes, sum);
        return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
               ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
    DLPRIM_AVX2 static void unpack(std::int64_t weights, const std::byte* blocks, float* to) {
        for (std::int64_t at = 0; at < weights; at += 16 * parts, blocks += bytes)
            _Pragma("GCC unroll 16") for (int part = 0; part < parts; ++part, to += 16) {
                Sixteen w = part_at(blocks, part);
                if constexpr (!floats) {
                    const Scale of = scale_of(blocks, part / shared);
                    const __m256 scale = _mm256_set1_ps(of.scale),
                                 offset = _mm256_set1_ps(of.offset);
                    w = {_mm256_fmadd_ps(w.low, scale, offset),
                         _mm256_fmadd_ps(w.high, scale, offset)};
                }
                _mm256_storeu_ps(to, w.low);
                _mm256_storeu_ps(to + 8, w.high);
            }
    }
    static constexpr HostBlockKernels table{dot, unpack};
};

#endif

/// By the definition, block by block.
template <Code code>
struct Baseline {
    static const GgufType& type() {
        static const GgufType& found = *find_gguf_type(code);
        return found;
    }
    static void unpack(std::int64_t weights, const std::byte* blocks, float* to) {
        for (std::int64_t i = 0; i < weights; i += type().elements, blocks += type().bytes)
            type().unpack(blocks, to + i);
    }
    static float dot(std::int64_t weights, const float* x, const std::byte* blocks) {
        std::array<float, 256> unpacked;
        float sum = 0;
        for (std::int64_t at = 0; at < weights; at += 256) {
            const std::int64_t count = std::min<std::int64_t>(weights - at, 256);
            unpack(count, blocks, unpacked.data());
            blocks += count / type().elements * static_cast<std::int64_t>(type().bytes);
            sum += host_gemm_kernels().dot(count, x + at, unpacked.data());
        }
        return sum;
    }
    static constexpr HostBlockKernels table{dot, unpack};
};

/// The kernels of a type, by its code. Null for a type without kernels.
template <template <Code> class Kernels>
const HostBlockKernels* kernels_of(std::uint32_t code) {
    switch (code) {
        case f16:
            return &Kernels<f16>::table;
        case bf16:
            return &Kernels<bf16>::table;
        case q4_0:
            return &Kernels<q4_0>::table;
        case q4_1:
            return &Kernels<q4_1>::table;
        case q5_0:
            return &Kernels<q5_0>::table;
        case q5_1:
            return &Kernels<q5_1>::table;
        case q8_0:
            return &Kernels<q8_0>::table;
        case q4_k:
            return &Kernels<q4_k>::table;
        case q5_k:
            return &Kernels<q5_k>::table;
        case q6_k:
            return &Kernels<q6_k>::table;
        default:
            return nullptr;
    }
}

}  // namespace

const HostBlockKernels& host_block_kernels(const GgufType& type) {
    const HostBlockKernels* kernels = kernels_of<Baseline>(type.code);
#if defined(__x86_64__)
    if (host_vector_width() >= 8) kernels = kernels_of<Avx2>(type.code);
#endif
    if (kernels == nullptr)
        fail(ErrorKind::unsupported, "the host has no kernels for blocks of ", type.name);
    return *kernels;
}

void GemmBlocks::pack(std::int64_t, std::int64_t first, int count, int width, std::int64_t k_first,
                      std::int64_t depth, float* to) const {
    constexpr std::int64_t most = 256;  // steps that are unpacked at a time
    alignas(64) float rows[host_gemm_max_columns * most];
    for (std::int64_t begin = 0; begin < depth; begin += most, to += most * width) {
        const std::int64_t steps = std::min(most, depth - begin);
        const std::byte* from =
            data_ + first * row_bytes_ + (k_first + begin) / size_.weights * size_.bytes;
        for (int i = 0; i < count; ++i, from += row_bytes_)
            kernels_.unpack(steps, from, rows + i * most);
        pack_rows(rows, most, count, width, steps, to);
    }
}

}  // namespace dlprim
