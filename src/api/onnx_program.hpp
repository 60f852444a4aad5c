// SPDX-License-Identifier: MIT
// ONNXProgram: the cached nets of an ONNXSession, as a tree. A run follows a path from a root to a
// leaf. There is a root for each set of input shapes. Each tree node has a step: a net, and the
// values that the host reads when the net is done because the model cannot be imported further
// without them. The values that were read select the child.
//
//   input shapes -> step: net, read a value -> (the value) -> step: net, read -> ... -> leaf: net
//
// Where a run reaches a tree node that has no step yet, the model is imported again: the importer
// takes the values that the run has read so far, arrives at the same place, and makes the next
// steps. When there are too many leaves, or they keep too much memory, the one that was used least
// recently is dropped, with the tree nodes that lead to no other leaf.
//
// All nets read the model's values in the same memory (ValueMemory), and so they do with what setup
// makes of these (KeptValues). Since one net runs at a time,
// they take scratch memory from the context's pool for the time of a run.
#pragma once

#include "api/model_values.hpp"
#include "api/net_impl.hpp"
#include "formats/onnx/importer.hpp"

#include <dlprim/onnx_session.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// The inputs that a caller of the model has to give (ONNXModel::inputs()).
std::vector<ONNXInput> declared_inputs(const onnx::Model& model);

class ONNXProgram {
  public:
    ONNXProgram(const Context& context, std::shared_ptr<const onnx::Model> model,
                const ONNXSessionOptions& options);
    ~ONNXProgram();

    /// Values are given and returned by name. The caller has checked that the model has all inputs
    /// that are given, and that none is missing.
    ONNXSession::Values run(const ONNXSession::Values& inputs);

    const Context& context() const { return context_; }
    const onnx::Model& model() const { return *model_; }
    std::int64_t nets_made() const { return nets_made_; }
    std::int64_t host_nodes() const { return host_nodes_; }

  private:
    friend class ONNXRun;

    /// A tensor that differs from run to run: an input, or the result of a host function. `device`
    /// and `host` are its memory for nets on the device and on the host; undefined without such.
    struct Slot {
        TensorSpec spec;
        Tensor device, host;
    };
    /// The place of a value: it is known since the import, is in a slot, or is a net's output.
    struct Place {
        onnx::HostValue known;
        int slot = -1;
        Tensor tensor;
    };
    /// The net of a part, and what the host does when the net is done.
    struct Step {
        std::shared_ptr<NetImpl> net;  ///< null if the part has no operators
        std::vector<Tensor> outputs;   ///< of the net, in the part's order
        std::vector<Place> reads;      ///< the values that the host reads afterwards
        onnx::HostFunction function;   ///< computes values from these; may be empty
    };
    /// An output of the model.
    struct Result {
        ONNXValue value;                              ///< if it is strings, a known tensor, or none
        std::optional<Place> place;                   ///< if it is a tensor that is computed
        std::optional<ONNXMaps> maps;                 ///< the keys, if `place` has maps' values
        std::optional<std::vector<Result>> elements;  ///< if it is a sequence
    };
    /// A node of the tree.
    struct Node {
        Node* parent = nullptr;
        std::string key;  ///< among the parent's children
        std::vector<Slot> slots;
        std::unique_ptr<Step> step;  ///< null until a run has made it
        std::map<std::string, std::unique_ptr<Node>> children;
        bool is_leaf = false;
        std::vector<Result> results;  ///< of a leaf, in the order of the model's outputs
        std::uint64_t last_use = 0;
        std::int64_t host_nodes = 0;  ///< of a leaf
        std::uint64_t bytes = 0;      ///< that its slots and its net keep
    };

    ONNXSession::Values run_once(const ONNXSession::Values& inputs);
    /// Drops leaves, the least recently used first, until at most `most` are left.
    void drop_leaves(std::size_t most);
    /// Does so until they are within the limits of the options, but for one.
    void drop_surplus();
    void drop(Node* node);
    void count(Node& node, std::uint64_t bytes) {
        node.bytes += bytes;
        bytes_ += bytes;
    }
    /// A context of the host. Nets of a few integers, such as sizes computed from sizes, run there.
    const Context& host();

    Context context_;
    std::optional<Context> host_;
    std::shared_ptr<const onnx::Model> model_;
    ONNXSessionOptions options_;
    onnx::ImportLimits limits_;
    // What the nets share outlives the nodes.
    ValueMemory memory_;
    onnx::ValueCopies copies_;
    KeptValues kept_, host_kept_;  ///< of the device, and of the host beside it
    Node top_;                     ///< its children are the roots, by input shapes
    std::vector<Node*> leaves_;
    std::uint64_t bytes_ = 0;  ///< that all nodes keep
    std::uint64_t uses_ = 0;
    std::int64_t nets_made_ = 0;
    std::int64_t host_nodes_ = 0;  ///< of the last run
};

}  // namespace dlprim
