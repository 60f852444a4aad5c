// SPDX-License-Identifier: MIT
// Gemm: what MatMul and InnerProduct problems have in common, reduced to the fewest dimensions:
// a batch of row-major C[m, n] = alpha * op(A)[m, k] op(B)[k, n] (+ bias[n]), then the epilogue.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::matmul {

/// The shape rule of MatMul (numpy's and torch.matmul's). A transposition of a rank-1 operand does
/// nothing.
struct MatMulShape {
    std::int64_t m = 1, n = 1, k = 1;
    Shape batch;  ///< broadcast batch dimensions
    Shape a,
        b;  ///< the operands with rank-1 ones made matrices: [batch..., rows, columns] as stored
    Shape full;    ///< [batch..., m, n]
    Shape output;  ///< full less the dimensions that rank-1 operands lack
};
/// Throws Error(invalid_argument) with both shapes where they disagree.
MatMulShape matmul_shape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b);

struct Gemm {
    std::int64_t m = 1, n = 1, k = 1;
    bool transpose_a = false;  ///< A lies as [k, m]
    bool transpose_b = false;  ///< B lies as [n, k]
    float alpha = 1;

    /// Batch dimensions, outermost first, merged where strides allow; strides in elements, 0 where
    /// an operand is broadcast. C's batches are contiguous.
    struct BatchDim {
        std::int64_t size, a, b;
    };
    std::vector<BatchDim> batch;
    std::int64_t batches = 1;

    // Operand numbers of a Launch.
    int a = 0, b = 1;
    int bias = -1;      ///< -1: none
    int residual = -1;  ///< the epilogue's add operand; -1: none
    int c = 2;
    int workspace = 3;

    bool constant_a = false, constant_b = false;

    /// Whether all batches read one and the same A (B).
    bool shared_a() const;
    bool shared_b() const;
    double flops() const {
        return 2.0 * static_cast<double>(m * n * k) * static_cast<double>(batches);
    }
    /// Elements that A, B and C hold, each counted once.
    double a_elements() const;
    double b_elements() const;
    double c_elements() const { return static_cast<double>(m * n * batches); }
};

/// Reads a problem of op "MatMul" or "InnerProduct".
Gemm gemm_of(const Problem& problem);

/// What every engine here asks of a problem: float32, at most one add in the epilogue, dimensions
/// below 2^31. `narrow`: operands (but the bias) and the result may be f16 and bf16, too.
Verdict check_gemm(const Problem& problem, bool narrow = false);

/// `#define` lines HAS_RESIDUAL and EPILOGUE(v, r), which applies the stages to v, r
/// being the residual.
std::string epilogue_defines(const Problem& problem, const Gemm& gemm);
/// OpenCL expressions of the element offset of batch (i) of A and B. With up to one batch dimension
/// they use the kernel's arguments a_batch and b_batch; several are rare and are written out.
struct BatchOffsets {
    std::string a, b;
};
BatchOffsets batch_offsets(const Gemm& gemm);
/// `#define` lines A_BATCH(i) and B_BATCH(i).
std::string batch_defines(const BatchOffsets& offsets);

/// Compiler options for what A, B, C and the residual R are stored in; parts of a split sum are
/// float, and go by themselves.
std::string gemm_storage(const Problem& problem, const Gemm& gemm, bool split = false);
/// Binds a and b.
void bind_factors(KernelCall& call, const Problem& problem, const Gemm& gemm);

/// Binds bias, has_bias, residual and c: what every final kernel takes. Absent operands
/// are bound to c, and never read.
void bind_output(KernelCall& call, const Problem& problem, const Gemm& gemm);
/// a_batch and b_batch: the strides that A_BATCH and B_BATCH use where one batch dimension is left.
void bind_batch(KernelCall& call, const Gemm& gemm);

}  // namespace dlprim::matmul
