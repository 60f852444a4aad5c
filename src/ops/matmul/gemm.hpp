// SPDX-License-Identifier: MIT
// Gemm: MatMul and InnerProduct problems in a common form with the fewest dimensions. It is a batch
// of row-major products C[m, n] = alpha * op(A)[m, k] op(B)[k, n] (+ bias[n]), followed by the
// epilogue.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::matmul {

/// The shape rule of MatMul, which is that of numpy and torch.matmul. Transposing an operand of
/// rank 1 does nothing.
struct MatMulShape {
    std::int64_t m = 1, n = 1, k = 1;
    Shape batch;  ///< broadcast batch dimensions
    Shape a,
        b;  ///< the operands with rank-1 ones made matrices: [batch..., rows, columns] as stored
    Shape full;  ///< [batch..., m, n]
    /// `full` without the dimensions that operands of rank 1 lack.
    Shape output;
};
/// Throws Error(invalid_argument), which names both shapes, if they do not match.
MatMulShape matmul_shape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b);

struct Gemm {
    std::int64_t m = 1, n = 1, k = 1;
    bool transpose_a = false;  ///< A is stored as [k, m]
    bool transpose_b = false;  ///< B is stored as [n, k]
    float alpha = 1;

    /// Batch dimensions, outermost first, merged where strides allow it. Strides are in elements,
    /// and are 0 if an operand is broadcast. The batches of C are contiguous.
    struct BatchDim {
        std::int64_t size, a, b;
    };
    std::vector<BatchDim> batch;
    std::int64_t batches = 1;

    // Operand numbers of a Launch.
    int a = 0, b = 1;
    int bias = -1;      ///< -1: none
    int residual = -1;  ///< the operand that the epilogue adds; -1: none
    int c = 2;
    int workspace = 3;

    bool constant_a = false, constant_b = false;

    /// Whether all batches use the same A, or the same B.
    bool shared_a() const;
    bool shared_b() const;
    double flops() const {
        return 2.0 * static_cast<double>(m * n * k) * static_cast<double>(batches);
    }
    /// The numbers of elements of A, B and C. An operand that batches share counts once.
    double a_elements() const;
    double b_elements() const;
    double c_elements() const { return static_cast<double>(m * n * batches); }
};

/// Reads a problem of op "MatMul", "InnerProduct" or "NormedProduct".
Gemm gemm_of(const Problem& problem);

/// Returns yes if the problem is float32, has at most one add in its epilogue, and has dimensions
/// below 2^31; else no, with the reason. With `narrow`, the result and all operands but the bias
/// may also be f16 or bf16.
Verdict check_gemm(const Problem& problem, bool narrow = false);
/// Whether kernels of single work-items with wide vectors, which are made for CPUs, suit the
/// device.
Verdict check_wide_vectors(const Traits& device);

/// Returns `#define` lines for HAS_RESIDUAL and EPILOGUE(v, r). The latter applies the epilogue's
/// stages to v, where r is the residual. `processor`: in the forms for CPUs.
std::string epilogue_defines(const Problem& problem, const Gemm& gemm, bool processor = false);
/// OpenCL expressions for the element offset of batch (i) in A and in B. With at most one batch
/// dimension they use the kernel's arguments a_batch and b_batch. Several dimensions are rare, so
/// their strides are written out as numbers.
struct BatchOffsets {
    std::string a, b;
};
BatchOffsets batch_offsets(const Gemm& gemm);
/// Returns `#define` lines for A_BATCH(i) and B_BATCH(i).
std::string batch_defines(const BatchOffsets& offsets);

/// Returns the compiler options for the storage types of A, B, C and the residual R. With `split`,
/// C holds parts of sums, which are float and have no residual.
std::string gemm_storage(const Problem& problem, const Gemm& gemm, bool split = false);
/// Binds m, n and k.
KernelCall& bind_sizes(KernelCall& call, const Gemm& gemm);
/// Binds a_row, a_k, b_k and b_column: the distances of neighbouring elements of A and B.
KernelCall& bind_strides(KernelCall& call, const Gemm& gemm);
/// Binds the operands a and b.
void bind_factors(KernelCall& call, const Problem& problem, const Gemm& gemm);

/// Binds bias, has_bias, residual and c, which every final kernel takes. In place of an absent
/// operand it binds c, which the kernel does not read then.
void bind_output(KernelCall& call, const Problem& problem, const Gemm& gemm);
/// Binds a_batch and b_batch. A_BATCH and B_BATCH use these strides if there is one batch
/// dimension.
void bind_batch(KernelCall& call, const Gemm& gemm);

/// For kernels that include matmul/batch.clh, whose text is the same for all batches. Binds the
/// sizes of all dimensions but the first one, batch_1 to batch_5, and A's strides, a_0 to a_5. With
/// `both`, also B's.
void bind_batch_digits(KernelCall& call, const Gemm& gemm, bool both = true);

}  // namespace dlprim::matmul
