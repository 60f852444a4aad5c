// SPDX-License-Identifier: MIT
// The shape rule of MatMul, and the reduction of MatMul and InnerProduct problems to a Gemm.
#include "ops/matmul/gemm.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "engine/float_literal.hpp"
#include "engine/storage.hpp"

#include <dlprim/op_options.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace dlprim::matmul {

namespace {

Shape as_matrix(const Shape& shape, bool left) {
    if (shape.rank() != 1) return shape;
    return left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

/// Returns `text` with `by` in place of every whole word `word`.
std::string replace_word(const std::string& text, const std::string& word, const std::string& by) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const bool starts = i == 0 || !ascii::is_word(text[i - 1]);
        const std::size_t end = i + word.size();
        if (starts && text.compare(i, word.size(), word) == 0 &&
            (end >= text.size() || !ascii::is_word(text[end]))) {
            out += by;
            i = end;
        } else {
            out += text[i++];
        }
    }
    return out;
}

}  // namespace

MatMulShape matmul_shape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
    auto shapes = [&] { return cat("a ", a.str(), " and b ", b.str()); };
    if (a.rank() < 1 || b.rank() < 1)
        fail(ErrorKind::invalid_argument, "MatMul needs tensors of at least one dimension, got ",
             shapes());
    const bool ta = transpose_a && a.rank() > 1, tb = transpose_b && b.rank() > 1;
    MatMulShape s;
    s.a = as_matrix(a, true);
    s.b = as_matrix(b, false);
    s.m = s.a[ta ? -1 : -2];
    s.k = s.a[ta ? -2 : -1];
    s.n = s.b[tb ? -2 : -1];
    const std::int64_t kb = s.b[tb ? -1 : -2];
    if (s.k != kb)
        fail(ErrorKind::invalid_argument, "inner dimensions differ: ", shapes(), " multiply along ",
             s.k, " and ", kb);
    const auto batch_of = [](const Shape& x) {
        return Shape(x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    };
    try {
        s.batch = broadcast(batch_of(s.a), batch_of(s.b));
    } catch (const Error&) {
        fail(ErrorKind::invalid_argument, "batch dimensions of ", shapes(), " do not broadcast");
    }
    std::vector<std::int64_t> full = s.batch.to_vector(), output = full;
    full.push_back(s.m);
    full.push_back(s.n);
    if (a.rank() > 1) output.push_back(s.m);
    if (b.rank() > 1) output.push_back(s.n);
    s.full = Shape(full);
    s.output = Shape(output);
    return s;
}

bool Gemm::shared_a() const {
    for (const BatchDim& d : batch)
        if (d.a != 0 && d.size > 1) return false;
    return true;
}
bool Gemm::shared_b() const {
    for (const BatchDim& d : batch)
        if (d.b != 0 && d.size > 1) return false;
    return true;
}
double Gemm::a_elements() const {
    double count = static_cast<double>(m * k);
    for (const BatchDim& d : batch)
        if (d.a != 0) count *= static_cast<double>(d.size);
    return count;
}
double Gemm::b_elements() const {
    double count = static_cast<double>(n * k);
    for (const BatchDim& d : batch)
        if (d.b != 0) count *= static_cast<double>(d.size);
    return count;
}

