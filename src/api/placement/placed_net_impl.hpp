// SPDX-License-Identifier: MIT
// PlacedNetImpl: the parts of a placed network, a stage each, and how they run together.
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

class PlacedNetImpl : public NetCore {
  public:
    PlacedNetImpl(std::vector<NamedDevice> devices, NetDescription description,
                  const NetOptions& options, const PlacementOptions& placement = {});

    const std::vector<NamedDevice>& devices() const { return devices_; }
    const CutNet& cut() const { return cut_; }
    const std::vector<std::shared_ptr<NetImpl>>& nets() const { return nets_; }  ///< of the parts
    const BorderMemory& borders() const { return borders_; }
    /// By part; empty without automatic placement.
    const std::vector<PartEstimate>& estimates() const { return estimates_; }
    BorderMemory& borders() { return borders_; }
    const std::string& device_name(int part) const {
        return devices_[cut_.parts[static_cast<std::size_t>(part)].device].name;
    }

    const Context& context() const override { return devices_.front().context; }
    int stages() const override { return static_cast<int>(nets_.size()); }
    /// Allocates what crosses borders, unless that was done. The parts can be planned then.
    NetImpl& stage(int index) override { return *shared_stage(index); }
    const std::shared_ptr<NetImpl>& shared_stage(int index);
    bool runs(int part) const override { return cut_.parts[static_cast<std::size_t>(part)].runs; }
    /// Throw Error(not_found), which offers the nearest name.
    int stage_of_param(const std::string& name) const override;
    int stage_of_gradient(const std::string& name) const override;
    int stage_of_output(const std::string& name) const;
    std::map<std::string, std::string> devices_of_operators() const override;

    /// The input counts as set from this call on.
    Tensor input(const std::string& name) override;
    Tensor output(const std::string& name) override;
    void require_outputs(const std::string& name) override {
        stage(stage_of_output(name)).require_outputs(name);
    }
    void set_input(const std::string& name, const void* data, std::uint64_t bytes) override;

    void prepare() override;
    void run_forward(std::string_view action) override;
    void run_backward() override;
    /// Operators stay on their devices.
    void reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) override;
    std::string first_nan() override;
    /// Throws Error(invalid_argument) if an input that a part reads was never set.
    void require_inputs(std::string_view action);

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
    std::uint64_t planned_peak_bytes() override;
    /// Throws Error(out_of_memory) where the parts of a device exceed its memory or limit; see
    /// planned_peak_bytes().
    void check_memory(const SolverOptions* solver);
    std::vector<std::string> notes() override;

  private:
    /// The parts that read the input.
    const std::vector<int>& readers(const std::string& input) const;
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
    /// What crosses borders, as the network is cut now.
    void open_borders();
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
    PlacementOptions placement_;
    CutOptions how_;  ///< by which the network is cut
    CutNet cut_;
    std::vector<std::shared_ptr<NetImpl>> nets_;
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
