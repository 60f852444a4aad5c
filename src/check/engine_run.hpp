// SPDX-License-Identifier: MIT
// EngineRun: one engine on one problem, outside of a plan, with memory of its own. Checks of
// engines and the tuner run engines so.
#pragma once

#include "check/compare.hpp"
#include "engine/engine.hpp"
#include "engine/launch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// A way to compute a problem.
struct EngineWay {
    const Engine* engine = nullptr;
    Problem problem;  ///< with its layouts set
    Tuning tuning;
};

/// The contents of a plain tensor, in row-major order.
using PlainBytes = std::vector<std::byte>;

/// The elements of an operand that share a place in memory have one value: that of the last one.
PlainBytes with_shared_places(PlainBytes plain, const Operand& operand);

class EngineRun {
  public:
    /// Runs a launch whose programs are not compiled, and waits for it. Returns false if it cannot.
    using Runner = std::function<bool(Launch&, std::span<const BufferRef>)>;

    /// Lays out the inputs, and fills the outputs with NaN, so that what is not written shows. The
    /// contexts must outlive this. `converter` is the context whose engines
    /// convert between layouts: the device's own, or the host's, which no OpenCL compiler has
    /// touched. If there is a runner, it runs the launch. So many elements as `margin` lie before
    /// and behind each operand that is not packed: see faults().
    EngineRun(ContextImpl& device, ContextImpl& converter, EngineWay way,
              const std::vector<PlainBytes>& inputs, Runner runner = {}, std::uint64_t margin = 0);

    /// Runs so often, and waits. Makes the launch at the first call. A runner runs once.
    void run(int times = 1);

    /// The outputs. If they are large and `sampled`, 32 evenly spaced parts of each, of which the
    /// last is at its end.
    Results results(bool sampled = false);

    /// Runs once more, and says what is wrong besides results: the bits differ from those of the
    /// first run, a margin is written, or the padding of channels of an output holds other numbers
    /// than 0. Empty if nothing is.
    std::string faults();

    /// The name under which the launch refuses an index.
    static std::string owner_of(const Engine& engine);

  private:
    using Memory = std::shared_ptr<Buffer>;
    const Operand& operand(std::size_t i) const;  ///< inputs, then outputs
    std::uint64_t margin_bytes(std::size_t i) const;
    void allocate();
    PlainBytes stored(std::size_t i);
    bool has_zero_padding(std::size_t i, const PlainBytes& memory);
    void write_input(std::size_t i, const PlainBytes& plain);
    /// Converts memory of the converter between layouts.
    Memory reordered(const BufferRef& from, const Operand& operand, const Layout& from_layout,
                     const Layout& to_layout);
    std::unique_ptr<Launch> build() const;
    std::vector<double> read_output(std::size_t k, bool sampled);

    ContextImpl& device_;
    ContextImpl& converter_;
    EngineWay way_;
    Runner runner_;
    std::uint64_t margin_;
    std::vector<Memory> memory_;
    std::vector<BufferRef> operands_;  ///< inputs, outputs, temporary memory
    std::unique_ptr<Launch> launch_;
};

}  // namespace dlprim
