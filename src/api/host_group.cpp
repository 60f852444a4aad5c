// SPDX-License-Identifier: MIT
// HostGroup: how processes find each other's memory, and reductions as eager calls.
#include <dlprim/host_group.hpp>
#include <dlprim/ops.hpp>

#include "base/text.hpp"
#include "collective/hosts/host_board.hpp"
#include "collective/hosts/host_moves.hpp"
#include "collective/hosts/host_rooms.hpp"
#include "collective/hosts/shared_host.hpp"
#include "runtime/context_impl.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace dlprim {

namespace {

using Reduction = HostGroup::Reduction;

struct Recipe {
    const char *name, *code;
};

Recipe recipe_of(Reduction reduction) {
    constexpr std::array recipes{
        Recipe{"sum", "y0 = x0 + x1"},          Recipe{"mean", "y0 = x0 + x1"},
        Recipe{"product", "y0 = x0 * x1"},      Recipe{"min", "y0 = min(x0, x1)"},
        Recipe{"max", "y0 = max(x0, x1)"},      Recipe{"bit_and", "y0 = bitand(x0, x1)"},
        Recipe{"bit_or", "y0 = bitor(x0, x1)"}, Recipe{"bit_xor", "y0 = bitxor(x0, x1)"},
    };
    return recipes.at(static_cast<std::size_t>(reduction));
}

HostReduction reduction_of(Reduction reduction, std::size_t processes) {
    HostReduction made;
    made.combine = [code = recipe_of(reduction).code](const Tensor& a, const Tensor& b,
                                                      const Tensor& out) {
        ops::CallOptions how;
        how.out = {out};
        ops::pointwise(code, {a, b}, {}, how);
    };
    if (reduction == Reduction::mean)
        made.complete = [processes](const Tensor& result) {
            ops::CallOptions how;
            how.out = {result};
            ops::pointwise("y0 = x0 / p0", {result}, {static_cast<double>(processes)}, how);
        };
    return made;
}

std::string text_of(std::string_view call, const Tensor& tensor) {
    return cat(call, " of ", tensor.shape().numel(), " elements of ", name_of(tensor.dtype()));
}

void require_plain(const Tensor& tensor) {
    require(tensor.defined() && tensor.contiguous(),
            "processes of a host exchange row-major tensors; to_contiguous() makes one");
}

}  // namespace

struct HostGroup::State {
    int rank = 0, size = 1;
    bool is_shared = false;
    std::string reason;
    std::unique_ptr<HostBoard> board;
    std::unique_ptr<HostRooms> rooms;

    /// Every process goes through all exchanges, also where something fails.
    void connect(const Exchange& exchange);
    void find_host(const Exchange& exchange);
    std::string open(const std::vector<std::string>& places, SharedMemory::Part own_page,
                     SharedMemory::Part own_room);
    /// Makes a call of HostMoves. What it throws ends the group, unless all throw it.
    template <typename Call>
    void move(const CallOptions& options, const Call& call) {
        try {
            options.ready.wait();
            HostMoves moves(*board, *rooms);
            call(moves);
        } catch (const HostMoves::Mismatch&) {
            throw;
        } catch (const std::exception& error) {
            board->fail(error.what());
            throw;
        }
    }
};

void HostGroup::State::find_host(const Exchange& exchange) {
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(size));
    for (int q = 0; q < size; ++q) names.push_back(cat("rank ", q));
    const SharedHost host(
        static_cast<std::size_t>(rank), std::move(names),
        [&](const std::string& own, const std::string&) { return exchange(own); },
        std::make_shared<std::atomic<bool>>(false));
    reason = host.reason();
    const std::vector<std::size_t>& hosts = host.hosts();
    if (std::any_of(hosts.begin(), hosts.end(), [](std::size_t number) { return number != 0; }))
        reason = "the processes are on several hosts";
}

void HostGroup::State::connect(const Exchange& exchange) {
    find_host(exchange);
    if (!reason.empty()) return;
    std::unique_ptr<SharedMemory> memory;
    SharedMemory::Part page, room;
    std::string trouble, place;
    try {
        memory = std::make_unique<SharedMemory>();
        page = memory->grow(HostBoard::page_bytes());
        room = memory->grow(HostRooms::bytes(static_cast<std::size_t>(size)));
        place = cat(::getpid(), " ", memory->descriptor());
    } catch (const Error& error) {
        trouble = error.what();
    }
    const std::vector<std::string> places = exchange(place);
    if (trouble.empty()) trouble = open(places, std::move(page), std::move(room));
    for (const std::string& each : exchange(trouble))
        if (reason.empty()) reason = each;
    is_shared = reason.empty();
}

