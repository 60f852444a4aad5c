// SPDX-License-Identifier: MIT
// The platform of the simulation, as a library that smpirun loads: devices and links of a described
// cluster.
//
//   level 1   rank-0 --+           +-- rank-1      Each member of a level has a link up and a link
//                      | zone of   |               down, which all that goes to another member
//             rank-2 --+ level 1   +-- rank-3      passes. The latency is that of the outermost
//                      |                           level that a message crosses.
//   level 2            +-- zone of level 2 -- ...
//
// Where the devices of the first level go through host memory, it is a host "memory-ZONE" whose own
// link takes no time.
#include "simulation/description.hpp"

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace dlprim::simulation;
namespace s4u = simgrid::s4u;

class Platform {
  public:
    explicit Platform(const Description& what) : what_(what) {}

    void build() {
        std::size_t levels = 0;
        for (int devices = 1; devices < what_.devices || levels == 0; ++levels)
            devices *= what_.levels.at(levels).count;
        build_zone(levels - 1, nullptr);
    }

  private:
    using Route = std::vector<s4u::LinkInRoute>;

    s4u::Link* link(s4u::NetZone* zone, const std::string& name, double rate, double latency) {
        return zone->create_link(name, rate)->set_latency(latency)->seal();
    }

    /// Joins a member, of which `gate` is the host or router that messages pass.
    void join(s4u::NetZone* zone, std::size_t index, simgrid::kernel::routing::NetPoint* member,
              simgrid::kernel::routing::NetPoint* gate) {
        const Level& level = what_.levels[index];
        double inner = 0;
        for (std::size_t i = 0; i < index; ++i) inner = std::max(inner, what_.levels[i].latency);
        const std::string name = std::to_string(links_++);
        const double rate = level.rate / what_.fold;
        const Route up{
            s4u::LinkInRoute(link(zone, "up-" + name, rate, std::max(0.0, level.latency - inner)))};
        const Route down{s4u::LinkInRoute(link(zone, "down-" + name, rate, 0))};
        zone->add_route(member, nullptr, gate, nullptr, up, false);
        zone->add_route(nullptr, member, nullptr, gate, down, false);
    }

    void add_memory(s4u::NetZone* zone, const std::string& name) {
        s4u::Host* const memory = zone->create_host("memory-" + name, 1e9);
        const Route free{
            s4u::LinkInRoute(zone->create_link("free-" + name, 1e18)
                                 ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                                 ->seal())};
        zone->add_route(memory->get_netpoint(), nullptr, nullptr, nullptr, free, false);
        zone->add_route(nullptr, memory->get_netpoint(), nullptr, nullptr, free, false);
    }

    /// A zone with the members of a level, and its gate to what is outside.
    simgrid::kernel::routing::NetPoint* build_zone(std::size_t index, s4u::NetZone* parent) {
        const std::string name = std::to_string(zones_++);
        s4u::NetZone* const zone = s4u::create_star_zone("zone-" + name);
        if (parent != nullptr) zone->set_parent(parent);
        for (int i = 0; i < what_.levels[index].count && ranks_ < what_.devices; ++i) {
            if (index == 0) {
                const std::string host = "rank-" + std::to_string(ranks_++);
                join(zone, 0, zone->create_host(host, 1e9)->get_netpoint(), nullptr);
            } else {
                simgrid::kernel::routing::NetPoint* const gate = build_zone(index - 1, zone);
                join(zone, index, inner_->get_netpoint(), gate);
            }
        }
        if (index == 0) add_memory(zone, name);
        simgrid::kernel::routing::NetPoint* const gate = zone->create_router("gate-" + name);
        zone->add_route(gate, nullptr, nullptr, nullptr, Route{}, false);
        zone->add_route(nullptr, gate, nullptr, nullptr, Route{}, false);
        zone->seal();
        inner_ = zone;
        return gate;
    }

    const Description& what_;
    s4u::NetZone* inner_ = nullptr;  ///< that was built last
    int ranks_ = 0, zones_ = 0, links_ = 0;
};

}  // namespace

extern "C" void load_platform(const s4u::Engine& engine);
void load_platform(const s4u::Engine& /*engine*/) {
    Platform(read_description()).build();
}
