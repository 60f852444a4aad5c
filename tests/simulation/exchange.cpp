// SPDX-License-Identifier: MIT
// SimulatedExchange.
#include "simulation/exchange.hpp"

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <utility>

namespace dlprim::simulation {

namespace s4u = simgrid::s4u;

namespace {

constexpr Transport::Deadline patience{600.0};

std::vector<s4u::BarrierPtr>& barriers_of_hosts() {
    static std::vector<s4u::BarrierPtr> barriers;
    return barriers;
}

}  // namespace

struct SimulatedExchange::Host {
    s4u::BarrierPtr barrier;
    s4u::Host *device, *memory;
};

/// What comes from the others in a stage: for each addend of the stage, in their order, the
/// elements that the rank keeps. Its own are empty.
struct SimulatedExchange::Inbox {
    std::vector<std::vector<float>> values;
};

/// Counts the simulated time between its construction and its end.
class SimulatedExchange::Timed {
  public:
    Timed(SimulatedExchange& exchange, std::string what)
        : exchange_(exchange), what_(std::move(what)), begin_(s4u::Engine::get_clock()) {}
    ~Timed() { exchange_.seconds_[what_] += s4u::Engine::get_clock() - begin_; }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    SimulatedExchange& exchange_;
    const std::string what_;
    const double begin_;
};

SimulatedExchange::SimulatedExchange(Cluster& cluster, int rank) : cluster_(cluster), rank_(rank) {
    for (const Cluster::Stage& stage : cluster.stages()) {
        transports_.emplace_back();
        const int group = rank / (stage.stride * stage.count);
        if (stage.way == Way::transport) {
            const int color = group * stage.stride + rank % stage.stride;
            transports_.back() =
                open_transport(color, rank / stage.stride % stage.count, stage.count);
            continue;
        }
        std::vector<s4u::BarrierPtr>& all = barriers_of_hosts();
        const auto index = static_cast<std::size_t>(group);
        if (all.size() <= index) all.resize(index + 1);
        if (!all[index]) all[index] = s4u::Barrier::create(static_cast<unsigned>(stage.count));
        host_ = std::make_shared<Host>();
        host_->barrier = all[index];
        host_->device = s4u::this_actor::get_host();
        // Zones are numbered from the outermost in; memory lies in the device's own.
        host_->memory = s4u::Host::by_name(
            "memory-" + host_->device->get_englobing_zone()->get_name().substr(5));
    }
}

SimulatedExchange::~SimulatedExchange() = default;

void SimulatedExchange::pass(const std::string& what, double seconds) {
    if (!(seconds > 0)) return;
    const Timed timed(*this, what);
    s4u::this_actor::sleep_for(seconds);
}

void SimulatedExchange::wake() {
    pass("waking", cluster_.what().wake);
}

void SimulatedExchange::meet_host() {
    const Timed timed(*this, "wait");
    if (host_) host_->barrier->wait();
}

std::size_t SimulatedExchange::agree(std::size_t end) {
    static std::vector<std::size_t> offers;
    offers.resize(static_cast<std::size_t>(cluster_.what().devices));
    offers[static_cast<std::size_t>(rank_)] = end;
    meet_host();
    return *std::min_element(offers.begin(), offers.end());
}

bool SimulatedExchange::reaches_peers() const {
    return cluster_.stages().size() == 1 && cluster_.stages()[0].way == Way::peer;
}

double SimulatedExchange::bytes(std::int64_t elements) const {
    return static_cast<double>(elements) * sizeof(float) * cluster_.what().fold;
}

int SimulatedExchange::member(std::size_t stage, std::size_t rank) const {
    const Cluster::Stage& how = cluster_.stages()[stage];
    return static_cast<int>(rank) / how.stride % how.count;
}

std::size_t SimulatedExchange::own_member(std::size_t stage) const {
    return static_cast<std::size_t>(member(stage, static_cast<std::size_t>(rank_)));
}

void SimulatedExchange::add_up(std::int64_t elements, std::vector<Sum> own) {
    const LevelPlan::Division& division = cluster_.division(elements);
    Cluster::Place& place = cluster_.place(rank_);
    place.held = {0, elements};
    place.sums = std::move(own);
    place.mean.assign(static_cast<std::size_t>(elements), 0.0F);
    const std::size_t stages = cluster_.stages().size();
    std::vector<LevelPlan::Division::Stage> how;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        how.push_back(division.stage(static_cast<std::size_t>(rank_), stage));
        Inbox inbox;
        gather(stage, how.back(), inbox);
        add(stage, how.back(), inbox);
    }
    if (place.held.size() > 0)
        std::copy(place.sums[0].values.begin(), place.sums[0].values.end(),
                  place.mean.begin() + place.held.begin);
    for (std::size_t stage = stages; stage-- > 0;) spread(stage, how[stage], stage + 1 == stages);
}

