// SPDX-License-Identifier: MIT
// Heads of a problem, what engines refuse of it, and the kernels' parameters.
#include "ops/attention/heads.hpp"

#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/laid_out.hpp"
#include "engine/storage.hpp"
#include "ops/attention/operator.hpp"
#include "ops/attention/spans.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::attention {

namespace {

/// An operand in the shape in which it is broadcast, and where its heads and rows are put down.
struct Lying {
    Shape shape;
    Ints strides;  ///< by dimension, in elements
    Heads::Strides* heads;
    std::int64_t* row = nullptr;
};

/// The stride of dimension -`from_end`, 0 where the operand is broadcast along it.
std::int64_t stride_of(const Shape& shape, const Ints& strides, int from_end) {
    if (from_end > shape.rank() || shape[-from_end] == 1) return 0;
    return strides[strides.size() - static_cast<std::size_t>(from_end)];
}

/// The operand's strides in the shape in which it is broadcast, where heads may be in groups.
Ints strides_in(const Operand& operand, const Shape& shape) {
    Ints strides = logical_strides(operand.shape, operand.layout);
    if (shape.rank() == operand.shape.rank()) return strides;
    const auto heads = strides.end() - 3;
    const std::int64_t head = *heads;
    *heads = head * shape[-3];
    strides.insert(heads + 1, head);
    return strides;
}

/// A batch dimension with the strides of all operands.
struct Dim {
    std::int64_t size = 1;
    Ints strides;

    bool continues(const Dim& inner) const {
        for (std::size_t i = 0; i < strides.size(); ++i)
            if (strides[i] != inner.strides[i] * inner.size) return false;
        return true;
    }
};

/// The batch dimensions of the result, innermost first, merged where all operands allow it.
std::vector<Dim> batch_dims(const std::vector<Lying>& operands) {
    int rank = 0;
    for (const Lying& operand : operands) rank = std::max(rank, operand.shape.rank());
    std::vector<Dim> dims;
    for (int from_end = 3; from_end <= rank; ++from_end) {
        Dim dim;
        for (const Lying& operand : operands) {
            if (from_end <= operand.shape.rank())
                dim.size = std::max(dim.size, operand.shape[-from_end]);
            dim.strides.push_back(stride_of(operand.shape, operand.strides, from_end));
        }
        if (dim.size == 1) continue;
        if (!dims.empty() && dim.continues(dims.back()))
            dims.back().size *= dim.size;
        else
            dims.push_back(dim);
    }
    return dims;
}

/// Puts down where the operands' heads and rows are.
void find_places(Heads& heads, const std::vector<Lying>& operands) {
    for (const Lying& operand : operands)
        if (operand.row != nullptr) *operand.row = stride_of(operand.shape, operand.strides, 2);
    const std::vector<Dim> dims = batch_dims(operands);
    heads.fits = dims.size() <= heads.digits.size();
    for (std::size_t i = 0; i < dims.size() && heads.fits; ++i) {
        const std::size_t digit = heads.digits.size() - 1 - i;
        heads.count *= dims[i].size;
        heads.digits[digit] = dims[i].size;
        for (std::size_t k = 0; k < operands.size(); ++k)
            (*operands[k].heads)[digit] = dims[i].strides[k];
    }
}

/// Whether the elements of a row lie beside each other.
bool has_whole_rows(const Operand& operand) {
    return operand.shape[-1] == 1 || operand.layout.strides.back() == 1;
}

}  // namespace

double Heads::flops() const {
    return 2 * sight.pairs() * static_cast<double>(depth + features) * static_cast<double>(count);
}