Gemm gemm_of(const Problem& problem) {
    Gemm g;
    const Shape& a = problem.inputs.at(0).shape;
    const Shape& b = problem.inputs.at(1).shape;
    bool bias = problem.attrs.boolean("bias");
    if (problem.op != "MatMul") {
        g.m = a[0];
        g.k = a.product(1, a.rank());
        g.n = b[0];
        g.transpose_b = true;
    } else {
        const auto options = read<ops::MatMul>(problem.attrs);
        const MatMulShape s = matmul_shape(a, b, options.transpose_a, options.transpose_b);
        g.m = s.m;
        g.n = s.n;
        g.k = s.k;
        g.transpose_a = options.transpose_a && a.rank() > 1;
        g.transpose_b = options.transpose_b && b.rank() > 1;
        g.alpha = static_cast<float>(options.alpha);
        // Compute the strides of the batch dimensions. Dimensions of size 1 are dropped, and
        // neighbours are merged if their strides allow it.
        const int rank = s.batch.rank();
        std::int64_t stride_a = g.m * g.k, stride_b = g.n * g.k;
        std::vector<Gemm::BatchDim> inner_first;
        for (int i = 1; i <= rank; ++i) {
            const std::int64_t size_a = i <= s.a.rank() - 2 ? s.a[-2 - i] : 1;
            const std::int64_t size_b = i <= s.b.rank() - 2 ? s.b[-2 - i] : 1;
            const std::int64_t size = s.batch[-i];
            const Gemm::BatchDim dim{size, size_a == 1 ? 0 : stride_a, size_b == 1 ? 0 : stride_b};
            stride_a *= size_a;
            stride_b *= size_b;
            if (size == 1) continue;
            if (!inner_first.empty()) {
                Gemm::BatchDim& last = inner_first.back();
                if (dim.a == last.a * last.size && dim.b == last.b * last.size) {
                    last.size *= size;
                    continue;
                }
            }
            inner_first.push_back(dim);
        }
        // If all batches of A meet the same B, they form one taller matrix.
        if (inner_first.size() == 1 && inner_first[0].b == 0 && !g.transpose_a &&
            inner_first[0].a == g.m * g.k) {
            g.m *= inner_first[0].size;
            inner_first.clear();
        }
        g.batch.assign(inner_first.rbegin(), inner_first.rend());
        for (const Gemm::BatchDim& d : g.batch) g.batches *= d.size;
    }
    if (bias) g.bias = 2;
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add) g.residual = stage.operand;
    g.c = static_cast<int>(problem.inputs.size());
    g.workspace = g.c + 1;
    g.constant_a = problem.inputs[0].constant;
    g.constant_b = problem.inputs[1].constant;
    return g;
}

Verdict check_wide_vectors(const Traits& device) {
    if (!device.wide_vectors)
        return Verdict::no("it is made for CPUs, and the device has no wide vectors");
    if (device.vector_width < 4)
        return Verdict::no(cat("it needs float vectors of at least 4 lanes, and the device has ",
                               device.vector_width));
    return Verdict::yes();
}

Verdict check_gemm(const Problem& problem, bool narrow) {
    Verdict stored =
        narrow ? storage_verdict(problem, {0, 1}, true) : storage_verdict(problem, {}, false);
    if (!stored) return stored;
    int adds = 0;
    for (const EpilogueStage& stage : problem.epilogue)
        adds += stage.kind == EpilogueStage::Kind::add;
    if (adds > 1) return Verdict::no(cat("its epilogue can add at most one tensor, not ", adds));
    const Gemm g = gemm_of(problem);
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() / 2;
    if (g.m > limit || g.n > limit || g.k > limit)
        return Verdict::no(cat("it needs matrices whose dimensions are below 2^30, not M = ", g.m,
                               ", N = ", g.n, ", K = ", g.k));
    return Verdict::yes();
}

std::string epilogue_defines(const Problem& problem, const Gemm& gemm, bool processor) {
    std::string out =
        cat("#define HAS_RESIDUAL ", gemm.residual >= 0 ? 1 : 0, "\n#define EPILOGUE(v, r)");
    for (const EpilogueStage& stage : problem.epilogue) {
        if (stage.kind == EpilogueStage::Kind::add) {
            out += " v = v + r;";
        } else {
            const Activation& activation = find_activation(stage.activation);
            const bool own = processor && !activation.processor.empty();
            std::string text = own ? activation.processor : activation.opencl;
            text = replace_word(text, "ALPHA", float_literal(stage.alpha));
            text = replace_word(text, "BETA", float_literal(stage.beta));
            out += cat(" v = ", text, ";");
        }
    }
    return out + "\n";
}

