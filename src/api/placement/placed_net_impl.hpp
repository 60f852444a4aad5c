// SPDX-License-Identifier: MIT
// PlacedNetImpl: the parts of a placed network, a Net each, and how they run together.
#pragma once

#include "api/placement/border_memory.hpp"
#include "api/placement/cut.hpp"
#include "api/placement/placed_trace.hpp"
#include "api/placement/shard_inputs.hpp"
#include "api/solver_impl.hpp"

#include <dlprim/placed_net.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

struct PlacementEstimate;
/// What automatic placement has reckoned with for a part.
struct PartEstimate {
    double seconds = 0;
    std::uint64_t bytes = 0;
};

/// The executor's slot for the running statistics of before a batch. The first slot is for engines
/// that fail.
inline constexpr std::size_t kept_slot = 1;

class PlacedNetImpl {
  public:
    PlacedNetImpl(std::vector<NamedDevice> devices, NetDescription description,
                  const NetOptions& options, const PlacementOptions& placement = {});

    const std::vector<NamedDevice>& devices() const { return devices_; }
    const NetOptions& options() const { return options_; }
    const Graph& graph() const { return whole_; }  ///< of the whole network, before any pass
    const CutNet& cut() const { return cut_; }
    const std::vector<Net>& nets() const { return nets_; }  ///< of the parts
    const BorderMemory& borders() const { return borders_; }
    /// By part; empty without automatic placement.
    const std::vector<PartEstimate>& estimates() const { return estimates_; }
    BorderMemory& borders() { return borders_; }
    const std::string& device_name(int part) const {
        return devices_[cut_.parts[static_cast<std::size_t>(part)].device].name;
    }

    /// Allocates what crosses borders, unless that was done. The parts can be planned then.
    Net& part(int index);
    /// The part that reads the input first, has the output, or has the parameter. They throw
    /// Error(not_found), which offers the nearest name.
    const std::vector<int>& readers(const std::string& input) const;
    int output_part(const std::string& name) const;
    int param_part(const std::string& name) const;
    std::vector<std::string> param_names() const;
    const TensorSpec& input_spec(const std::string& name) const;

    /// The input counts as set from this call on.
    Tensor input(const std::string& name);
    /// An output's tensor, also before it has values.
    Tensor output(const std::string& name);
    void set_input(const std::string& name, const void* data, std::uint64_t bytes);
    /// Throws Error(invalid_argument) if an input that a part reads was never set.
    void require_inputs(std::string_view action);
    void load_weights(const std::string& path, bool missing_ok);
    /// `source` names the values in messages.
    void load_values(std::map<std::string, HostTensor> values, const std::string& source,
                     bool missing_ok);
    /// With the preprocessing unless it is null.
    void save_weights(const std::string& path, const Preprocessing* how = nullptr);
    void write_params(std::map<std::string, HostTensor> values, bool missing_ok);

    void prepare();
    void forward();
    void backward();
    std::string first_nan();

    /// For a solver whose steps take options.shards shards: forgets what was planned, and has
    /// memory for as many shards as are in flight at once. Throws Error(out_of_memory).
    void train_with(const SolverOptions& options);
    /// Parts that run, in their order.
    const std::vector<int>& chain() const { return chain_; }
    /// How many working sets the part has (NetImpl::use_set()), for so many shards.
    int sets(int part, int shards) const;
    /// Lets the part work on a shard of the batch: by the shard's working set, and its copy of what
    /// crosses borders.
    NetImpl& select(int part, int shard);
    /// Enqueues copies of the inputs that the part reads.
    void feed(int part, int shard, const ShardInputs::Shard& inputs);
    const ShardInputs& inputs() const { return inputs_; }

    /// Lets the parts record what they do from now on.
    void set_trace(std::shared_ptr<StepTrace> recorder) {
        trace_ = PlacedTrace(std::move(recorder), devices_, cut_, borders_);
    }
    const PlacedTrace& trace() const { return trace_; }

    std::vector<PlacedNet::DeviceMemory> plan_memory(const SolverOptions* solver) const;
    std::map<std::string, std::uint64_t> planned_peak_bytes(const SolverOptions* solver) const;
    /// Throws Error(out_of_memory) where the parts of a device exceed its memory or limit; see
    /// planned_peak_bytes().
    void check_memory(const SolverOptions* solver);
    std::vector<std::string> notes();

  private:
    /// With shards: a part reads what was set last, as in a batch of its own.
    void take_inputs(int index);
    /// The device of every operator.
    std::map<std::string, std::size_t> find_devices();
    void note_unused_devices();
    void check_limits() const;
    /// Chooses devices by estimates, again with less memory for a device whose parts, once they are
    /// planned, take more than they were estimated to. `as_read`: before any option.
    void place_automatically(const NetDescription& as_read);
    /// Places operators as chosen. Returns the bytes by which devices exceed their limits, by the
    /// devices of the problem.
    std::vector<std::uint64_t> try_choice(const PlacementEstimate& estimate,
                                          const std::vector<std::size_t>& choice);
    void note_choice(const PlacementEstimate& estimate, const std::vector<std::size_t>& choice);
    /// Makes the parts, and moves operators without an engine to the host until all have one.
    void place(std::map<std::string, std::size_t> device_of);
    void open_parts();
    NetOptions options_of(const CutPart& part) const;
    /// An operator that a device other than the host has no engine for.
    struct Stuck {
        std::string name, why;
    };
    std::optional<Stuck> operator_without_engine() const;
    std::size_t host();
    std::uint64_t limit_of(const std::string& device) const;
    /// The part of the device whose plan takes the most memory, in words.
    std::string largest_part(const PlacedNet::DeviceMemory& device) const;
    /// Before the first run since the parts were planned.
    void check_memory_once() {
        if (!fits_) check_memory(nullptr);
    }
    void allocate();
    int shards() const { return solver_ ? solver_->shards : 1; }
    std::size_t copies(int shards) const;
    std::uint64_t feed_bytes(const Context& context, int shards) const;
    PlacedNet::PartMemory plan_part(int part, const SolverOptions* solver) const;

    std::vector<NamedDevice> devices_;
    NetDescription description_;
    NetOptions options_;
    PlacementOptions placement_;
    Graph whole_;
    CutNet cut_;
    std::vector<Net> nets_;
    BorderMemory borders_;
    bool allocated_ = false;
    bool fits_ = false;  ///< whether check_memory() has said so
    std::vector<PartEstimate> estimates_;
    std::vector<int> chain_;
    std::optional<SolverOptions> solver_;  ///< of train_with()
    ShardInputs inputs_;                   ///< with several shards
    std::set<std::string> filled_;         ///< inputs that were set, or handed out
    PlacedTrace trace_;
    std::vector<std::string> notes_;
};

}  // namespace dlprim