Heads heads_of(const Problem& problem) {
    std::vector<Shape> given;
    for (std::size_t i = 0; i < 3; ++i) given.push_back(problem.inputs[i].shape);
    const bool backward = problem.op == backward_type;
    const std::size_t mask = backward ? 6 : 3;
    const std::size_t operands = operands_among(problem.attrs, problem.inputs.size());
    const Options options = Options::read(problem.attrs, given[0]);
    const bool lengths = operands > mask && are_lengths(problem.inputs[mask].dtype);
    const bool masked = operands > mask && !lengths;
    if (masked) given.push_back(problem.inputs[mask].shape);
    const std::vector<Shape> shapes = operand_shapes(problem.attrs, given);
    Heads heads;
    heads.length = shapes[0][-2];
    heads.positions = shapes[1][-2];
    heads.depth = shapes[0][-1];
    heads.features = shapes[2][-1];
    heads.sight = lengths ? Sight::of_sequences(options, heads.length, heads.positions)
                          : Sight::of(options, heads.length, heads.positions);
    heads.scale = options.scale;
    heads.softcap = options.softcap;
    heads.dropout_p = options.dropout_p;
    heads.stream = options.stream;
    if (options.dropout_p > 0) heads.seed_operand = static_cast<int>(operands);
    heads.results = static_cast<int>(problem.inputs.size());
    heads.workspace = heads.results + static_cast<int>(problem.outputs.size());
    if (masked) {
        heads.mask_operand = static_cast<int>(mask);
        heads.masks =
            problem.inputs[mask].dtype == DType::boolean ? Heads::Mask::bools : Heads::Mask::floats;
        const Ints strides = strides_in(problem.inputs[mask], shapes[3]);
        heads.mask_column = stride_of(shapes[3], strides, 1);
        heads.mask_row = stride_of(shapes[3], strides, 2);
    }
    if (lengths) {
        heads.masks = Heads::Mask::spans;
        heads.lengths_operand = static_cast<int>(mask);
        heads.mask_operand = heads.workspace;
    }
    const Shape scores = scores_shape(shapes[0], shapes[1]);
    heads.weights = scores.product(0, scores.rank() - 2);
    std::vector<Lying> operands_of;
    const auto add = [&](const Operand& operand, const Shape& shape, Heads::Strides& places,
                         std::int64_t* row) {
        operands_of.push_back({shape, strides_in(operand, shape), &places, row});
    };
    const auto add_numbers = [&](const Shape& shape, Heads::Strides& numbers) {
        Ints strides = shape.strides();
        for (std::int64_t& stride : strides) stride /= shape[-2] * shape[-1];
        operands_of.push_back({shape, strides, &numbers});
    };
    const Shape made = with_matrix(batch_shape(shapes), heads.length, heads.features);
    add(problem.inputs[0], shapes[0], heads.q, &heads.q_row);
    add(problem.inputs[1], shapes[1], heads.k, &heads.k_row);
    add(problem.inputs[2], shapes[2], heads.v, &heads.v_row);
    add(backward ? problem.inputs[5] : problem.outputs[0], made, heads.y, &heads.y_row);
    if (masked) add(problem.inputs[mask], shapes[3], heads.mask, nullptr);
    if (backward) {
        add(problem.outputs[0], problem.outputs[0].shape, heads.dq, &heads.dq_row);
        add(problem.outputs[1], problem.outputs[1].shape, heads.dk, &heads.dk_row);
        add(problem.outputs[2], problem.outputs[2].shape, heads.dv, &heads.dv_row);
    }
    add_numbers(shapes[0], heads.q_matrix);
    add_numbers(shapes[1], heads.k_matrix);
    add_numbers(shapes[2], heads.v_matrix);
    find_places(heads, operands_of);
    return heads;
}

Verdict check_heads(const Problem& problem, std::int64_t most_features, bool narrow) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    const bool backward = problem.op == backward_type;
    const std::size_t mask = backward ? 6 : 3;
    Problem floats = problem;  // without the mask and the results
    floats.inputs.resize(mask);
    floats.outputs.clear();
    if (Verdict stored = !narrow    ? storage_verdict(floats, {}, false)
                         : backward ? storage_verdict(floats, {0, 1, 2, 5}, false)
                                    : storage_verdict(floats, {0, 1, 2}, false);
        !stored)
        return stored;
    for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
        const DType made = problem.outputs[i].dtype;
        const bool statistic = !backward && i == 1;
        if (made != DType::f32 && (!narrow || statistic || !is_activation_type(made)))
            return Verdict::no(cat("it does not support ", name_of(made), " as output ", i));
    }
    if (operands_among(problem.attrs, problem.inputs.size()) > mask) {
        const DType dtype = problem.inputs[mask].dtype;
        if (narrow && are_lengths(dtype))
            return Verdict::no("it does not support sequences behind each other");
        if (dtype != DType::boolean && dtype != DType::f32 && !are_lengths(dtype))
            return Verdict::no(cat("it needs a mask of float or bool, not ", name_of(dtype)));
    }
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            if (operand.shape.empty()) return Verdict::no("it needs tensors with elements");
    const Heads heads = heads_of(problem);
    if (!heads.fits)
        return Verdict::no("its operands are broadcast along too many different dimensions");
    if (std::max(heads.depth, heads.features) > most_features)
        return Verdict::no(cat("it supports up to ", most_features, " features of a head, not ",
                               std::max(heads.depth, heads.features)));
    if (!(heads.scale > 0)) return Verdict::no(cat("it needs a scale above 0, not ", heads.scale));
    if (heads.dropout_p > 0 && heads.weights != heads.count)
        return Verdict::no("with dropout it needs values of the batch of queries and keys");
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    if (heads.stream >= limit) return Verdict::no("it needs a stream of random numbers below 2^30");
    if (heads.length >= limit || heads.positions >= limit || heads.count >= limit)
        return Verdict::no("it needs sizes below 2^30");
    return Verdict::yes();
}

std::vector<LayoutChoice> heads_layouts(const Problem& problem) {
    LayoutChoice choice = LayoutChoice::all(problem);
    const auto keep = [](const Operand& operand, Layout& layout) {
        if (operand.layout.is_strided() && has_whole_rows(operand)) layout = operand.layout;
    };
    const bool backward = problem.op == backward_type;
    for (const std::size_t i : {0, 1, 2}) keep(problem.inputs[i], choice.inputs[i]);
    if (backward) keep(problem.inputs[5], choice.inputs[5]);
    for (std::size_t i = 0; i < (backward ? 3U : 1U); ++i)
        keep(problem.outputs[i], choice.outputs[i]);
    if (!heads_of(with_layouts(problem, choice)).fits) return {LayoutChoice::all(problem)};
    return {choice};
}

