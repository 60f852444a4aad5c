// SPDX-License-Identifier: MIT
// NetCore: what a Net points to: a network with its options, and its stages, each of which runs on
// one device. A network on one device has a single stage, itself (NetImpl). The operators of a
// placed network are cut into several (api/placement/placed_net_impl.hpp).
#pragma once

#include "api/label_inputs.hpp"
#include "api/param_source.hpp"
#include "graph/description.hpp"

#include <dlprim/net.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

class NetCore {
  public:
    /// A parameter as the description declares it, without any plan.
    struct Param {
        Value value;
        int order = 0;
    };

    explicit NetCore(const NetOptions& options, NetDescription description = {})
        : description_(std::move(description)), options_(options) {}
    virtual ~NetCore() = default;
    NetCore(const NetCore&) = delete;
    NetCore& operator=(const NetCore&) = delete;

    const NetOptions& options() const { return options_; }
    const Graph& base_graph() const { return base_; }  ///< of the whole network, before any pass
    /// Whether plans leave out losses (NetOptions::without_losses). base_graph() may have them.
    bool drops_losses() const {
        return options_.without_losses && base_.losses.size() < base_.outputs.size();
    }
    const std::map<std::string, Param>& params() const { return params_; }
    std::vector<std::string> param_names() const;
    /// They throw Error(not_found), with the nearest name.
    const TensorSpec& input_spec(const std::string& name) const;
    const TensorSpec& param_spec(const std::string& name) const;
    bool is_loss(const std::string& output) const;
    /// What the labels may be, if the input holds labels.
    std::optional<LabelInput> label_input(const std::string& name) const;

    /// The device of the first stage.
    virtual const Context& context() const = 0;
    /// The net, if it is on one device; else null.
    virtual NetImpl* alone() { return nullptr; }
    virtual int stages() const = 0;
    virtual NetImpl& stage(int index) = 0;
    /// Whether a run needs the stage, which otherwise only keeps parameters.
    virtual bool runs(int stage) const = 0;
    /// The stage that has a parameter, or the gradient of a parameter or an input. They may throw
    /// Error(not_found) for other names.
    virtual int stage_of_param(const std::string& name) const = 0;
    virtual int stage_of_gradient(const std::string& name) const = 0;
    /// The names of the devices of operators, by operator. Empty for a net on one device.
    virtual std::map<std::string, std::string> devices_of_operators() const { return {}; }

    /// As those of a Net.
    virtual void prepare() = 0;
    virtual Tensor input(const std::string& name) = 0;
    /// An output's tensor, also before it has values.
    virtual Tensor output(const std::string& name) = 0;
    virtual void require_outputs(const std::string& name) = 0;
    virtual void set_input(const std::string& name, const void* data, std::uint64_t bytes) = 0;
    /// Enqueue a pass and flush. `action` is what needs the values of parameters and inputs.
    virtual void run_forward(std::string_view action) = 0;
    virtual void run_backward() = 0;
    /// A batch of 0 stays as it is.
    virtual void reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) = 0;
    virtual std::string first_nan() = 0;
    virtual std::uint64_t planned_peak_bytes() = 0;
    virtual std::vector<std::string> notes() = 0;

    // Parameters of all stages, from and to host memory and files.
    void load_weights(const std::string& path, bool missing_ok);
    /// `source` names the values in messages.
    void load_weights(std::map<std::string, HostTensor> values, const std::string& source,
                      bool missing_ok);
    void write_params(std::map<std::string, HostTensor> values, bool missing_ok);
    /// Throws Error(invalid_argument) where parameters have no values. `action` is what needs them.
    void require_all_params(std::string_view action);
    HostTensor read_param(const std::string& name);
    /// Whether the source of the parameter's values keeps it (ParamSource::keeps()).
    bool is_kept(const std::string& name);
    /// Writes a weights file, with `how` unless it is null.
    void save_weights(const std::string& path, const Preprocessing* how);
    /// Whether large parameters are released after packing.
    bool lets_go() const { return options_.mode == Mode::inference && !options_.keep_parameters; }

  protected:
    /// Takes what the description says of the whole network.
    void set_graph(Graph graph);
    /// Takes other shapes into the options, and returns the options of before.
    NetOptions take_shapes(std::int64_t batch, const std::map<std::string, Shape>& shapes);
    /// Throws Error(invalid_argument) if a parameter would have another shape in this graph.
    void check_params_stay(const Graph& graph) const;
    /// A copy of the base graph, for passes to change. Throws where there is no network.
    Graph own_graph() const;

    NetDescription description_;
    NetOptions options_;
    Graph base_;
    std::map<std::string, Param> params_;

  private:
    std::map<std::string, const Value*> values() const;
    /// What parameters get that a source lacks; null unless it may lack some.
    std::shared_ptr<ParamSource> missing_values(bool missing_ok) const;
    void fill_all_from(const std::shared_ptr<ParamSource>& source);
};

/// Throws Error(invalid_argument) for a Net that was moved from.
NetCore& core_of(const Net& net);

}  // namespace dlprim