void SimulatedExchange::gather(std::size_t stage, const LevelPlan::Division::Stage& how,
                               Inbox& inbox) {
    const auto rank = static_cast<std::size_t>(rank_);
    const std::int64_t kept = how.keeps.empty() ? 0 : how.keeps[0].range.size();
    for (const LevelPlan::Addend& addend : cluster_.plan().addends(rank, stage))
        inbox.values.emplace_back(
            addend.member == own_member(stage) ? 0 : static_cast<std::size_t>(kept));
    if (cluster_.stages()[stage].way == Way::transport)
        gather_by_transport(stage, how, inbox);
    else
        gather_on_host(stage, how, inbox);
}

void SimulatedExchange::call(std::size_t stage, const std::vector<Pieces>& to,
                             const std::vector<Pieces>& from, const std::string& what) {
    std::uint64_t sent = 0, received = 0;
    Traffic& traffic = cluster_.traffic()[stage];
    for (std::size_t i = 0; i < to.size(); ++i) {
        traffic.messages += to[i].empty() ? 0 : 1;
        traffic.messages += to[i].empty() && from[i].empty() ? 0 : 1;  // a header
        for (const MessagePiece& piece : to[i]) sent += piece.bytes;
        for (const MessagePiece& piece : from[i]) received += piece.bytes;
    }
    const auto fold = static_cast<std::uint64_t>(cluster_.what().fold);
    traffic.bytes += sent * fold;
    if (cluster_.what().digests > 0)
        pass("digests", static_cast<double>((sent + received) * fold) / cluster_.what().digests);
    const Timed timed(*this, cluster_.stages()[stage].name);
    transports_[stage]->exchange(to, from, what, patience);
}

void SimulatedExchange::gather_by_transport(std::size_t stage,
                                            const LevelPlan::Division::Stage& how, Inbox& inbox) {
    Cluster::Place& place = cluster_.place(rank_);
    const auto count = static_cast<std::size_t>(cluster_.stages()[stage].count);
    std::vector<Pieces> to(count), from(count);
    const auto piece = [](std::vector<float>& values, std::int64_t begin, std::int64_t size) {
        return MessagePiece{reinterpret_cast<std::byte*>(values.data() + begin),
                            static_cast<std::uint64_t>(size) * sizeof(float)};
    };
    double out = 0, in = 0;
    for (const LevelPlan::Division::Message& message : how.sends)
        for (Sum& sum : place.sums) {
            to[static_cast<std::size_t>(member(stage, message.rank))].push_back(
                piece(sum.values, message.range.begin - place.held.begin, message.range.size()));
            out += bytes(message.range.size());
        }
    const auto& addends = cluster_.plan().addends(static_cast<std::size_t>(rank_), stage);
    for (std::size_t i = 0; i < addends.size(); ++i) {
        std::vector<float>& values = inbox.values[i];
        const auto size = static_cast<std::int64_t>(values.size());
        if (size > 0) from[addends[i].member].push_back(piece(values, 0, size));
        in += bytes(size);
    }
    if (cluster_.what().copies > 0) {
        pass("copies", out / cluster_.what().copies);
        wake();
    }
    call(stage, to, from, "sums of stage " + std::to_string(stage));
    if (cluster_.what().copies > 0) pass("copies", in / cluster_.what().copies);
}

