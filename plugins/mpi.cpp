// SPDX-License-Identifier: MIT
// The transport by MPI: compiled once with Open MPI's header and once with MPICH's, whose binary
// interfaces differ. All calls are nonblocking, tested until they are complete or the time is over.
#include "collective/processes/transport_plugin.h"

// The bindings to C++, which MPI has given up, are another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <dlfcn.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

#ifdef OPEN_MPI
constexpr const char* family = "Open MPI";
#else
constexpr const char* family = "MPICH";
#endif

using Clock = std::chrono::steady_clock;

void say(dlprim_message message, const std::string& text) {
    if (message.room == 0) return;
    const std::size_t length = std::min(text.size(), message.room - 1);
    std::memcpy(message.text, text.data(), length);
    message.text[length] = 0;
}

std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "unknown error";
    return text;
}

class Transport {
  public:
    MPI_Comm all = MPI_COMM_NULL;
    int size = 0;
    std::atomic<bool> cancelled{false};

    int finish(int begun, MPI_Request request, double seconds, dlprim_message message) {
        if (begun != MPI_SUCCESS) return failed(begun, message);
        std::vector<MPI_Request> one{request};
        return finish(one, seconds, message);
    }

    /// Tests requests until they are complete. Polls without pause at first, since what is sent
    /// within a host arrives in microseconds, and then ever less, since the processor may be the
    /// device that trains.
    int finish(std::vector<MPI_Request>& requests, double seconds, dlprim_message message) {
        const auto begin = Clock::now();
        for (std::int64_t round = 0;; ++round) {
            int done = 0;
            const int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                                         MPI_STATUSES_IGNORE);
            if (code != MPI_SUCCESS) return failed(code, message);
            if (done != 0) return DLPRIM_TRANSPORT_DONE;
            if (cancelled) return DLPRIM_TRANSPORT_CANCELLED;
            const std::chrono::duration<double> passed = Clock::now() - begin;
            if (passed.count() > seconds) return DLPRIM_TRANSPORT_LATE;
            if (passed.count() < 20e-6) continue;
            if (passed.count() < 1e-3)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    static int failed(int code, dlprim_message message) {
        say(message, text_of(code));
        return DLPRIM_TRANSPORT_FAILED;
    }
};

Transport& transport_of(void* self) {
    return *static_cast<Transport*>(self);
}

/// Open MPI loads its own modules, which look for its symbols among those that all libraries share.
void share_symbols() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) != 0 && info.dli_fname != nullptr)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

void* open(const dlprim_transport_start* start, dlprim_message message) {
    share_symbols();
    int initialized = 0;
    MPI_Initialized(&initialized);
    int level = MPI_THREAD_SERIALIZED;
    int code = MPI_SUCCESS;
    if (initialized != 0)
        code = MPI_Query_thread(&level);
    else
        code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) {
        say(message, "MPI does not start: " + text_of(code));
        return nullptr;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (level < MPI_THREAD_SERIALIZED) {
        say(message, "this MPI serves one thread only (it was built without support of threads)");
        return nullptr;
    }
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != start->rank || size != start->size) {
        say(message, "it counts this process as " + std::to_string(rank) + " of " +
                         std::to_string(size) + ", and the starter as " +
                         std::to_string(start->rank) + " of " + std::to_string(start->size) +
                         ": the run was started by the mpirun of another MPI than this plugin "
                         "was built with, and needs its own");
        return nullptr;
    }
    auto* const transport = new Transport;
    transport->size = size;
    code = MPI_Comm_dup(MPI_COMM_WORLD, &transport->all);
    if (code != MPI_SUCCESS) {
        say(message, text_of(code));
        delete transport;
        return nullptr;
    }
    MPI_Comm_set_errhandler(transport->all, MPI_ERRORS_RETURN);
    return transport;
}

