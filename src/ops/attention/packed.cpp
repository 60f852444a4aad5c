// SPDX-License-Identifier: MIT
// Packed: places in the workspace, the launch that fills them, and what engines need for it.
#include "ops/attention/packed.hpp"

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/unit.hpp"
#include "engine/storage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::attention {

namespace {

constexpr const char* pack_path = "attention/pack.cl";
constexpr std::int64_t pack_items = 256;

std::int64_t matrices(const Operand& operand) {
    return operand.shape.product(0, operand.shape.rank() - 2);
}

/// Strides in blocks, of those in matrices.
Heads::Strides in_blocks(Heads::Strides strides, std::int64_t blocks) {
    for (std::int64_t& stride : strides) stride *= blocks;
    return strides;
}

/// Binds where the matrices of operand `name` lie, whose numbers have the digits of heads except
/// where heads share one.
void bind_source(KernelCall& call, const Heads& heads, const std::string& name,
                 const Heads::Strides& numbers, const Heads::Strides& strides, std::int64_t row) {
    for (std::size_t i = 0; i < strides.size(); ++i) {
        if (i > 0) call.size(cat(name, "_digit_", i), numbers[i] == 0 ? 1 : heads.digits[i]);
        call.scalar(cat(name, "_", i), strides[i]);
    }
    call.scalar(name + "_row", row);
}

bool has_gradients(const Problem& problem) {
    return problem.op == backward_type;
}

}  // namespace

Packed::Packed(const Problem& problem, const Heads& heads)
    : planes(problem.precision == Precision::fp32 ? 2 : 1),
      depth(padded(heads.depth)),
      features(padded(heads.features)),
      q_blocks(ceil_div(heads.length, block_rows)),
      k_blocks(ceil_div(heads.positions, block_rows)),
      q_groups(matrices(problem.inputs[0]) * q_blocks),
      k_groups(matrices(problem.inputs[1]) * k_blocks),
      v_groups(matrices(problem.inputs[2]) * k_blocks),
      dy_groups(has_gradients(problem) ? heads.count * q_blocks : 0) {
    const std::int64_t block = planes * block_rows * 2;
    k_planes = q_groups * block * depth;
    v_planes = k_planes + k_groups * block * depth;
    dy_planes = v_planes + v_groups * block * features;
    q_factors = dy_planes + dy_groups * block * features;
    k_factors = q_factors + q_groups * 4;
    v_factors = k_factors + k_groups * 4;
    dy_factors = v_factors + v_groups * 4;
    bytes = dy_factors + dy_groups * 4;
}

std::string Packed::options() const {
    return cat(define("PRODUCTS", planes == 2 ? 3 : 1), define("DEPTH", depth),
               define("FEATURES", features), " -DMMA=1");
}

KernelCall Packed::pack_call(ContextImpl& context, const Problem& problem,
                             const Heads& heads) const {
    const int dy = has_gradients(problem) ? 5 : 2;
    const DType dtype = problem.inputs[0].dtype,
                dy_type = problem.inputs[static_cast<std::size_t>(dy)].dtype;
    KernelCall call(
        context.build({pack_path, kernel_source(pack_path),
                       cat(options(), storage_options({{'A', dtype}, {'B', dy_type}}))}),
        "attention_pack", group_range(q_groups + k_groups + v_groups + dy_groups, pack_items));
    const std::size_t element = size_of(dtype);
    call.tensor("q", 0, element).tensor("k", 1, element).tensor("v", 2, element);
    call.tensor("dy", dy, size_of(dy_type));
    bind_source(call, heads, "q", heads.q_matrix, heads.q, heads.q_row);
    bind_source(call, heads, "k", heads.k_matrix, heads.k, heads.k_row);
    bind_source(call, heads, "v", heads.v_matrix, heads.v, heads.v_row);
    bind_source(call, heads, "dy", {1, 1, 1}, heads.y, heads.y_row);
    return call.tensor("planes", heads.workspace, 1)
        .sizes({{"length", heads.length},
                {"positions", heads.positions},
                {"depth", heads.depth},
                {"features", heads.features},
                {"q_groups", q_groups},
                {"k_groups", k_groups},
                {"v_groups", v_groups}})
        .scalar("k_planes", k_planes)
        .scalar("v_planes", v_planes)
        .scalar("dy_planes", dy_planes)
        .scalar("q_factors", q_factors)
        .scalar("k_factors", k_factors)
        .scalar("v_factors", v_factors)
        .scalar("dy_factors", dy_factors);
}

KernelCall& Packed::bind(KernelCall& call, const Heads& heads) const {
    Heads blocks = heads;  // whose strides count blocks
    blocks.q = in_blocks(heads.q_matrix, q_blocks);
    blocks.k = in_blocks(heads.k_matrix, k_blocks);
    blocks.v = in_blocks(heads.v_matrix, k_blocks);
    return bind_heads(call, blocks)
        .scalar("k_planes", k_planes)
        .scalar("v_planes", v_planes)
        .scalar("q_factors", q_factors)
        .scalar("k_factors", k_factors)
        .scalar("v_factors", v_factors);
}

double Packed::seconds(const Traits& device) const {
    return 2 * static_cast<double>(bytes) / (std::max(1.0, device.gbytes_per_s) * 0.7e9) +
           device.launch_us * 1e-6;
}

double Packed::waste(const Heads& heads, std::int64_t rows) const {
    return static_cast<double>(depth + features) /
           static_cast<double>(heads.depth + heads.features) *
           static_cast<double>(ceil_div(rows, block_rows) * block_rows) / static_cast<double>(rows);
}

Verdict PackedEngine::is_applicable(const Traits& device, const Problem& problem) const {
    if (!device.mma && !device.wgmma)
        return Verdict::no("it needs matrix instructions of a warp, which the device lacks");
    if (!device.matrix_fp16)
        return Verdict::no(
            "it needs matrix instructions for f16, which did not work when the device was "
            "opened or which DLPRIM_TRAITS turns off");
    if (Verdict verdict = check_heads(problem, std::numeric_limits<std::int32_t>::max(), true);
        !verdict)
        return verdict;
    const DType dtype = problem.inputs[0].dtype;
    if (problem.inputs[1].dtype != dtype || problem.inputs[2].dtype != dtype)
        return Verdict::no("it needs queries, keys and values of one type");
    const Packed packed(problem, heads_of(problem));
    if (lane_sums(packed) > sum_registers)
        return Verdict::no(cat("it keeps ", lane_sums(packed),
                               " sums of a lane in registers, which have room for ", sum_registers,
                               ": a head has too many features"));
    return check_local(device, local_bytes(packed));
}

double unit_seconds(const Traits& device, const Problem& problem, double flops, std::int64_t groups,
                    int resident, double pace) {
    // Those of the last round leave compute units idle.
    const double slots = static_cast<double>(resident) * std::max(1, device.compute_units);
    const double count = static_cast<double>(groups);
    const double busy = count / (std::ceil(count / slots) * slots);
    return roofline_seconds(device, problem, flops, pace / (device.wgmma ? 1 : 2) * busy);
}

Verdict check_local(const Traits& device, std::int64_t bytes) {
    const MatrixUnit unit = device.wgmma ? MatrixUnit::wgmma : MatrixUnit::mma;
    const std::int64_t there = unit_local_bytes(unit, device);
    if (there < bytes)
        return Verdict::no(
            cat("it needs ", bytes, " bytes of local memory, and the device has ", there));
    return Verdict::yes();
}

}  // namespace dlprim::attention