void SimulatedExchange::gather_on_host(std::size_t stage, const LevelPlan::Division::Stage& how,
                                       Inbox& inbox) {
    Cluster::Place& place = cluster_.place(rank_);
    const bool peer = cluster_.stages()[stage].way == Way::peer;
    const std::string& name = cluster_.stages()[stage].name;
    // What the rank adds itself stays where it is.
    const std::int64_t kept = how.keeps.empty() ? 0 : how.keeps[0].range.size();
    const double each = bytes(place.held.size() - kept) / cluster_.what().fold;
    Traffic& traffic = cluster_.traffic()[stage];
    if (!peer) {
        const Timed timed(*this, name);
        for (std::size_t i = 0; i < place.sums.size(); ++i) {
            s4u::Comm::sendto(host_->device, host_->memory, static_cast<std::uint64_t>(each));
            ++traffic.messages;
            traffic.bytes +=
                static_cast<std::uint64_t>(each) * static_cast<std::uint64_t>(cluster_.what().fold);
        }
    }
    if (!peer) wake();
    meet_host();
    std::vector<std::pair<s4u::Host*, std::uint64_t>> wanted;
    const auto& addends = cluster_.plan().addends(static_cast<std::size_t>(rank_), stage);
    for (std::size_t i = 0; i < addends.size(); ++i) {
        std::vector<float>& values = inbox.values[i];
        if (values.empty()) continue;
        const LevelPlan::Division::Kept& own = how.keeps[0];
        const auto other = static_cast<int>(own.holders[addends[i].member]);
        const Cluster::Place& theirs = cluster_.place(other);
        const auto begin =
            theirs.sums[addends[i].node].values.begin() + own.range.begin - theirs.held.begin;
        std::copy(begin, begin + own.range.size(), values.begin());
        const auto size = static_cast<std::uint64_t>(values.size() * sizeof(float));
        s4u::Host* const from =
            peer ? s4u::Host::by_name("rank-" + std::to_string(other)) : host_->memory;
        wanted.emplace_back(from, size);
        ++traffic.messages;
        traffic.bytes += size * static_cast<std::uint64_t>(cluster_.what().fold);
    }
    wake();
    receive(name, wanted);
}

void SimulatedExchange::receive(const std::string& name,
                                const std::vector<std::pair<s4u::Host*, std::uint64_t>>& wanted) {
    const Timed timed(*this, name);
    std::vector<s4u::CommPtr> moves;
    for (const auto& [from, size] : wanted)
        moves.push_back(s4u::Comm::sendto_async(from, host_->device, size));
    for (const s4u::CommPtr& move : moves) move->wait();
}

void SimulatedExchange::add(std::size_t stage, const LevelPlan::Division::Stage& how,
                            const Inbox& inbox) {
    const auto rank = static_cast<std::size_t>(rank_);
    Cluster::Place& place = cluster_.place(rank_);
    const ElementRange kept =
        how.keeps.empty() ? ElementRange{place.held.begin, place.held.begin} : how.keeps[0].range;
    const auto& addends = cluster_.plan().addends(rank, stage);
    const int shards = cluster_.what().shards;
    ShardTree tree(shards);
    std::vector<Sum> sums;
    double additions = 0;
    for (std::size_t i = 0; i < addends.size(); ++i) {
        Sum next{addends[i].shards, inbox.values[i]};
        if (addends[i].member == own_member(stage)) {
            const auto begin =
                place.sums[addends[i].node].values.begin() + kept.begin - place.held.begin;
            next.values.assign(begin, begin + kept.size());
        }
        sums.push_back(std::move(next));
        for (std::size_t joined = tree.take(addends[i].shards); joined > 0; --joined) {
            const Sum right = std::move(sums.back());
            sums.pop_back();
            Sum& left = sums.back();
            const bool is_last = joined == 1 && tree.pending().front().count == shards;
            const float scale = is_last ? 1.0F / static_cast<float>(shards) : 1.0F;
            for (std::size_t e = 0; e < left.values.size(); ++e)
                left.values[e] = (left.values[e] + right.values[e]) * scale;
            left.shards.count += right.shards.count;
            ++additions;
        }
    }
    if (cluster_.what().memory > 0)
        pass("additions", 3 * additions * bytes(kept.size()) / cluster_.what().memory);
    // Others of a host may still read what was there. The real exchange has other memory for it.
    if (cluster_.stages()[stage].way != Way::transport) meet_host();
    place.held = kept;
    place.sums = std::move(sums);
}

