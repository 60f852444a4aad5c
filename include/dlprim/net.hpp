// SPDX-License-Identifier: MIT
// Net: a network on one device: built from JSON, runs forward and backward, loads and saves
// weights.
//
// A Net owns its parameters, its plans and their memory. Tensors that it has given out, and a
// Solver that was made on it, keep what they need of it when it is gone. A Net can be moved: its
// Solver then works on the Net that it was moved to, and every call on the one that it was moved
// from throws Error(invalid_argument). A Net is for one thread at a time (dlprim/context.hpp).
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/precision.hpp>
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
    inference,   ///< forward with running statistics, batch norms folded, nothing kept
    evaluation,  ///< inference's mathematics, but backward() works
    training,    ///< batch statistics, dropout; backward() and solvers work
};

struct NetOptions {
    Mode mode = Mode::inference;
    std::int64_t batch = 0;  ///< replaces the first dimension of every input; 0: as declared
    std::map<std::string, Shape> input_shapes;  ///< replaces whole shapes
    std::vector<std::string> extra_outputs;     ///< intermediate tensors to keep readable
    bool input_gradients = false;  ///< backward() also computes gradients of float inputs
    bool output_gradients =
        false;  ///< backward() starts from output_gradient() tensors that the caller fills
    bool without_losses =
        false;             ///< drops losses, and what only they need, where there are other outputs
    bool backward = true;  ///< false: training-mode forward alone
    bool fuse = true;
    /// Forced engines: node name or operator type, engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    /// Of operators that the network gives none of their own. tf32: see dlprim/precision.hpp; on
    /// devices without a way for it results are those of fp32.
    Precision precision = Precision::fp32;
    /// Of operators by name, whatever the network gives them, or by type, of those that it gives
    /// none: node name or operator type, precision. Of the same the last counts.
    std::vector<std::pair<std::string, Precision>> precisions;
    /// Of inference: whether parameters stay in device memory beside what is made of them for the
    /// kernels, packed and folded. Without it those of 64 KiB and more that no kernel reads as they
    /// are stay only until then. They are read again where someone asks (param(), save_weights(), a
    /// plan for other shapes): from the weights file, which must not have been changed (another may
    /// have taken its place), or initialised as before. What param() has given out stays.
    bool keep_parameters = false;
    /// How many plans a Net keeps, at least 1. A plan serves one set of input shapes and has memory
    /// of its own for what stands between operators. When reshape() leads to more sets of shapes
    /// than this, the plan that was used least recently is dropped, which may wait for its inputs'
    /// copies. Parameters and solver state belong to no plan. Going back to shapes whose plan was
    /// dropped plans them anew: inputs hold zeros again, and backward() needs a forward() first.
    int max_plans = 8;
    std::uint64_t seed = 1;  ///< initialisation and dropout
    /// Over 0: planning first measures the engines on problems that no database knows, for about so
    /// many seconds, and keeps what it finds in the user's database (dlprim/tuning.hpp).
    double tune_seconds = 0;
    /// Called by the thread that waits, while the net plans, compiles, tunes and profiles. What it
    /// throws ends the call and arrives at the caller; the net is then as before the call, and may
    /// be used.
    std::function<void(std::string_view what, int done, int total)> progress;
};

/// One node of a plan, for profiles.
struct NodeReport {
    std::string name, type, engine, device;
    std::vector<std::string> fused;
    std::string part;         ///< "forward", "backward", "accumulate" or "update"
    double ms = 0;            ///< measured; 0 when not profiled
    double start_ms = 0;      ///< measured, from the first launch of the profile
    double gflop = 0;         ///< nominal
    double gbytes = 0;        ///< operands read and written once
    double bound_ms = 0;      ///< roofline on the device
    std::int64_t params = 0;  ///< elements of its operator's parameters, and of those fused into it
};

class NetImpl;
class Solver;

class Net {
  public:
    /// Throws Error: see docs/json.md for what a network may hold. A kernel is compiled at the
    /// first forward() or prepare().
    static Net from_json_file(const Context& context, const std::string& path,
                              const NetOptions& options = {});
    static Net from_json(const Context& context, std::string_view text,
                         const NetOptions& options = {});
    ~Net();
    Net(Net&&) noexcept;
    Net& operator=(Net&&) noexcept;

    const Context& context() const;
    const NetOptions& options() const;  ///< as given, with what reshape() has changed since

    std::vector<std::string> input_names() const;
    std::vector<std::string> output_names() const;
    std::vector<std::string> loss_names() const;
    std::map<std::string, double> loss_weights() const;
    std::vector<std::string> param_names() const;  ///< trained and not
    bool is_trainable(const std::string& param) const;
    /// Whether something trains: a loss or, with options.output_gradients, any float output.
    bool has_loss() const;
    /// For an input that holds class numbers, how many classes there are; else 0.
    std::int64_t label_classes(const std::string& input);

    /// Shapes and types as planned, without planning anything.
    Shape input_shape(const std::string& name) const;
    DType input_dtype(const std::string& name) const;
    Shape param_shape(const std::string& name) const;
    DType param_dtype(const std::string& name) const;

