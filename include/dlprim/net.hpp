// SPDX-License-Identifier: MIT
// Net: a network on one device. It is built from JSON, runs forward and backward, and loads and
// saves weights. A network whose operators are on several devices is a Net, too: a PlacedNet
// (dlprim/placed_net.hpp), for which the calls that say so throw Error(invalid_argument).
//
// Ownership: a Net owns its parameters, its plans and their memory. A plan is the net compiled for
// one set of input shapes; it owns the memory of intermediate tensors. Tensors that a Net has
// handed out, and a Solver that was made on it, keep what they need when the Net is gone. A Net can
// be moved; its Solver then works on the new one, and every call on the moved-from Net throws
// Error(invalid_argument).
//
// Threads: one thread at a time, for all nets of a context together (dlprim/context.hpp).
//
// Waiting: forward(), backward() and Solver::step() enqueue work and return. Reading a tensor
// waits. Calls that need a plan make one first where there is none, which compiles kernels and so
// can take minutes.
//
// Layout: inputs, outputs, parameters and gradients are row-major. Images are NCHW.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/memory_map.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/preprocessing.hpp>
#include <dlprim/tensor.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

enum class Mode {
    inference,   ///< forward alone, with running statistics; batch norms are folded into weights
    evaluation,  ///< computes what inference does, and backward() works
    training,    ///< batch statistics and dropout; backward() and solvers work
};

struct NetOptions {
    Mode mode = Mode::inference;
    /// Replaces the first dimension of every input. 0: as the network declares it.
    std::int64_t batch = 0;
    /// Replaces whole shapes, by the name of the input.
    std::map<std::string, Shape> input_shapes;
    /// Names of intermediate tensors that become outputs, too.
    std::vector<std::string> extra_outputs;
    /// Whether backward() also computes the gradients of float inputs.
    bool input_gradients = false;
    /// Whether backward() starts from the output_gradient() tensors, which the caller fills, and
    /// not from the losses.
    bool output_gradients = false;
    /// Drops losses, and the operators that only they need, if the network has other outputs.
    bool without_losses = false;
    /// In evaluation and training mode, whether a plan can run backward(). False saves the memory
    /// and the time that this takes.
    bool backward = true;
    /// Whether operators are fused and merged. False runs them one by one.
    bool fuse = true;
    /// Engines that must be used, as pairs of a node's name or an operator's type, and the engine's
    /// name. An engine that does not apply is an error where the key is a node's name. Where it is
    /// a type, another engine is chosen for that node.
    std::vector<std::pair<std::string, std::string>> engines;
    /// The precision of operators whose JSON sets none (dlprim/precision.hpp).
    Precision precision = Precision::fp32;
    /// Overrides, as pairs of a node's name or an operator's type, and a precision. Overrides by
    /// name apply always; overrides by type apply to operators whose JSON sets no precision. If a
    /// key appears twice, the last one wins.
    std::vector<std::pair<std::string, Precision>> precisions;
    /// Inference only. True keeps every parameter in device memory beside the packed and folded
    /// copies that kernels read. False frees parameters of 64 KiB and more once they are packed, if
    /// no kernel reads them as they are. When one of those is needed again (param(),
    /// save_weights(), a plan for other shapes that packs it in another way), it is read from the
    /// weights file again or initialised as before. The net holds the file open, so that it may be
    /// replaced or removed, but must not be written to. Tensors from param() stay valid.
    bool keep_parameters = false;
    /// Bytes of device memory that a plan may take, at most the device's; 0: the device's. Where
    /// training takes more, forward operators run a second time in backward, at the least estimated
    /// extra time that was found, so that their results need not be kept until then (Chen et al.,
    /// "Training Deep Nets with Sublinear Memory Cost", 2016). Operators that the JSON marks with
    /// "recompute" always do. Results have the same bits as without. Net::notes() says what runs
    /// again and what it costs. If the limit cannot be met, planning throws Error(out_of_memory)
    /// with the least memory that was reached.
    std::uint64_t memory_limit = 0;
    /// How many plans a Net keeps at most, at least 1. A plan serves one set of input shapes.
    /// Parameters, what is packed of them, and solver state belong to no plan. The memory of
    /// intermediate tensors is shared by plans of inference, and is a plan's own otherwise. Eight
    /// plans are kept in any case, and more as long as all together take no more than half of the
    /// device's memory. If reshape() asks for one more, the plan that was used least recently is
    /// dropped, which may wait for the copies of its inputs. Where an allocation for a plan fails,
    /// all others are dropped and it is tried once more. Shapes whose plan was dropped are planned
    /// anew when they come back: inputs must be set again, and backward() needs a forward() first.
    int max_plans = 512;
    std::uint64_t seed = 1;  ///< of initialisation and dropout
    /// Above 0, planning first measures engines on the problems that no database knows, for about
    /// this many seconds, and keeps the result in the user's database (dlprim/tuning.hpp).
    double tune_seconds = 0;
    /// Called while the net plans, compiles, tunes or profiles, by the thread that called the net:
    /// `done` of `total` steps of the work named `what` are done. An empty `what` ends the work. If
    /// it throws, the call ends and the exception arrives at the caller. The net is then as it was
    /// before the call, and can be used.
    std::function<void(std::string_view what, int done, int total)> progress;
};

