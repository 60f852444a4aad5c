// SPDX-License-Identifier: MIT
// Engines of operators that only move elements.
#include "engine/copy_engines.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace dlprim {

namespace {

/// The parts that both engines share.
template <typename Copy>
class CopyEngine : public Engine, public MovesElements {
  public:
    CopyEngine(const Movement<Copy>& movement, bool on_host)
        : Engine(std::string(on_host ? movement.host : movement.copy), movement.op, on_host),
          movement_(movement) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return copy_verdict(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return movement_.layouts != nullptr ? movement_.layouts(device, problem)
                                            : Engine::layouts(device, problem);
    }
    bool addresses_strides() const override { return std::is_same_v<Copy, StridedCopy>; }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem, static_cast<int>(problem.inputs.size()));
    }
    std::vector<StridedCopy> moves(const Problem& problem) const override {
        if constexpr (std::is_same_v<Copy, StridedCopy>) return movement_.copies(problem);
        return {};
    }

  protected:
    Movement<Copy> movement_;
};

template <typename Copy>
class DeviceCopy : public CopyEngine<Copy> {
  public:
    explicit DeviceCopy(const Movement<Copy>& movement) : CopyEngine<Copy>(movement, false) {}
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const std::vector<Copy> copies = this->movement_.copies(problem);
        const int output = static_cast<int>(copies.size());
        for (int i = 0; i < output; ++i)
            add_copy(*launch, context, copies[static_cast<std::size_t>(i)], i, output);
        return launch;
    }
    std::vector<std::string> sources() const override { return {strided_copy_source}; }
};

template <typename Copy>
class HostCopy : public CopyEngine<Copy> {
  public:
    explicit HostCopy(const Movement<Copy>& movement) : CopyEngine<Copy>(movement, true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [copies = this->movement_.copies(problem)](HostPool& pool,
                                                       std::span<const BufferRef> operands) {
                for (std::size_t i = 0; i < copies.size(); ++i)
                    host_copy(pool, copies[i], operands[i].host(), operands[copies.size()].host());
            });
    }
};

template <typename Copy>
void add_both(EngineRegistry& engines, const Movement<Copy>& movement) {
    engines.add(std::make_unique<DeviceCopy<Copy>>(movement));
    engines.add(std::make_unique<HostCopy<Copy>>(movement));
}

}  // namespace

std::vector<StridedCopy> moves_of(const Engine& engine, const Problem& problem) {
    const auto* const mover = dynamic_cast<const MovesElements*>(&engine);
    if (mover == nullptr || !problem.epilogue.empty()) return {};
    return mover->moves(problem);
}

Ints memory_strides(const Operand& operand) {
    if (operand.layout.is_strided()) return operand.layout.strides;
    return physical_shape(operand.shape, operand.layout).strides();
}

void add_copy_engines(EngineRegistry& engines, const Movement<StridedCopy>& movement) {
    add_both(engines, movement);
}

void add_copy_engines(EngineRegistry& engines, const Movement<PaddedCopy>& movement) {
    add_both(engines, movement);
}

}  // namespace dlprim
