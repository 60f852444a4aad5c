// SPDX-License-Identifier: MIT
// choose_devices: a device for each operator of a network, so that one pass over all of them takes
// the least time that their memory allows. It knows costs alone, and no network.
//
// Model: operators run one after the other, in their order, each for its seconds on its device. A
// value moves once to each other device that reads it. Its gradient goes back through its readers,
// from the last to the first and to the maker, and moves wherever two of these that follow each
// other have different devices. What operators need of a device's memory adds up.
//
// Method: labels, as for shortest paths with resource constraints (Irnich and Desaulniers, 2005). A
// label is a choice for the first operators, with its time, its memory, and where the values are
// that later operators read. A label is dropped where another one with the same values is as good
// in time and memory. Memory has prices, by Lagrangian relaxation (Fisher, 1981): a choice that
// ignores limits and pays for memory gives a lower bound on the time of all choices within them,
// and prices rise where limits are exceeded.
//
// Optimal and heuristic: where limits do not bind, or no label had to be dropped for their number,
// the choice is optimal in this model, and `optimal` says so. Otherwise the labels that cost least
// at the final prices are kept, which is a heuristic: the choice is within all limits, and
// `least_seconds` bounds how much better another one could be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace dlprim {

struct PlacementProblem {
    static constexpr double never = std::numeric_limits<double>::infinity();

    struct Operator {
        std::string name;
        std::vector<double> seconds;       ///< by device; `never`: it cannot run there
        std::vector<std::uint64_t> bytes;  ///< by device, also where it cannot run for their sake
    };
    struct Reader {
        std::size_t op = 0;
        bool passes = false;  ///< whether the gradient of the value comes back from it
    };
    struct Value {
        int maker = -1;               ///< operator; -1: it is fed to the device that first reads it
        std::vector<Reader> readers;  ///< in their order, each operator once
        double bytes = 0;
    };

    std::vector<std::string> devices;   ///< names
    std::vector<std::uint64_t> limits;  ///< bytes of their memory
    std::vector<Operator> operators;
    std::vector<Value> values;
    double link_seconds = 0;           ///< of a move, however small
    double link_bytes_per_second = 1;  ///< of all devices
    std::size_t most_labels = 512;     ///< that are kept for each operator
};

struct PlacementChoice {
    std::vector<std::size_t> devices;  ///< of each operator
    double seconds = 0;                ///< of a pass
    double least_seconds = 0;          ///< which no choice within the limits goes below
    bool optimal = false;
};

/// Throws Error(invalid_argument) for more than 32 devices; Error(out_of_memory) where an operator
/// fits on no device, which says by how many bytes, and where no choice within the limits is found.
PlacementChoice choose_devices(const PlacementProblem& problem);

/// The seconds of a pass with the operators on these devices.
double seconds_of(const PlacementProblem& problem, const std::vector<std::size_t>& devices);

}  // namespace dlprim
