// SPDX-License-Identifier: MIT
// Communicator: the choice of a channel, the checks of calls, and reductions as eager calls.
#include <dlprim/communicator.hpp>
#include <dlprim/ops.hpp>

#include "base/text.hpp"
#include "collective/communicator/collectives.hpp"
#include "collective/communicator/shared_memory_channel.hpp"
#include "collective/communicator/transport_channel.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace dlprim {

namespace {

using Reduction = Communicator::Reduction;

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

RankReduction reduction_of(Reduction reduction, std::size_t ranks) {
    RankReduction made;
    made.combine = [code = recipe_of(reduction).code](const Tensor& a, const Tensor& b,
                                                      const Tensor& out) {
        ops::CallOptions how;
        how.out = {out};
        ops::pointwise(code, {a, b}, {}, how);
    };
    if (reduction == Reduction::mean)
        made.complete = [ranks](const Tensor& result) {
            ops::CallOptions how;
            how.out = {result};
            ops::pointwise("y0 = x0 / p0", {result}, {static_cast<double>(ranks)}, how);
        };
    return made;
}

/// Of each of which a part of a chunk has its place.
constexpr int most_ranks = 4096;

std::string text_of(const std::string& call, const Tensor& tensor) {
    return cat(call, " of ", tensor.shape().numel(), " elements of ", name_of(tensor.dtype()));
}

void require_plain(const Tensor& tensor) {
    require(tensor.defined() && tensor.contiguous(),
            "ranks exchange row-major tensors; to_contiguous() makes one");
}

/// A list with a tensor like `one` for each rank.
void require_list(const std::string& call, const std::vector<Tensor>& list, const Tensor& one,
                  int ranks) {
    require_plain(one);
    require(list.size() == static_cast<std::size_t>(ranks), call, " needs a tensor for each of ",
            ranks, " ranks, not ", list.size());
    for (const Tensor& tensor : list) {
        require_plain(tensor);
        require(tensor.dtype() == one.dtype() && tensor.shape().numel() == one.shape().numel() &&
                    tensor.context() == one.context(),
                call, " needs tensors of one context, type and number of elements");
    }
}

std::vector<Tensor> as_bytes(const std::vector<Tensor>& tensors, const Context& context) {
    std::vector<Tensor> bytes;
    for (const Tensor& tensor : tensors) {
        bytes.emplace_back();
        if (!tensor.defined() || tensor.bytes() == 0) continue;
        require_plain(tensor);
        require(tensor.context() == context, "all_to_all needs tensors of its context");
        bytes.back() = tensor.reshape({tensor.shape().numel()}).bit_cast(DType::u8);
    }
    return bytes;
}

}  // namespace

struct Communicator::State {
    int rank = 0, size = 1;
    bool is_shared = false;
    std::string reason;
    std::unique_ptr<Collectives> collectives;  ///< none where there is no way

    /// Makes a call. What it throws ends the group, unless all throw it.
    template <typename Call>
    void make(const CallOptions& options, const std::string& text, const Call& call) {
        if (!collectives)
            fail(ErrorKind::unsupported, "the processes of a group share no memory: ", reason);
        try {
            options.ready.wait();
            call(*collectives, options.name.empty() ? text : cat(options.name, "\n", text));
        } catch (const Collectives::Mismatch&) {
            throw;
        } catch (const std::exception& error) {
            collectives->channel().fail(error.what());
            throw;
        }
    }
    void require_root(int root) const {
        require(root >= 0 && root < size, "the root ", root, " is not one of ", size, " ranks");
    }
    RankReduction require_reduction(const Tensor& tensor, Reduction reduction) const {
        require_plain(tensor);
        require(can_reduce(reduction, tensor.dtype(), tensor.context()), "elements of ",
                name_of(tensor.dtype()), " cannot be reduced by ", recipe_of(reduction).name,
                " on ", tensor.context().info().str());
        return reduction_of(reduction, static_cast<std::size_t>(size));
    }
};

Communicator::Communicator() : Communicator(0, 1, {}) {}

