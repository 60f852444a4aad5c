// SPDX-License-Identifier: MIT
// The engines of PoolingND, AdaptivePooling and their gradients: each function registers those of
// one file.
#pragma once

#include "engine/engine.hpp"
#include "ops/pooling_nd/windows.hpp"

#include <string>

namespace dlprim::pooling_nd {

void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

/// What the engines of both files share: an engine for each of the four types.
class Base : public Engine {
  public:
    Base(const std::string& way, bool adaptive, bool backward);
    std::string_view name() const override { return name_; }
    std::string_view op() const override { return op_; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override;

  protected:
    /// The geometry of the forward direction.
    Windows windows(const Problem& problem) const;
    bool backward() const { return backward_; }

  private:
    bool adaptive_, backward_;
    std::string op_, name_;
};

}  // namespace dlprim::pooling_nd