BatchOffsets batch_offsets(const Gemm& gemm) {
    if (gemm.batch.size() <= 1) return {"((i) * a_batch)", "((i) * b_batch)"};
    BatchOffsets out{"(0L", "(0L"};
    std::int64_t inner = gemm.batches;
    for (const Gemm::BatchDim& d : gemm.batch) {
        inner /= d.size;
        const std::string at = cat(" + (i) / ", inner, "L % ", d.size, "L * ");
        if (d.a != 0) out.a += cat(at, d.a, "L");
        if (d.b != 0) out.b += cat(at, d.b, "L");
    }
    out.a += ")";
    out.b += ")";
    return out;
}

std::string batch_defines(const BatchOffsets& offsets) {
    return cat("#define A_BATCH(i) ", offsets.a, "\n#define B_BATCH(i) ", offsets.b, "\n");
}

void bind_batch(KernelCall& call, const Gemm& gemm) {
    call.scalar("a_batch", gemm.batch.empty() ? std::int64_t{0} : gemm.batch[0].a);
    call.scalar("b_batch", gemm.batch.empty() ? std::int64_t{0} : gemm.batch[0].b);
}

void bind_batch_digits(KernelCall& call, const Gemm& gemm, bool both) {
    struct Names {
        const char *size, *a, *b;
    };
    static constexpr std::array<Names, Shape::max_rank - 2> names{{{nullptr, "a_0", "b_0"},
                                                                   {"batch_1", "a_1", "b_1"},
                                                                   {"batch_2", "a_2", "b_2"},
                                                                   {"batch_3", "a_3", "b_3"},
                                                                   {"batch_4", "a_4", "b_4"},
                                                                   {"batch_5", "a_5", "b_5"}}};
    std::array<Gemm::BatchDim, names.size()> dims;
    dims.fill({1, 0, 0});
    std::copy(gemm.batch.begin(), gemm.batch.end(), dims.begin());
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (names[d].size != nullptr) call.size(names[d].size, dims[d].size);
        call.scalar(names[d].a, dims[d].a);
        if (both) call.scalar(names[d].b, dims[d].b);
    }
}

std::string gemm_storage(const Problem& problem, const Gemm& gemm, bool split) {
    const bool residual = !split && gemm.residual >= 0;
    return storage_options(
        {{'A', problem.inputs[0].dtype},
         {'B', problem.inputs[1].dtype},
         {'C', split ? DType::f32 : problem.outputs[0].dtype},
         {'R',
          residual ? problem.inputs[static_cast<std::size_t>(gemm.residual)].dtype : DType::f32}});
}

KernelCall& bind_sizes(KernelCall& call, const Gemm& g) {
    return call.sizes({{"m", g.m}, {"n", g.n}, {"k", g.k}});
}

KernelCall& bind_strides(KernelCall& call, const Gemm& g) {
    return call.scalar("a_row", g.transpose_a ? std::int64_t{1} : g.k)
        .scalar("a_k", g.transpose_a ? g.m : std::int64_t{1})
        .scalar("b_k", g.transpose_b ? std::int64_t{1} : g.n)
        .scalar("b_column", g.transpose_b ? g.k : std::int64_t{1});
}

void bind_factors(KernelCall& call, const Problem& problem, const Gemm& gemm) {
    call.tensor("a", gemm.a, size_of(problem.inputs[0].dtype));
    call.tensor("b", gemm.b, size_of(problem.inputs[1].dtype));
}

void bind_output(KernelCall& call, const Problem& problem, const Gemm& gemm) {
    const std::size_t made = size_of(problem.outputs[0].dtype);
    call.tensor("bias", gemm.bias >= 0 ? gemm.bias : gemm.c, gemm.bias >= 0 ? 4 : made);
    if (gemm.residual >= 0)
        call.tensor("residual", gemm.residual,
                    size_of(problem.inputs[static_cast<std::size_t>(gemm.residual)].dtype));
    else
        call.tensor("residual", gemm.c, made);
    call.tensor("c", gemm.c, made);
    call.scalar("has_bias", std::int32_t{gemm.bias >= 0});
}

}  // namespace dlprim::matmul
