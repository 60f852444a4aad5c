// SPDX-License-Identifier: MIT
// ONNXSession: runs an ONNX model whose shapes, branches and loops may depend on values.
//
// A Net is one static network. A session makes as many nets as a run needs. It imports the model's
// nodes in order. Where a node needs the contents of a value (the sizes of a Reshape, the condition
// of an If, a trip count, the positions that NonZero finds), it runs the nodes imported so far,
// reads that value and continues. A later run with the same input shapes, in which these values are
// the same, finds its nets in a cache and imports nothing. docs/onnx.md describes it.
//
// Ownership: a session shares the model with the ONNXModel that it was made from, and owns its nets
// with their device memory. It can be moved; every call on the moved-from session throws
// Error(invalid_argument).
//
// Threads: one thread at a time, for all sessions and nets of a context together.
//
// Waiting: run() waits for the device. The first run for input shapes also compiles.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/onnx.hpp>
#include <dlprim/onnx_value.hpp>
#include <dlprim/precision.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class ONNXProgram;

struct ONNXSessionOptions {
    /// The precision of operators (dlprim/precision.hpp).
    Precision precision = Precision::fp32;
    /// How many programs the cache keeps, at least 1. A program is the nets of one run; it serves
    /// runs with the same input shapes and the same values that were read in between. The program
    /// that was used least recently is dropped. Programs share the model's values, and the memory
    /// of what a run computes.
    int max_programs = 512;
    /// About how many bytes the programs may keep beside what they share: packed weights, inputs,
    /// outputs, and the host's description of each net. The program of the last run is kept in any
    /// case. All others are dropped where a run would lack memory.
    std::uint64_t max_program_bytes = std::uint64_t{1} << 30;
    /// The most iterations of one Loop or Scan, and the most steps of an RNN, LSTM or GRU. More are
    /// an error.
    std::int64_t max_iterations = 1 << 14;
    /// The most nodes that one run may import. A node of a loop's body counts once per iteration,
    /// and each iteration counts as one more. More are an error.
    std::int64_t max_nodes = 1 << 18;
    /// The most bytes that nodes may produce on the host while the model is imported, in addition
    /// to eight times the bytes of its initialisers. Such nodes are ConstantOfShape, Range, and
    /// constants in another shape or type. More is an error.
    std::uint64_t max_known_bytes = std::uint64_t{1} << 30;
};

class ONNXSession {
  public:
    using Values = std::map<std::string, ONNXValue>;

    /// Imports nothing yet, so that a model with an operator that is not supported fails in run().
    /// Throws Error(invalid_argument) for an ONNXModel without a model and for options below 1.
    ONNXSession(const Context& context, const ONNXModel& model,
                const ONNXSessionOptions& options = {});
    ~ONNXSession();
    ONNXSession(ONNXSession&&) noexcept;
    ONNXSession& operator=(ONNXSession&&) noexcept;

    const Context& context() const;
    /// What run() takes: ONNXModel::inputs().
    std::vector<ONNXInput> inputs() const;
    std::vector<std::string> output_names() const;

    /// Runs the model and returns its outputs by name. Every input of inputs() must be given,
    /// except optional ones. An initialiser that the graph also names as an input may be given; the
    /// value then replaces the stored one. Sizes that the model leaves open are those of the given
    /// inputs; where it gives such a size a name, all sizes of that name must be equal.
    ///
    /// Throws an Error that names the model, and the node or the input: invalid_argument (an input
    /// is missing, unknown, or of another type or shape than declared; the sentence has both),
    /// unsupported (an operator, attribute or type; a limit of the options), format (a node breaks
    /// ONNX's rules), out_of_memory. After an error the session can be used again.
    Values run(const Values& inputs);

    /// How many nodes of the model's graph needed no operator of a net in the last run: their
    /// results were known before the run, are views, or were computed on the host (strings,
    /// sequences, positions).
    std::int64_t host_nodes() const;

    /// The number of nets made since the session was. It does not grow while runs find all their
    /// nets in the cache.
    std::int64_t nets_made() const;

  private:
    ONNXProgram& program() const;

    std::unique_ptr<ONNXProgram> program_;
};

}  // namespace dlprim
