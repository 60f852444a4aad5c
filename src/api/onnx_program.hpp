// SPDX-License-Identifier: MIT
// ONNXProgram: the ways through a model that runs have taken, as a tree. Every node of the tree has
// nets that its run needs up to the next value that the host must know; the value chooses the
// child.
//
//   input shapes -> step: net, read a value -> (the value) -> step: net, read -> ... -> leaf: net
//
// A run walks down from the root of its input shapes. Where it comes to a place that no run has
// been at, the model is imported: the importer goes the same way, by the values that were read, and
// makes the steps behind it. The leaf that was used least recently is dropped when there are too
// many, with what leads to no other one.
#pragma once

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

/// What a model takes, as a program sees it.
std::vector<ONNXInput> declared_inputs(const onnx::Model& model);

class ONNXProgram {
  public:
    ONNXProgram(const Context& context, std::shared_ptr<const onnx::Model> model,
                const ONNXSessionOptions& options);
    ~ONNXProgram();

    /// Values by the names of inputs and outputs, which are complete and known to the model.
    ONNXSession::Values run(const ONNXSession::Values& inputs);

    const Context& context() const { return context_; }
    const onnx::Model& model() const { return *model_; }
    std::int64_t nets_made() const { return nets_made_; }
    std::int64_t host_nodes() const { return host_nodes_; }

  private:
    friend class ONNXRun;

    /// A value that comes with a run, or that a function of the host makes, and its memory where a
    /// net reads it, on the device or on the host.
    struct Slot {
        TensorSpec spec;
        Tensor device, host;
    };
    /// Where a value is found: it is known, comes with the run (its slot's number), or is a tensor.
    struct Place {
        onnx::HostValue known;
        int slot = -1;
        Tensor tensor;
    };
    /// The net of a part, and what the host does behind it.
    struct Step {
        std::shared_ptr<NetImpl> net;  ///< null where nothing is to be computed
        std::vector<Tensor> outputs;   ///< in the part's order
        std::vector<Place> reads;      ///< what the host reads then
        onnx::HostFunction function;   ///< what it computes of that; empty: nothing
    };
    /// An output of the model.
    struct Result {
        ONNXValue value;             ///< of strings, of known tensors, or nothing
        std::optional<Place> place;  ///< of a tensor
        std::optional<std::vector<Result>> elements;
    };
    struct Node {
        Node* parent = nullptr;
        std::string key;  ///< among the parent's children
        std::vector<Slot> slots;
        std::unique_ptr<Step> step;  ///< null: no run came further
        std::map<std::string, std::unique_ptr<Node>> children;
        bool is_leaf = false;
        std::vector<Result> results;  ///< of a leaf, in the order of the model's outputs
        std::uint64_t last_use = 0;
        std::int64_t host_nodes = 0;  ///< of a leaf
    };

    void make_room();
    void drop(Node* node);
    /// The host, on which nets of few integers run: sizes that are computed from sizes.
    const Context& host();

    Context context_;
    std::optional<Context> host_;
    std::shared_ptr<const onnx::Model> model_;
    ONNXSessionOptions options_;
    onnx::ImportLimits limits_;
    Node top_;  ///< its children are the roots, by input shapes
    std::vector<Node*> leaves_;
    std::uint64_t uses_ = 0;
    std::int64_t nets_made_ = 0;
    std::int64_t host_nodes_ = 0;  ///< of the last run
};

}  // namespace dlprim
