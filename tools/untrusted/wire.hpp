// SPDX-License-Identifier: MIT
// What dlprim_reader answers to the command that started it: numbers of 8 bytes in the order of the
// machine, texts and data with their length before them. Both programs are of one build.
//
// An answer is wire_mark, a Kind, what follows for that kind, and wire_end:
//   error    the kind of the Error, its sentence
//   tensors  their number; of each name, type, rank, sizes, data
//   steps    0, or 1 and a Preprocessing: five sizes, means, deviations, names of classes
//   image    width, height, channels, pixels
//   model    a network's JSON, then as tensors
#pragma once

#include <cstdint>

namespace dlprim::tools {

enum class Kind : std::uint64_t { error, tensors, steps, image, model };

constexpr std::uint64_t wire_mark = 0x646c7072696d0001, wire_end = 0x646c7072696d00ff;
/// The descriptor to which dlprim_reader writes. Libraries may print to standard output.
constexpr int answer_descriptor = 3;

}  // namespace dlprim::tools