    /// The network's own tensors; they stay valid and in place until reshape(). Inputs hold zeros
    /// until they are set, and so do parameters. Written and read with Tensor's copies. Throws
    /// Error(not_found) offering the nearest name. A parameter that param() has given out counts as
    /// set (see forward()): whoever has its tensor may write it at any time.
    Tensor input(const std::string& name);
    Tensor output(const std::string& name);
    Tensor param(const std::string& name);
    Tensor gradient(const std::string& param_or_input);
    Tensor output_gradient(const std::string& name);

    /// What gradient() and output_gradient() know.
    std::vector<std::string> gradient_names();
    std::vector<std::string> output_gradient_names();
    /// Parameters that a training forward changes: running statistics.
    std::vector<std::string> changed_by_forward();

    /// Copies host data (row-major, of the input's dtype) into an input; checks labels against the
    /// number of classes, on every device. Throws Error(invalid_argument), also where `data` is
    /// null and `bytes` is not 0. The data may change as soon as this returns. Work enqueued before
    /// still sees what it was to see; what is enqueued later sees the new data. From an input's
    /// second time on the host does not wait, unless it is two batches ahead of the device: the
    /// bytes travel on a second queue beside the running batch, for which the input takes as much
    /// device memory once more.
    void set_input(const std::string& name, const void* data, std::uint64_t bytes);

    /// Every parameter from a weights file. `missing_ok`: parameters the file lacks are
    /// initialised. Throws Error naming the parameter on a missing one, a wrong shape or type.
    void load_weights(const std::string& path, bool missing_ok = false);
    /// Throws Error(invalid_argument) where parameters have no values (see forward()).
    void save_weights(const std::string& path);
    /// A copy of a parameter's values on the host. Waits for the device. Unlike param(), which
    /// gives out its memory, it leaves no memory behind on the device. Throws Error(not_found);
    /// Error(invalid_argument) where parameters have no values (see forward()).
    HostTensor read_param(const std::string& name);
    /// Every parameter from host memory, by name, in its own shape; a float type is converted to
    /// another. `missing_ok`: parameters that are not among them are initialised. In inference the
    /// values stay in host memory while the net may need them again (NetOptions::keep_parameters).
    /// Throws Error naming the parameter, and then nothing has changed: not_found for one that is
    /// missing, or that the network has not; invalid_argument for a wrong shape, type or size.
    void write_params(std::map<std::string, HostTensor> values, bool missing_ok = false);
    /// Initialises all parameters: "default" (the field's default for each type), "he", "xavier".
    void initialize(std::string_view method = "default");
    /// To be called after writing to param() tensors: packed copies are made anew before the next
    /// run.
    void params_changed();

    void prepare();  ///< plans, compiles, allocates; forward() does it where it has not been done
    /// Enqueues; asynchronous. Every parameter must have been set before: by initialize(), by
    /// load_weights(), by Solver::load_checkpoint(), or by hand, for which it counts that param()
    /// was called for it. Otherwise throws Error(invalid_argument) that names a parameter without
    /// values. A network without parameters just runs.
    void forward();
    /// Enqueues; evaluation and training modes. Throws Error(invalid_argument) where there was no
    /// forward() of these shapes.
    void backward();
    /// A new batch size for every input, or new shapes for those named: others keep theirs. Plans
    /// are kept by shapes, NetOptions::max_plans of them; parameters stay. Throws
    /// Error(invalid_argument) on shapes that do not fit the network, or under which a parameter
    /// would have another shape; then nothing has changed.
    void reshape(std::int64_t batch);
    void reshape(const std::map<std::string, Shape>& input_shapes);

    /// Peak device memory of the plan, known before anything is allocated: while batches run, and
    /// while parameters are packed before the first. The former grows by what inputs take that are
    /// set again (set_input()).
    std::uint64_t planned_peak_bytes();
    std::uint64_t planned_setup_peak_bytes();
    std::string memory_report();
    std::vector<NodeReport> nodes();
    /// Runs one batch (forward; with `whole_step` all the net has planned) with every launch timed:
    /// each node by launches of its own, even where batches run several nodes in one launch. There,
    /// which is in inference on CPUs, another batch runs first, untimed. Parameters must have been
    /// set, as for forward(). Waits. NetOptions::progress is called before each node.
    ///
    /// Afterwards everything that outlasts a run holds the bits that it held before: parameters,
    /// solver state, running statistics, random state, step counts and gradients. Until
    /// then host memory holds a copy of them. What a forward() has left for backward() is gone:
    /// backward() needs a forward() again. Outputs hold what this batch has made.
    std::vector<NodeReport> profile(bool whole_step);
    std::vector<std::string>
    notes();  ///< remarks of the planner, and on a checkpoint that was loaded

    /// Runs forward node by node and returns the name of the first operator whose output holds a
    /// NaN or an infinity, or empty. For finding the origin of a NaN in the loss; slow: where
    /// operators share a launch, they are planned and run one by one, for which there must be the
    /// memory.
    std::string first_nan();

    /// The library's own view. Throws Error(invalid_argument) where this Net was moved from.
    NetImpl& impl() const;

  private:
    friend class Solver;
    explicit Net(std::shared_ptr<NetImpl> impl);
    std::shared_ptr<NetImpl> impl_;  ///< shared with the Solver; null when moved from
};

}  // namespace dlprim
