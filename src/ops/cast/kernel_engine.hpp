// SPDX-License-Identifier: MIT
// KernelEngine: what the engines of Cast on OpenCL devices share. Their kernels convert one element
// per work-item; the head of the source says of which types.
#pragma once

#include "engine/engine.hpp"

#include <string>

namespace dlprim::cast {

class KernelEngine : public Engine {
  public:
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override;
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override;
    std::vector<std::string> sources() const override { return {source_}; }

  protected:
    /// `source`: a file in kernels; `kernel`: the name of its kernel.
    KernelEngine(std::string name, const char* source, const char* kernel)
        : Engine(std::move(name), "Cast", false), source_(source), kernel_(kernel) {}
    /// Whether it converts these types.
    virtual Verdict accepts(const Problem& problem) const = 0;
    /// Defines in front of the source, but for NEEDS_FP64. The option parsers of some drivers do
    /// not accept macros with arguments.
    virtual std::string head(const Problem& problem) const = 0;

  private:
    const char *source_, *kernel_;
};

}  // namespace dlprim::cast