/// One node of a plan, for profiles.
struct NodeReport {
    std::string name, type, engine, device;
    std::vector<std::string> fused;  ///< names of other operators that the node computes as well
    std::string part;                ///< "forward", "backward", "accumulate" or "update"
    double ms = 0;                   ///< measured; 0 without a profile
    double start_ms = 0;             ///< measured, from the first launch of the profile
    double gflop = 0;                ///< nominal operations in 10^9
    double gbytes = 0;               ///< 10^9 bytes, each operand read or written once
    double bound_ms = 0;             ///< the least time by the device's roofline
    std::int64_t params = 0;         ///< elements of the parameters of its operators
};

class NetCore;
class ONNXModel;
struct SolverOptions;

class Net {
  public:
    /// Builds a network from JSON; docs/json.md says what it may hold. Throws an Error that names
    /// the operator and says what is wrong with it. Kernels are compiled later, by prepare() or the
    /// first forward().
    static Net from_json_file(const Context& context, const std::string& path,
                              const NetOptions& options = {});
    static Net from_json(const Context& context, std::string_view text,
                         const NetOptions& options = {});
    /// Builds a network from a model in ONNX's format, with the model's weights; docs/onnx.md says
    /// what is read. Throws an Error that names the file, and the node that is not supported.
    static Net from_onnx_file(const Context& context, const std::string& path,
                              const NetOptions& options = {});
    /// A Net without a network, for load_model(). Until then every call that needs a network throws
    /// Error(invalid_argument).
    explicit Net(const Context& context, const NetOptions& options = {});
    /// Takes the model and its weights in place of the network that this Net has. Context and
    /// options stay. Tensors that were handed out, and a Solver, belong to the network before. Not
    /// for a PlacedNet.
    void load_model(const ONNXModel& model);
    ~Net();
    Net(Net&&) noexcept;
    Net& operator=(Net&&) noexcept;

    const Context& context() const;     ///< of a PlacedNet that of its first part
    const NetOptions& options() const;  ///< as given, with the changes that reshape() has made

    std::vector<std::string> input_names() const;
    std::vector<std::string> output_names() const;
    std::vector<std::string> loss_names() const;
    std::map<std::string, double> loss_weights() const;
    std::vector<std::string> param_names() const;  ///< trainable and other ones
    bool is_trainable(const std::string& param) const;
    /// Whether an output is a loss. False where NetOptions::without_losses drops all of them.
    bool has_loss() const;
    /// The number of classes, if the input holds class numbers; else 0.
    std::int64_t label_classes(const std::string& input);

