// SPDX-License-Identifier: MIT
// PluginEngine: an engine of a plugin as the planner sees it.
#pragma once

#include "engine/engine.hpp"

#include <dlprim/engine_plugin.h>

#include <string>

namespace dlprim {

class PluginEngine : public Engine {
  public:
    /// `given` stays valid. Throws Error(unsupported) if it lacks a function or a name.
    PluginEngine(const dlprim_engine& given, std::string library);

    std::string version() const override { return library_; }
    bool computes_in(Precision precision) const override;
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override;
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override;
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override;
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override;
    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning& tuning, int index) const override;

  private:
    const dlprim_engine& given_;
    const std::string library_;
};

}  // namespace dlprim
