// SPDX-License-Identifier: MIT
// ONNXSession: runs an ONNX model whose shapes, branches and loops may depend on values.
//
// A Net is one static network. A session makes as many as a run needs: it walks the model's nodes,
// and where a node needs the contents of a value to go on (the sizes of a Reshape, the condition of
// an If, a trip count, the positions that NonZero finds), it runs what it has, reads that value and
// continues. A second run with the same input shapes and the same values on the way finds its nets
// in a cache and imports nothing. docs/onnx.md describes it.
//
// Ownership: a session shares the model with the ONNXModel that it was made from and owns its nets
// with their device memory. Threads: one thread at a time, for all sessions and nets of a context
// together. run() waits for the device.
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
    /// How many ways through the model are kept, at least 1. A way is the nets of one run: of one
    /// set of input shapes and of values read on the way. The one used least recently is dropped.
    int max_programs = 8;
    /// How often one Loop or Scan may go round, and how many steps RNN, LSTM and GRU may have. More
    /// are an error.
    std::int64_t max_iterations = 1 << 14;
    /// How many nodes one run may import, each node of a loop's body once per iteration, and each
    /// iteration as one more.
    std::int64_t max_nodes = 1 << 18;
    /// How many bytes of values nodes may make on the host while the model is imported, beyond
    /// eight times what its initialisers take: ConstantOfShape, Range, constants in another shape
    /// or type. More is an error.
    std::uint64_t max_known_bytes = std::uint64_t{1} << 30;
};

class ONNXSession {
  public:
    using Values = std::map<std::string, ONNXValue>;

    /// Nothing is imported yet, so that a model with an operator that is not supported fails in
    /// run(). Throws Error(invalid_argument) for a model that holds none and for options below 1.
    ONNXSession(const Context& context, const ONNXModel& model,
                const ONNXSessionOptions& options = {});
    ~ONNXSession();
    ONNXSession(ONNXSession&&) noexcept;
    ONNXSession& operator=(ONNXSession&&) noexcept;

    const Context& context() const;
    /// What run() takes: ONNXModel::inputs().
    std::vector<ONNXInput> inputs() const;
    std::vector<std::string> output_names() const;

    /// Runs the model. Every input of inputs() must be given, except optional ones; an initialiser
    /// that the graph also names as an input may be given, and then takes the place of its stored
    /// value. Open sizes are those of the inputs, and one symbol has one size. Throws an Error that
    /// names the model, and the node or the input: invalid_argument (an input that is missing,
    /// unknown, or of another type or shape than declared, with both), unsupported (an operator,
    /// attribute or type; a limit of the options), format (a node that breaks ONNX's rules),
    /// out_of_memory. After an error the session can be used again.
    Values run(const Values& inputs);

    /// How many nodes of the model's graph needed no operator of a net in the last run: their
    /// results were known before it, are views, or were computed on the host (strings, sequences,
    /// positions).
    std::int64_t host_nodes() const;

    /// How many times a net was made, since the session began. It does not grow while runs find
    /// all that they need in the cache.
    std::int64_t nets_made() const;

  private:
    ONNXProgram& program() const;

    std::unique_ptr<ONNXProgram> program_;
};

}  // namespace dlprim