    // Shapes and types that the plan will have. These calls do not plan the net. They throw
    // Error(not_found), which offers the nearest name.
    Shape input_shape(const std::string& name) const;
    DType input_dtype(const std::string& name) const;
    Shape param_shape(const std::string& name) const;
    DType param_dtype(const std::string& name) const;

    // The network's own tensors, which are read and written with Tensor's copies. These calls plan
    // the net. The net works on the same tensors until reshape(), load_model() or the making of a
    // Solver; then it has others, and the program must ask again. Parameters stay the same over
    // reshape(). Inputs and parameters hold zeros until they are set. One counts as set (see
    // forward()) once input() or param() was called for it, since the program may write to its
    // tensor at any time. They throw Error(not_found), which offers the nearest name.
    Tensor input(const std::string& name);
    /// Throws Error(invalid_argument) before a forward() of the shapes that the net has now.
    Tensor output(const std::string& name);
    Tensor param(const std::string& name);
    /// What backward() computes, of the shape and type of its parameter or input.
    Tensor gradient(const std::string& param_or_input);
    /// What backward() starts from, with NetOptions::output_gradients. Not for a PlacedNet.
    Tensor output_gradient(const std::string& name);

    // The names that gradient() and output_gradient() take.
    std::vector<std::string> gradient_names();
    std::vector<std::string> output_gradient_names();
    /// The parameters that a forward in training mode changes: running statistics.
    std::vector<std::string> changed_by_forward();

    /// Copies host data into an input: `bytes` bytes, row-major, of the input's dtype. The data may
    /// change as soon as the call returns. Work enqueued before the call reads the old data, and
    /// work enqueued after it the new data. From the second call for an input on, the call does not
    /// wait, unless the host is two batches ahead of the device: the bytes travel on a second queue
    /// beside the running batch, which takes the input's size in device memory once more. Throws
    /// Error(not_found) for the name, and Error(invalid_argument) for a wrong size, for null data,
    /// for a label that is not a class number, and for an index that is out of range. An input
    /// keeps its values, so one that stays the same is set once.
    void set_input(const std::string& name, const void* data, std::uint64_t bytes);

    /// Reads every parameter from a weights file (HDF5; docs/json.md). With `missing_ok`,
    /// parameters that the file lacks are initialised. What the file holds besides is logged as a
    /// warning. Throws Error(not_found), Error(format), Error(invalid_argument) or Error(io);
    /// what() names the file, all parameters that it lacks with those that the network does not
    /// have, or the parameter that has a wrong shape or type.
    void load_weights(const std::string& path, bool missing_ok = false);
    /// The same with what load_tensors() has read of a weights file, perhaps in another process.
    /// `source` stands for the path in messages.
    void load_weights(std::map<std::string, HostTensor> values, const std::string& source,
                      bool missing_ok = false);
    /// Writes every parameter to a weights file, whole or not at all. Waits for the device. Throws
    /// Error(io); Error(invalid_argument) where parameters have no values (see forward()).
    void save_weights(const std::string& path);
    /// The same, with a record of how pictures become inputs (dlprim/preprocessing.hpp).
    void save_weights(const std::string& path, const Preprocessing& how);
    /// Copies a parameter's values to the host. Waits for the device. Unlike param(), it keeps no
    /// device memory alive. Throws Error(not_found); Error(invalid_argument) where parameters have
    /// no values (see forward()).
    HostTensor read_param(const std::string& name);
    /// Sets every parameter from host memory, by name. Shapes must be equal; float types are
    /// converted. With `missing_ok`, parameters that are not given are initialised. In inference
    /// the values stay in host memory, because the net may need them again
    /// (NetOptions::keep_parameters). Throws Error(not_found) for a parameter that is not given or
    /// that the network does not have, and Error(invalid_argument) for a wrong shape, type or size;
    /// both name it, and nothing has changed then.
    void write_params(std::map<std::string, HostTensor> values, bool missing_ok = false);
    /// Initialises all parameters from NetOptions::seed. "default" takes PyTorch's way for each
    /// type of operator; "he" and "xavier" are for weights of convolutions and products (He et al.
    /// 2015, Glorot and Bengio 2010).
    void initialize(std::string_view method = "default");
    /// Must be called after writing to param() tensors: packed copies are then made anew before the
    /// next run.
    void params_changed();

