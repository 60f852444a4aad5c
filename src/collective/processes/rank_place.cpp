// SPDX-License-Identifier: MIT
// RankPlace. The starters' variables:
//
//   mpirun of Open MPI     OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
//   mpiexec of MPICH       PMI_{RANK,SIZE}, MPI_{LOCALRANKID,LOCALNRANKS}
//   srun                   SLURM_{PROCID,NTASKS,LOCALID}, with PMIX_RANK or PMI_RANK for its --mpi
//   torchrun, or by hand   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_{ADDR,PORT}
#include "collective/processes/rank_place.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <charconv>

namespace dlprim {

namespace {

/// The number in a variable; nothing where it is not set.
std::optional<int> number_in(const char* name) {
    const std::optional<std::string> text = env(name);
    if (!text) return std::nullopt;
    int value = -1;
    const char* const end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, value);
    require(read.ec == std::errc() && read.ptr == end && value >= 0, "the variable ", name, " is '",
            *text, "': it must be a number of at least 0");
    return value;
}

int needed(const char* name, const std::string& starter) {
    const std::optional<int> value = number_in(name);
    require(value.has_value(), "the variable ", name,
            " is not set, which every process of a run started by ", starter, " has");
    return *value;
}

/// Names of variables of one starter.
struct Names {
    const char *starter, *transport, *rank, *size, *local_rank, *local_size;
};

constexpr Names starters[] = {
    {"mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpiexec of MPICH", "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"torchrun", "gloo", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

std::optional<RankPlace> by_slurm() {
    // A shell inside an allocation has the first of these, and only what srun starts the second.
    if (!number_in("SLURM_NTASKS") || !number_in("SLURM_PROCID") || !env("SLURM_STEP_ID"))
        return std::nullopt;
    RankPlace place;
    place.starter = "srun";
    place.rank = needed("SLURM_PROCID", place.starter);
    place.size = number_in("SLURM_STEP_NUM_TASKS").value_or(needed("SLURM_NTASKS", "srun"));
    place.local_rank = needed("SLURM_LOCALID", place.starter);
    // "4" or "4(x2),3": tasks of each node.
    place.local_size = leading_number(
        env("SLURM_STEP_TASKS_PER_NODE").value_or(env("SLURM_TASKS_PER_NODE").value_or("1")), 1);
    place.transport = env("PMIX_RANK") ? "openmpi" : env("PMI_RANK") ? "mpich" : "gloo";
    return place;
}

std::optional<RankPlace> by_variables() {
    if (std::optional<RankPlace> place = by_slurm()) return place;
    for (const Names& names : starters) {
        const bool begun = env(names.size) || (env(names.rank) && env("MASTER_ADDR"));
        if (!begun) continue;
        RankPlace place;
        place.starter = names.starter;
        place.transport = names.transport;
        place.size = needed(names.size, place.starter);
        place.rank = needed(names.rank, place.starter);
        place.local_rank = number_in(names.local_rank).value_or(place.rank);
        place.local_size = number_in(names.local_size).value_or(place.local_rank + 1);
        return place;
    }
    return std::nullopt;
}

/// Takes another transport than the starter's. An MPI joins only what its own starter has started;
/// which one srun has served is found when it starts.
void choose(RankPlace& place, const std::string& transport) {
    for (const Names& names : starters)
        require(transport != names.transport || transport == "gloo" || place.starter == "srun" ||
                    place.transport == transport,
                "DLPRIM_TRANSPORT is '", transport, "', and ", place.starter,
                " has started this process, which the MPI of that plugin does not join: start the "
                "run by ",
                names.starter, ", or leave the variable out");
    place.transport = transport;
}

}  // namespace

std::optional<RankPlace> place_from_environment() {
    std::optional<RankPlace> place = by_variables();
    if (!place || place->size == 1) return std::nullopt;
    require(place->size > 0 && place->rank < place->size, place->starter,
            " says that this is process ", place->rank, " of ", place->size,
            ", which cannot be: the first is 0");
    if (const auto chosen = env("DLPRIM_TRANSPORT")) choose(*place, *chosen);
    // A file may be a plugin of either kind. With an address it need not find the others by itself.
    const bool is_file = place->transport.find('/') != std::string::npos;
    if (place->transport != "gloo" && !(is_file && env("MASTER_ADDR"))) return place;
    const std::optional<std::string> address = env("MASTER_ADDR");
    require(address.has_value(),
            "the variable MASTER_ADDR is not set: processes that are to meet by Gloo need the "
            "address of the first of them there, and a free port of it in MASTER_PORT");
    const std::optional<int> port = number_in("MASTER_PORT");
    require(port && *port > 0 && *port < 65536,
            "the variable MASTER_PORT is not set, or is no port: processes that are to meet by "
            "Gloo need a free port of the first of them there");
    place->address = *address;
    place->port = *port;
    place->has_agent = env("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
    place->attempt = cat(env("TORCHELASTIC_RUN_ID").value_or("run"), "/",
                         env("TORCHELASTIC_RESTART_COUNT").value_or("0"));
    return place;
}

}  // namespace dlprim
