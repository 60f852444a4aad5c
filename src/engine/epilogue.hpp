// SPDX-License-Identifier: MIT
// Epilogues for engines: OpenCL text and argument binding, and the same on the host.
//
// A kernel source that wants one holds, once, at the end of its parameter list the word
// EPILOGUE_PARAMETERS, and calls EPILOGUE(v, at) where v is a float lvalue and `at` the element of
// the (plain) output it goes to. with_epilogue() puts the parameters and the macro in. Where the
// source says EPILOGUE4, EPILOGUE4(v, at) does the same to a float4 whose `at` is a multiple of 4,
// if EPILOGUE_ALIGNED: all operands begin at such a place.
#pragma once

#include "engine/launch.hpp"
#include "engine/problem.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// The source with EPILOGUE_PARAMETERS replaced by ", global const float* e0, ulong e0_offset, ..."
/// (one pair an add stage) and EPILOGUE(v, at) defined in front. `lanes` over 1: v is a vector of
/// that many floats and `at` the element, aligned to it, of its first lane. `processor`: in the
/// words that compilers for processors make most of.
std::string with_epilogue(std::string source, const Epilogue& epilogue, int lanes = 1,
                          bool processor = false);
/// The same for a problem whose add operands may be half or bfloat16 (`ushort` parameters), which
/// may begin anywhere.
std::string with_epilogue(std::string source, const Problem& problem, int lanes = 1);
/// Binds e0, e1, ... of a kernel made by with_epilogue().
void bind_epilogue(KernelCall& call, const Epilogue& epilogue);
void bind_epilogue(KernelCall& call, const Problem& problem);

/// The epilogue on the host, with operands bound.
class HostEpilogue {
  public:
    HostEpilogue(const Epilogue& epilogue, std::span<const BufferRef> operands);
    bool empty() const { return stages_.empty(); }
    /// v[i] becomes the epilogue of v[i] for output elements at + i, i < count.
    void apply(float* v, std::int64_t at, std::int64_t count) const;

  private:
    enum class Way { add, relu, relu6, general };
    struct Stage {
        Way way;
        const float* operand;
        const EpilogueStage* stage;
    };
    std::vector<Stage> stages_;
};

}  // namespace dlprim
