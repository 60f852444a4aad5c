// SPDX-License-Identifier: MIT
// SimulatedExchange: what one rank does to add a part up over the shards of all ranks. Who sends
// what to whom is LevelPlan's; between processes the library's transport moves it; floats are added
// in the order of ShardTree. Devices are timers: copies, additions and the host's wait for them let
// simulated time pass.
//
//   transport   the sums that others add --> host --> transport --> host --> device; additions
//   pinned      the sums that others add --> host memory of all | barrier | those of others -->
//   device peer        barrier | a kernel adds, which reads the others' slices where they lie
//
// Ranks are threads of control of one process, one at a time, so that they read each other's sums
// where real ranks would reach the same memory.
#pragma once

#include "collective/processes/level_plan.hpp"
#include "simulation/description.hpp"
#include "simulation/level_transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace simgrid::s4u {
class Host;
}

namespace dlprim::simulation {

/// What has been sent by all ranks in a stage. Headers of the transport are messages, too.
struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
};

/// A sum over neighbouring shards, of the elements that a rank holds.
struct Sum {
    ShardRange shards;
    std::vector<float> values;
};

/// What all ranks know and share.
class Cluster {
  public:
    explicit Cluster(Description description);

    const Description& what() const { return what_; }
    const LevelPlan& plan() const { return *plan_; }
    const LevelPlan::Division& division(std::int64_t elements);
    /// Of a stage: the way, how many members meet, and how far apart their ranks are.
    struct Stage {
        Way way;
        int count, stride;
        std::string name;
    };
    const std::vector<Stage>& stages() const { return stages_; }
    ShardRange shards_of(int rank) const;

    /// Where ranks leave what others read: their sums, and their means of the part.
    struct Place {
        ElementRange held;
        std::vector<Sum> sums;
        std::vector<float> mean;
    };
    Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
    std::vector<Traffic>& traffic() { return traffic_; }

  private:
    void make_stages();

    Description what_;
    std::vector<Stage> stages_;
    std::unique_ptr<LevelPlan> plan_;
    std::map<std::int64_t, std::unique_ptr<LevelPlan::Division>> divisions_;
    std::vector<Place> places_;
    std::vector<Traffic> traffic_;
};

class SimulatedExchange {
  public:
    /// All ranks at once.
    SimulatedExchange(Cluster& cluster, int rank);
    ~SimulatedExchange();

    /// Adds up a part, of which the rank has the sums that its own shards leave. The mean is then
    /// in the rank's place.
    void add_up(std::int64_t elements, std::vector<Sum> own);
    /// The rank's part of the time so far, by what passed.
    const std::map<std::string, double>& seconds() const { return seconds_; }
    /// The host learns that a device is done.
    void wake();
    /// All ranks of a device's host wait for each other.
    void meet_host();
    /// Whether kernels of all ranks read the sums of all where they lie.
    bool reaches_peers() const;
    /// Where they do: the least of what all ranks offer.
    std::size_t agree(std::size_t end);

  private:
    class Timed;
    struct Inbox;
    void pass(const std::string& what, double seconds);
    double bytes(std::int64_t elements) const;
    int member(std::size_t stage, std::size_t rank) const;
    std::size_t own_member(std::size_t stage) const;
    void gather(std::size_t stage, const LevelPlan::Division::Stage& how, Inbox& inbox);
    void gather_by_transport(std::size_t stage, const LevelPlan::Division::Stage& how,
                             Inbox& inbox);
    void gather_on_host(std::size_t stage, const LevelPlan::Division::Stage& how, Inbox& inbox);
    void add(std::size_t stage, const LevelPlan::Division::Stage& how, const Inbox& inbox);
    /// `is_first`: no stage of means was before it.
    void spread(std::size_t stage, const LevelPlan::Division::Stage& how, bool is_first);
    void spread_by_transport(std::size_t stage, const LevelPlan::Division::Stage& how);
    void spread_on_host(std::size_t stage, const LevelPlan::Division::Stage& how, bool is_first);
    void receive(const std::string& name,
                 const std::vector<std::pair<simgrid::s4u::Host*, std::uint64_t>>& wanted);
    void call(std::size_t stage, const std::vector<Pieces>& to, const std::vector<Pieces>& from,
              const std::string& what);

    struct Host;  ///< what ranks of a host share
    Cluster& cluster_;
    const int rank_;
    std::vector<std::unique_ptr<Transport>> transports_;  ///< by stage; none on a host
    std::shared_ptr<Host> host_;
    std::map<std::string, double> seconds_;
};

}  // namespace dlprim::simulation
