// SPDX-License-Identifier: MIT
// The engines of Pooling and its gradient: each function registers those of one file. Those of
// images have plain windows of two dimensions (Windows::is_plain()), the others all the rest.
#pragma once

#include "ops/pooling/windows.hpp"

namespace dlprim::pooling {

void add_image_engines(EngineRegistry& engines);          ///< images.cpp
void add_host_engines(EngineRegistry& engines);           ///< host.cpp
void add_any_rank_engines(EngineRegistry& engines);       ///< any_rank.cpp
void add_any_rank_host_engines(EngineRegistry& engines);  ///< any_rank_host.cpp

/// What all engines share: an engine is for the operator or for its gradient.
class PoolingEngine : public Engine {
  public:
    PoolingEngine(std::string_view name, bool backward, bool on_host)
        : Engine(std::string(name), backward ? backward_type : ops::Pooling::type, on_host),
          backward_(backward) {}

  protected:
    bool backward() const { return backward_; }
    /// Whether the problem has an operand of positions.
    bool has_positions(const Problem& problem) const {
        return (backward_ ? problem.inputs : problem.outputs).size() == 2;
    }

  private:
    bool backward_;
};

/// Of plain windows: all operands have the same layout, plain, channels_last or, on CPUs, blocks of
/// 16 or 8 channels. They compute in float, and without an epilogue. OpenCL's read and write 16
/// bits.
class ImageEngine : public PoolingEngine {
  public:
    using PoolingEngine::PoolingEngine;
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override;
};

/// Of other windows, and of double: in all float types.
class AnyRankEngine : public PoolingEngine {
  public:
    using PoolingEngine::PoolingEngine;
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override;
};

/// An array of images of two dimensions viewed as [outer, height, width, inner]. Plain NCHW has
/// outer N*C and inner 1, channels_last has outer N and inner C, and blocked has outer N*C/b and
/// inner b.
struct View {
    std::int64_t outer = 0, inner = 1;
    explicit View(const Operand& images);
};

}  // namespace dlprim::pooling
