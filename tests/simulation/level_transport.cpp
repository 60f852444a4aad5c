// SPDX-License-Identifier: MIT
// The plugin as it is, with two differences of SimGrid. Its MPI_Testall() lets a guessed time pass
// at each call, so that the plugin's polling would decide how long an exchange takes: it waits here
// in place of testing. And open() starts MPI for all ranks and asks for threads, which are not
// simulated: a group of ranks becomes the plugin's communicator here.
#include "simulation/level_transport.hpp"

#include <mpi.h>

namespace {

int wait_in_place_of_test(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
    *done = 1;
    return MPI_Waitall(count, requests, statuses);
}

}  // namespace

#define MPI_Testall wait_in_place_of_test
#include "../../plugins/mpi.cpp"
#undef MPI_Testall

namespace dlprim::simulation {

std::unique_ptr<dlprim::Transport> open_transport(int color, int index, int count) {
    // Lives as long as the program, as the plugin's does where a run has failed.
    auto* const self = new ::Transport;
    MPI_Comm_split(MPI_COMM_WORLD, color, index, &self->all);
    MPI_Comm_set_errhandler(self->all, MPI_ERRORS_RETURN);
    self->size = count;
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) names.push_back("member " + std::to_string(i));
    return std::make_unique<dlprim::Transport>(*dlprim_transport_plugin(), self, index, names);
}

double meet_all() {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

}  // namespace dlprim::simulation