    /// Plans, compiles and allocates. forward() does this if it has not been done. Throws
    /// Error(out_of_memory) where the plan does not fit, and Error(invalid_argument) where an
    /// engine that must be used does not apply.
    void prepare();
    /// Enqueues a forward pass and returns. Every parameter must have values: from initialize(),
    /// load_weights(), write_params() or Solver::load_checkpoint(), or written by the program,
    /// which is assumed of every parameter that param() was called for. Every input must have
    /// values as well: from set_input(), or written to input(), since the net has its present
    /// shapes and solver. Otherwise throws Error(invalid_argument) that names what has none.
    void forward();
    /// Enqueues a backward pass and returns. For evaluation and training mode. Throws
    /// Error(invalid_argument) where no forward() of these shapes came before.
    void backward();
    /// Sets a new batch size for all inputs, or new shapes for those that are named. Parameters
    /// stay, and so do plans of earlier shapes (NetOptions::max_plans). Throws
    /// Error(invalid_argument) for shapes that do not fit the network or would change the shape of
    /// a parameter; nothing has changed then. Not for a PlacedNet with a Solver.
    void reshape(std::int64_t batch);
    void reshape(const std::map<std::string, Shape>& input_shapes);

    /// Peak device memory of the plan in bytes, known before anything is allocated: while batches
    /// run, and while parameters are packed before the first batch. The former grows when inputs
    /// are set for a second time (set_input()). The latter, like the two calls that follow, is not
    /// for a PlacedNet, which has more to say of each of its devices.
    std::uint64_t planned_peak_bytes();
    std::uint64_t planned_setup_peak_bytes();
    /// The plan's memory by tensor, as lines of text.
    std::string memory_report();
    /// What will take memory when, for the shapes that the net has now. Plans anew, without
    /// compiling and allocating, also where the plan does not fit. With `solver`, the plan of its
    /// steps; without it, that of the Solver made on this net, if any.
    MemoryMap plan_memory(const SolverOptions* solver = nullptr);
    /// The plan's nodes in the order in which they run, without times.
    std::vector<NodeReport> nodes();
    /// Runs one batch with every launch timed, and waits. `whole_step` runs all that is planned
    /// (backward and update too), else forward alone. Every node is timed by launches of its own,
    /// also where batches run several nodes in one launch, as inference on CPUs does; there an
    /// untimed batch runs first. Parameters must have values, as for forward().
    /// NetOptions::progress is called before each node.
    ///
    /// Parameters, solver state, running statistics, random state, step counts and gradients have
    /// the same bits afterwards as before; meanwhile host memory holds a copy of them. Outputs hold
    /// the results of the profiled batch. backward() needs a forward() again. Not for a PlacedNet.
    std::vector<NodeReport> profile(bool whole_step);
    /// Remarks of the planner, and on a checkpoint that was loaded: a sentence each.
    std::vector<std::string> notes();

    /// Runs forward again, node by node, on the inputs and random numbers of the last forward(),
    /// and waits. Returns the name of the first operator whose output holds a NaN or an infinity;
    /// an empty text if there is none. It finds where a NaN in the loss comes from. Tensors of type
    /// double are not checked. The call is slow and takes memory: operators that share a launch are
    /// planned and run one by one.
    std::string first_nan();

  protected:
    explicit Net(std::shared_ptr<NetCore> impl);

  private:
    friend class internal::Access;
    NetImpl& impl() const;           ///< of a net on one device
    std::shared_ptr<NetCore> impl_;  ///< shared with the Solver; null when moved from
};

}  // namespace dlprim