bool is_direct(const Problem& problem, const Heads& heads) {
    const DType dtype = problem.inputs[0].dtype;
    const bool rounds = dtype == DType::bf16 ? problem.precision == Precision::bf16
                                             : problem.precision != Precision::fp32;
    const auto reads = [&](std::size_t i, const Heads::Strides& strides, std::int64_t row,
                           std::int64_t columns) {
        const Operand& operand = problem.inputs[i];
        return operand.dtype == dtype && columns % 8 == 0 && row % 8 == 0 &&
               (!operand.layout.is_strided() || operand.layout.aligned) &&
               std::all_of(strides.begin(), strides.end(),
                           [](std::int64_t stride) { return stride % 8 == 0; });
    };
    return size_of(dtype) == 2 && rounds && reads(0, heads.q, heads.q_row, heads.depth) &&
           reads(1, heads.k, heads.k_row, heads.depth) &&
           reads(2, heads.v, heads.v_row, heads.features) &&
           (problem.op != backward_type || reads(5, heads.y, heads.y_row, heads.features));
}

std::string heads_options(const Heads& heads) {
    return cat(define("MASK", static_cast<int>(heads.masks)),
               define("CAUSAL", heads.sight.causal ? 1 : 0),
               define("WINDOW", heads.sight.window > 0 ? 1 : 0),
               define("LOWER_RIGHT", heads.sight.offset != 0 ? 1 : 0),
               define("SOFTCAP", heads.softcap > 0 ? 1 : 0),
               define("DROPOUT", heads.dropout_p > 0 ? 1 : 0));
}

KernelCall& bind_heads(KernelCall& call, const Heads& heads) {
    // Without a mask the kernel does not read what is bound in its place.
    const bool masked = heads.mask_operand >= 0;
    call.tensor("mask", masked ? heads.mask_operand : heads.results,
                heads.masks == Heads::Mask::spans   ? span_bytes
                : heads.masks == Heads::Mask::bools ? 1
                                                    : 4);
    const bool drops = heads.seed_operand >= 0;
    call.tensor("seed", drops ? heads.seed_operand : heads.results, drops ? 8 : 1);
    call.tensor("step", drops ? heads.seed_operand + 1 : heads.results, drops ? 8 : 1);
    call.scalar("dropped", static_cast<float>(heads.dropout_p));
    call.scalar("kept", static_cast<float>(heads.dropout_p < 1 ? 1 / (1 - heads.dropout_p) : 0));
    call.sizes({{"length", heads.length},
                {"positions", heads.positions},
                {"features", heads.features},
                {"heads", heads.count},
                {"digit_1", heads.digits[1]},
                {"digit_2", heads.digits[2]},
                {"window", heads.sight.window},
                {"stream", heads.stream}});
    call.scalar("softcap", static_cast<float>(heads.softcap * log2_e));
    struct Names {
        const char* names[3];
        const Heads::Strides& strides;
    };
    for (const Names& operand :
         {Names{{"mask_0", "mask_1", "mask_2"}, heads.mask}, Names{{"q_0", "q_1", "q_2"}, heads.q},
          Names{{"k_0", "k_1", "k_2"}, heads.k}, Names{{"v_0", "v_1", "v_2"}, heads.v},
          Names{{"y_0", "y_1", "y_2"}, heads.y}})
        for (std::size_t i = 0; i < 3; ++i) call.scalar(operand.names[i], operand.strides[i]);
    call.scalar("q_row", heads.q_row).scalar("k_row", heads.k_row);
    call.scalar("v_row", heads.v_row).scalar("y_row", heads.y_row);
    return call.scalar("mask_row", heads.mask_row).scalar("mask_column", heads.mask_column);
}

KernelCall& bind_gradients(KernelCall& call, const Problem& problem, const Heads& heads,
                           bool of_keys) {
    const std::size_t element = size_of(problem.outputs[of_keys ? 1 : 0].dtype);
    call.tensor("lse", 3).tensor("delta", 4);
    call.tensor("d_keys", heads.results + (of_keys ? 1 : 0), element);
    call.tensor("d_values", heads.results + 2, element);
    const auto bind_rows = [&](const std::string& name, const Heads::Strides& strides,
                               std::int64_t row) {
        for (std::size_t i = 0; i < strides.size(); ++i) call.scalar(cat(name, "_", i), strides[i]);
        call.scalar(name + "_row", row);
    };
    bind_rows("d_keys", of_keys ? heads.dk : heads.dq, of_keys ? heads.dk_row : heads.dq_row);
    bind_rows("d_values", heads.dv, heads.dv_row);
    return call.size("depth", heads.depth).scalar("scale", static_cast<float>(heads.scale));
}

}  // namespace dlprim::attention
