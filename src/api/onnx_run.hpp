// SPDX-License-Identifier: MIT
// ONNXRun: one run of an ONNXProgram. It follows the program's tree as far as its steps exist, and
// imports the model to make the missing ones.
#pragma once

#include "api/onnx_program.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlprim {

class ONNXRun : public onnx::StageRunner {
  public:
    using Node = ONNXProgram::Node;
    using Place = ONNXProgram::Place;
    using Step = ONNXProgram::Step;
    using Result = ONNXProgram::Result;

    ONNXRun(ONNXProgram& program, const ONNXSession::Values& inputs);

    /// Runs the steps from the root to a leaf, and returns the model's outputs.
    ONNXSession::Values run();
    /// The tree node that the run has reached, also when run() has thrown.
    Node& node() { return *node_; }

    onnx::HostValue read(const onnx::Part& part, onnx::Ref wanted) override;
    std::vector<TensorSpec> call(const onnx::Part& part, const std::vector<onnx::Ref>& wanted,
                                 const onnx::HostFunction& function) override;

  private:
    /// The result of a step: the value that was read, or the results of its function.
    struct Record {
        const Step* step = nullptr;
        std::vector<onnx::HostValue> values;
    };

    onnx::Fed feed(const ONNXValue& value);
    void advance();
    /// Enqueues a copy of a slot's contents, which live as long as the run.
    void copy(const HostTensor& contents, const Tensor& memory);
    Record execute(const Step& step);
    onnx::HostValue contents(const Place& place) const;
    ONNXValue result(const Result& from) const;

    void import();
    Record run_part(const onnx::Part& part, const std::vector<onnx::Ref>& wanted,
                    const onnx::HostFunction& function);
    /// `operators`: those of the part.
    std::unique_ptr<Step> make_step(const onnx::Part& part,
                                    std::vector<onnx::BuiltOperator> operators,
                                    bool on_host = false);
    bool suits_host(const onnx::Part& part, const std::vector<onnx::Ref>& wanted) const;
    void find_outputs(const onnx::Part& part, const Step& step);
    Tensor memory_of(onnx::Ref value, bool on_host);
    Place place_of(onnx::Ref value);
    Result result_of(const onnx::AnyValue& value);

    /// Copies to the device that the queue may not have made yet. An error that ends the run waits
    /// for them, since what they read ends with it.
    struct Copies {
        Copies() = default;
        Copies(const Copies&) = delete;
        Copies& operator=(const Copies&) = delete;
        ~Copies();
        void wait();

        Queue* queue = nullptr;  ///< null: there are none
    };

    ONNXProgram& program_;
    std::map<std::string, onnx::Fed> fed_;
    std::string key_;
    Node* node_;
    std::vector<ONNXProgram::Slot*> slots_;
    std::vector<onnx::HostValue> contents_;  ///< of the slots
    std::vector<Record> records_;
    std::size_t replayed_ = 0;  ///< records that the importer has seen
    onnx::Builder* builder_ = nullptr;
    std::map<onnx::Ref, Tensor> computed_;
    mutable Copies copies_;  ///< of contents and records
};

}  // namespace dlprim