std::string HostGroup::State::open(const std::vector<std::string>& places,
                                   SharedMemory::Part own_page, SharedMemory::Part own_room) {
    const auto self = static_cast<std::size_t>(rank);
    std::vector<SharedMemory::Part> pages, memory;
    SharedMemory::Part again;
    std::vector<int> processes;
    try {
        for (std::size_t q = 0; q < places.size(); ++q) {
            const std::vector<std::string> words = split(places[q], ' ');
            if (words.size() != 2) return "";  // the process says why
            processes.push_back(leading_number(words[0], 0));
            SharedMemory theirs(processes.back(), leading_number(words[1], -1));
            pages.push_back(theirs.follow(HostBoard::page_bytes()));
            memory.push_back(theirs.follow(HostRooms::bytes(places.size())));
        }
        pages[self] = std::move(own_page);
        again = std::exchange(memory[self], std::move(own_room));
        board = std::make_unique<HostBoard>(self, std::move(pages), processes);
        rooms = std::make_unique<HostRooms>(self, std::move(memory), std::move(again));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

HostGroup::HostGroup(int rank, int size, const Exchange& exchange)
    : state_(std::make_shared<State>()) {
    require(rank >= 0 && rank < size, "rank ", rank, " is not one of ", size,
            " processes, which are numbered from 0");
    state_->rank = rank;
    state_->size = size;
    if (size > 1) state_->connect(exchange);
}

int HostGroup::rank() const noexcept {
    return state_ ? state_->rank : 0;
}

int HostGroup::size() const noexcept {
    return state_ ? state_->size : 1;
}

bool HostGroup::is_shared() const noexcept {
    return state_ && state_->is_shared;
}

const std::string& HostGroup::reason() const noexcept {
    static const std::string none;
    return state_ ? state_->reason : none;
}

HostGroup::State& HostGroup::shared() const {
    if (!is_shared())
        fail(ErrorKind::unsupported, "the processes of a group share no memory",
             reason().empty() ? "" : ": ", reason());
    return *state_;
}

std::vector<std::string> HostGroup::exchange_notes(const std::string& own,
                                                   std::chrono::duration<double> deadline) {
    require(own.size() <= note_bytes, "a note of ", own.size(), " bytes is longer than ",
            note_bytes);
    HostBoard& board = *shared().board;
    std::vector<std::string> all;
    try {
        board.begin(deadline);
        board.write_note(own);
        board.end();
        board.begin(deadline);
    } catch (const Error& error) {
        board.fail(error.what());
        throw;
    }
    for (std::size_t q = 0; q < board.size(); ++q) all.push_back(board.note(q));
    return all;
}

bool HostGroup::can_reduce(Reduction reduction, DType dtype, const Context& context) {
    const bool whole = is_integer(dtype);
    if (!whole && !is_float(dtype)) return false;
    if (dtype == DType::f64 && !context.traits().host && !context.traits().fp64) return false;
    return whole ? reduction != Reduction::mean : reduction < Reduction::bit_and;
}

void HostGroup::all_reduce(const Tensor& tensor, Reduction reduction, const CallOptions& options) {
    require_plain(tensor);
    const std::string name = recipe_of(reduction).name;
    require(can_reduce(reduction, tensor.dtype(), tensor.context()), "elements of ",
            name_of(tensor.dtype()), " cannot be reduced by ", name, " on ",
            tensor.context().info().str());
    State& state = shared();
    state.move(options, [&](HostMoves& moves) {
        moves.all_reduce(tensor, reduction_of(reduction, state.board->size()),
                         text_of(cat("all_reduce (", name, ")"), tensor), options.deadline);
    });
}

void HostGroup::broadcast(const Tensor& tensor, int root, const CallOptions& options) {
    require_plain(tensor);
    require(root >= 0 && root < size(), "the root ", root, " is not one of ", size(), " ranks");
    shared().move(options, [&](HostMoves& moves) {
        moves.broadcast(tensor, static_cast<std::size_t>(root),
                        text_of(cat("broadcast from rank ", root), tensor), options.deadline);
    });
}

void HostGroup::all_gather(const Tensor& own, const std::vector<Tensor>& all,
                           const CallOptions& options) {
    require_plain(own);
    require(all.size() == static_cast<std::size_t>(size()),
            "all_gather needs a tensor for each of ", size(), " ranks, not ", all.size());
    for (const Tensor& tensor : all) {
        require_plain(tensor);
        require(tensor.dtype() == own.dtype() && tensor.shape().numel() == own.shape().numel() &&
                    tensor.context() == own.context(),
                "all_gather needs tensors of one context, type and number of elements");
    }
    shared().move(options, [&](HostMoves& moves) {
        moves.all_gather(own, all, text_of("all_gather", own), options.deadline);
    });
}

void HostGroup::leave() noexcept {
    if (is_shared()) state_->board->leave();
}

}  // namespace dlprim
