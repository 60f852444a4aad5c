// SPDX-License-Identifier: MIT
// Packed: q, k, v and for gradients dy as halves in the workspace of attention's engines for matrix
// units (kernels/attention/planes.clh).
#pragma once

#include "engine/engine.hpp"
#include "ops/attention/heads.hpp"

#include <cstdint>
#include <string>

namespace dlprim::attention {

struct Packed {
    Packed(const Problem& problem, const Heads& heads);

    std::int64_t planes;              ///< 2: exact floats; 1: upper halves alone
    std::int64_t depth, features;     ///< padded
    std::int64_t q_blocks, k_blocks;  ///< of a head: blocks of 64 rows
    std::int64_t q_groups, k_groups, v_groups, dy_groups;  ///< blocks of all heads
    std::int64_t k_planes, v_planes, dy_planes, q_factors, k_factors, v_factors, dy_factors, bytes;

    /// Bytes of local memory of `rows` rows of the operands q or k, and v or dy.
    std::int64_t tile_bytes(std::int64_t rows) const {
        return planes * rows * (2 * depth + 2 * features + 32);
    }
    /// Compiler options of all kernels that read blocks.
    std::string options() const;
    /// The launch that packs all operands.
    KernelCall pack_call(ContextImpl& context, const Problem& problem, const Heads& heads) const;
    /// Binds the parameters of heads.clh, whose strides count blocks, and where k, v and the
    /// factors are in the workspace.
    KernelCall& bind(KernelCall& call, const Heads& heads) const;
    /// Seconds for packing: it takes as long as memory.
    double seconds(const Traits& device) const;
    /// The operations that a tile does beyond the last row and feature, as a factor.
    double waste(const Heads& heads, std::int64_t rows) const;
};

/// Whether the device has so many bytes of local memory for a work-group.
Verdict check_local(const Traits& device, std::int64_t bytes);

/// What attention's engines for matrix units have in common: operands as blocks in the workspace.
class PackedEngine : public Engine {
  public:
    PackedEngine(std::string name, std::string_view op) : Engine(std::move(name), op, false) {}
    bool computes_in(Precision) const override { return true; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return static_cast<std::uint64_t>(Packed(problem, heads_of(problem)).bytes);
    }

  protected:
    /// Bytes of a work-group's local memory at least.
    virtual std::int64_t local_bytes(const Packed& packed) const = 0;
    /// How many sums of results a lane keeps in registers.
    virtual std::int64_t lane_sums(const Packed& packed) const = 0;
};

/// Seconds of `flops` operations on a matrix unit in `groups` work-groups, `resident` of which run
/// beside each other on a compute unit. `pace` is a multiple of the peak of a device's float units,
/// measured on an H200.
double unit_seconds(const Traits& device, const Problem& problem, double flops, std::int64_t groups,
                    int resident, double pace);

constexpr std::int64_t packed_features = 128;  ///< most of them, for warpgroups
/// Of 255 registers a lane has, which hold sums: operands, scores and addresses take the others.
constexpr std::int64_t sum_registers = 192;
constexpr std::int64_t block_rows = 64;   ///< of blocks, and of attention.matrix's work-groups
constexpr std::int64_t tile_items = 128;  ///< work-items of these
constexpr std::int64_t warpgroup_items = 128;
constexpr std::int64_t panel_bytes =
    8192;  ///< of 64 rows and columns (kernels/attention/panels.clh)

}  // namespace dlprim::attention
