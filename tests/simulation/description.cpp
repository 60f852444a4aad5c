// SPDX-License-Identifier: MIT
// read_description().
#include "simulation/description.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace dlprim::simulation {

namespace {

Level read_level(std::istream& words) {
    Level level;
    std::string way;
    words >> level.name >> level.count >> level.rate >> level.latency >> way;
    if (way == "pinned")
        level.way = Way::pinned;
    else if (way == "peer")
        level.way = Way::peer;
    else if (way != "transport")
        throw std::runtime_error("'" + way + "' is no way: transport, pinned or peer");
    return level;
}

}  // namespace

Description read_description() {
    const char* const path = std::getenv("DLPRIM_SIMULATION");
    if (path == nullptr) throw std::runtime_error("DLPRIM_SIMULATION names no file");
    std::ifstream words(path);
    Description all;
    std::string key;
    while (words >> key) {
        if (key == "devices")
            words >> all.devices;
        else if (key == "shards")
            words >> all.shards;
        else if (key == "forward")
            words >> all.forward;
        else if (key == "backward")
            words >> all.backward;
        else if (key == "update")
            words >> all.update;
        else if (key == "memory")
            words >> all.memory;
        else if (key == "wake")
            words >> all.wake;
        else if (key == "copies")
            words >> all.copies;
        else if (key == "digests")
            words >> all.digests;
        else if (key == "direct")
            words >> all.direct;
        else if (key == "fold")
            words >> all.fold;
        else if (key == "level")
            all.levels.push_back(read_level(words));
        else if (key == "part") {
            all.parts.emplace_back();
            words >> all.parts.back().bytes >> all.parts.back().ready;
        } else {
            throw std::runtime_error(std::string(path) + " has '" + key + "', which nobody reads");
        }
        if (!words) throw std::runtime_error(std::string(path) + ": no value of " + key);
    }
    if (all.parts.empty()) throw std::runtime_error(std::string(path) + " has no parts");
    if (all.shards % all.devices != 0)
        throw std::runtime_error("each device has as many shards as another");
    return all;
}

}  // namespace dlprim::simulation