Communicator::Communicator(int rank, int size, const Transport& transport)
    : state_(std::make_shared<State>()) {
    require(rank >= 0 && rank < size, "rank ", rank, " is not one of ", size,
            " processes, which are numbered from 0");
    require(size <= most_ranks, "a group has at most ", most_ranks, " processes, not ", size);
    State& state = *state_;
    state.rank = rank;
    state.size = size;
    const auto self = static_cast<std::size_t>(rank), ranks = static_cast<std::size_t>(size);
    std::unique_ptr<Channel> channel;
    if (size > 1)
        channel = SharedMemoryChannel::connect(self, ranks, transport.gather, state.reason);
    state.is_shared = channel != nullptr;
    if (!channel && (size == 1 || transport.exchange))
        channel = std::make_unique<TransportChannel>(self, ranks, transport.exchange);
    if (channel) state.collectives = std::make_unique<Collectives>(std::move(channel));
}

int Communicator::rank() const noexcept {
    return state_->rank;
}

int Communicator::size() const noexcept {
    return state_->size;
}

bool Communicator::is_shared() const noexcept {
    return state_->is_shared;
}

const std::string& Communicator::reason() const noexcept {
    return state_->reason;
}

bool Communicator::can_reduce(Reduction reduction, DType dtype, const Context& context) {
    const bool whole = is_integer(dtype);
    if (!whole && !is_float(dtype)) return false;
    if (dtype == DType::f64 && !context.traits().host && !context.traits().fp64) return false;
    return whole ? reduction != Reduction::mean : reduction < Reduction::bit_and;
}

void Communicator::barrier(const CallOptions& options) {
    state_->make(options, "barrier", [&](Collectives& collectives, const std::string& call) {
        collectives.barrier(call, options.deadline);
    });
}

void Communicator::all_reduce(const Tensor& tensor, Reduction reduction,
                              const CallOptions& options) {
    const RankReduction made = state_->require_reduction(tensor, reduction);
    const std::string text = text_of(cat("all_reduce (", recipe_of(reduction).name, ")"), tensor);
    state_->make(options, text, [&](Collectives& collectives, const std::string& call) {
        collectives.all_reduce(tensor, made, -1, call, options.deadline);
    });
}

void Communicator::reduce(const Tensor& tensor, Reduction reduction, int root,
                          const CallOptions& options) {
    const RankReduction made = state_->require_reduction(tensor, reduction);
    state_->require_root(root);
    const std::string text =
        text_of(cat("reduce (", recipe_of(reduction).name, ") to rank ", root), tensor);
    state_->make(options, text, [&](Collectives& collectives, const std::string& call) {
        collectives.all_reduce(tensor, made, root, call, options.deadline);
    });
}

void Communicator::reduce_scatter(const std::vector<Tensor>& parts, const Tensor& out,
                                  Reduction reduction, const CallOptions& options) {
    const RankReduction made = state_->require_reduction(out, reduction);
    require_list("reduce_scatter", parts, out, size());
    const std::string text = text_of(cat("reduce_scatter (", recipe_of(reduction).name, ")"), out);
    state_->make(options, text, [&](Collectives& collectives, const std::string& call) {
        collectives.reduce_scatter(parts, out, made, call, options.deadline);
    });
}

void Communicator::broadcast(const Tensor& tensor, int root, const CallOptions& options) {
    require_plain(tensor);
    state_->require_root(root);
    const std::string text = text_of(cat("broadcast from rank ", root), tensor);
    state_->make(options, text, [&](Collectives& collectives, const std::string& call) {
        collectives.broadcast(tensor, static_cast<std::size_t>(root), call, options.deadline);
    });
}

void Communicator::all_gather(const Tensor& own, const std::vector<Tensor>& all,
                              const CallOptions& options) {
    require_list("all_gather", all, own, size());
    state_->make(options, text_of("all_gather", own),
                 [&](Collectives& collectives, const std::string& call) {
                     collectives.all_gather(own, all, call, options.deadline);
                 });
}

void Communicator::all_to_all(const Context& context, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& outputs, const CallOptions& options) {
    for (const std::vector<Tensor>* const list : {&inputs, &outputs})
        require(list->size() == static_cast<std::size_t>(size()),
                "all_to_all needs a tensor for each of ", size(), " ranks, not ", list->size());
    const std::vector<Tensor> from = as_bytes(inputs, context), to = as_bytes(outputs, context);
    state_->make(options, "all_to_all", [&](Collectives& collectives, const std::string& call) {
        collectives.all_to_all(context, from, to, call, options.deadline);
    });
}

void Communicator::leave() noexcept {
    if (state_->collectives) state_->collectives->channel().leave();
}

}  // namespace dlprim