void SimulatedExchange::spread(std::size_t stage, const LevelPlan::Division::Stage& how,
                               bool is_first) {
    const bool transport = cluster_.stages()[stage].way == Way::transport;
    const double copies = cluster_.what().copies;
    if (transport && is_first && copies > 0) {
        pass("copies", bytes(cluster_.place(rank_).held.size()) / copies);
        wake();
    }
    if (transport)
        spread_by_transport(stage, how);
    else
        spread_on_host(stage, how, is_first);
    if (transport && stage == 0 && copies > 0)
        pass("copies",
             bytes(static_cast<std::int64_t>(cluster_.place(rank_).mean.size())) / copies);
}

void SimulatedExchange::spread_by_transport(std::size_t stage,
                                            const LevelPlan::Division::Stage& how) {
    std::vector<float>& mean = cluster_.place(rank_).mean;
    const auto count = static_cast<std::size_t>(cluster_.stages()[stage].count);
    std::vector<Pieces> to(count), from(count);
    const auto piece = [&](const ElementRange& range) {
        return MessagePiece{reinterpret_cast<std::byte*>(mean.data() + range.begin),
                            static_cast<std::uint64_t>(range.size()) * sizeof(float)};
    };
    for (const LevelPlan::Division::Message& message : how.receives)
        to[static_cast<std::size_t>(member(stage, message.rank))].push_back(piece(message.range));
    for (const LevelPlan::Division::Message& message : how.sends)
        from[static_cast<std::size_t>(member(stage, message.rank))].push_back(piece(message.range));
    call(stage, to, from, "means of stage " + std::to_string(stage));
}

void SimulatedExchange::spread_on_host(std::size_t stage, const LevelPlan::Division::Stage& how,
                                       bool is_first) {
    Cluster::Place& place = cluster_.place(rank_);
    const bool peer = cluster_.stages()[stage].way == Way::peer;
    const std::string& name = cluster_.stages()[stage].name;
    Traffic& traffic = cluster_.traffic()[stage];
    const auto fold = static_cast<std::uint64_t>(cluster_.what().fold);
    const auto count = [&](std::uint64_t size) {
        ++traffic.messages;
        traffic.bytes += size * fold;
        return size;
    };
    const auto size_of_range = [](std::int64_t elements) {
        return static_cast<std::uint64_t>(elements) * sizeof(float);
    };
    const std::int64_t own = how.keeps.empty() ? 0 : how.keeps[0].range.size();
    // Means that a transport has brought are in the host's memory.
    if (!peer && is_first) {
        const Timed timed(*this, name);
        s4u::Comm::sendto(host_->device, host_->memory, count(size_of_range(own)));
    }
    if (is_first) wake();
    meet_host();
    std::vector<std::pair<s4u::Host*, std::uint64_t>> wanted;
    for (const LevelPlan::Division::Message& message : how.sends) {
        const Cluster::Place& theirs = cluster_.place(static_cast<int>(message.rank));
        std::copy(theirs.mean.begin() + message.range.begin,
                  theirs.mean.begin() + message.range.end,
                  place.mean.begin() + message.range.begin);
        s4u::Host* const from =
            peer ? s4u::Host::by_name("rank-" + std::to_string(message.rank)) : host_->memory;
        wanted.emplace_back(from, count(size_of_range(message.range.size())));
    }
    // Stages before have brought parts of what the rank keeps itself.
    if (!peer && !is_first) wanted.emplace_back(host_->memory, count(size_of_range(own)));
    wake();
    receive(name, wanted);
}

}  // namespace dlprim::simulation