/// A type that describes pieces wherever they lie, for one message. MPI counts bytes by int, so
/// that a large piece becomes several.
int type_of(const dlprim_pieces& pieces, MPI_Datatype* type) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (std::size_t i = 0; i < pieces.count; ++i) {
        auto* const data = static_cast<char*>(pieces.pieces[i].data);
        for (std::uint64_t done = 0; done < pieces.pieces[i].bytes; done += most) {
            MPI_Aint place = 0;
            MPI_Get_address(data + done, &place);
            places.push_back(place);
            lengths.push_back(static_cast<int>(std::min(most, pieces.pieces[i].bytes - done)));
        }
    }
    const int code = MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                              places.data(), MPI_BYTE, type);
    return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

/// Begins to send or to receive the pieces for one process: a single
/// one from where it lies, and several as one message, which MPI puts together. Both sides see the
/// same pieces.
int post(const dlprim_pieces& pieces, int other, bool send, MPI_Comm comm,
         std::vector<MPI_Request>& requests) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    const bool alone = pieces.count == 1 && pieces.pieces[0].bytes <= most;
    MPI_Datatype type = MPI_BYTE;
    int code = alone ? MPI_SUCCESS : type_of(pieces, &type);
    if (code != MPI_SUCCESS) return code;
    void* const data = alone ? pieces.pieces[0].data : MPI_BOTTOM;
    const int count = alone ? static_cast<int>(pieces.pieces[0].bytes) : 1;
    requests.push_back(MPI_REQUEST_NULL);
    // finish() tests the requests until they are done.
    // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
    code = send ? MPI_Isend(data, count, type, other, 0, comm, &requests.back())
                : MPI_Irecv(data, count, type, other, 0, comm, &requests.back());
    // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
    if (!alone) MPI_Type_free(&type);  // MPI keeps it until the message is there
    return code;
}

int exchange(void* self, const dlprim_pieces* to, const dlprim_pieces* from, double seconds,
             dlprim_message message) {
    Transport& transport = transport_of(self);
    std::vector<MPI_Request> requests;
    int code = MPI_SUCCESS;
    for (int i = 0; i < transport.size && code == MPI_SUCCESS; ++i)
        if (from[i].count > 0) code = post(from[i], i, false, transport.all, requests);
    for (int i = 0; i < transport.size && code == MPI_SUCCESS; ++i)
        if (to[i].count > 0) code = post(to[i], i, true, transport.all, requests);
    if (code != MPI_SUCCESS) return Transport::failed(code, message);
    return transport.finish(requests, seconds, message);
}

int allreduce(void* self, float* values, std::uint64_t count, double seconds,
              dlprim_message message) {
    constexpr std::uint64_t most = std::uint64_t{1} << 28;
    Transport& transport = transport_of(self);
    for (std::uint64_t done = 0; done < count; done += most) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = MPI_Iallreduce(MPI_IN_PLACE, values + done,
                                        static_cast<int>(std::min(most, count - done)), MPI_FLOAT,
                                        MPI_SUM, transport.all, &request);
        // finish() tests the request until it is done.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        const int result = transport.finish(code, request, seconds, message);
        if (result != DLPRIM_TRANSPORT_DONE) return result;
    }
    return DLPRIM_TRANSPORT_DONE;
}

void cancel(void* self) {
    transport_of(self).cancelled = true;
}

void close(void* self, int whole) {
    if (whole == 0) return;  // MPI_Finalize() waits for all, and MPI still reads what is here
    MPI_Comm_free(&transport_of(self).all);
    MPI_Finalize();
    delete &transport_of(self);
}

/// MPI may say that a message was sent while it still needs calls of this process to leave.
void progress(void* self) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, transport_of(self).all, &found, MPI_STATUS_IGNORE);
}

constexpr dlprim_transport table{
    DLPRIM_TRANSPORT_ABI, family, open, exchange, cancel, close, allreduce, progress};

}  // namespace

extern "C" __attribute__((visibility("default"))) const dlprim_transport*
dlprim_transport_plugin() {
    return &table;
}
