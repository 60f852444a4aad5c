// SPDX-License-Identifier: MIT
// Epilogues for engines: OpenCL text and argument binding, and the same on the host.
//
// A kernel source with an epilogue contains the word EPILOGUE_PARAMETERS once, at the end of its
// parameter list, and calls EPILOGUE(v, at). There v is a float lvalue and `at` is the index of its
// element in the (plain) output. with_epilogue() inserts the parameters and defines the macro. A
// source may also use EPILOGUE4(v, at), for a float4 v and an `at` that is a multiple of 4, if
// EPILOGUE_ALIGNED: then all operands are aligned for that.
#pragma once

#include "engine/host_activation.hpp"
#include "engine/launch.hpp"
#include "engine/problem.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// Returns the source with EPILOGUE_PARAMETERS replaced by ", global const float* e0, ulong
/// e0_offset, ..." (one pair per add stage) and with EPILOGUE(v, at) defined at its beginning. If
/// `lanes` is above 1, v is a vector of that many floats and `at` is the element of its first lane,
/// a multiple of `lanes`. `processor`: use the forms that compilers for CPUs optimise best.
std::string with_epilogue(std::string source, const Epilogue& epilogue, int lanes = 1,
                          bool processor = false);
/// The same for a problem whose add operands may be half or bfloat16 (`ushort` parameters) and may
/// be unaligned.
std::string with_epilogue(std::string source, const Problem& problem, int lanes = 1);
/// Binds e0, e1, ... of a kernel that with_epilogue() made.
void bind_epilogue(KernelCall& call, const Epilogue& epilogue);
void bind_epilogue(KernelCall& call, const Problem& problem);

/// The epilogue on the host, with operands bound.
class HostEpilogue {
  public:
    HostEpilogue(const Epilogue& epilogue, std::span<const BufferRef> operands);
    bool empty() const { return stages_.empty(); }
    /// Applies the epilogue to v[i], which belongs to output element at + i, for i < count.
    void apply(float* v, std::int64_t at, std::int64_t count) const;

  private:
    enum class Way { add, relu, relu6, hardswish, general };
    struct Stage {
        Way way;
        const float* operand = nullptr;
        std::optional<HostActivation> activation = {};
    };
    std::vector<Stage> stages_;
};

}  // namespace dlprim
