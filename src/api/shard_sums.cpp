// SPDX-License-Identifier: MIT
// ShardSums.
#include "api/shard_sums.hpp"

#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "collective/devices/peer_memory.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"
#include "train/update.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

/// Neighbouring values of one type in a block.
struct Piece {
    int block = 0;
    std::uint64_t offset = 0, bytes = 0;
    DType dtype = DType::f32;
    bool changes = false;  ///< whether forward changes it
};

/// What forward changes: running statistics. Neighbours are joined, with the gaps that aligned
/// them, but no parameter that stays as it is.
std::vector<Piece> running_statistics(const Plan& plan) {
    const Graph& graph = plan.graph;
    std::set<ValueId> targets;
    for (const Assignment& assignment : graph.assignments) {
        const NodeId producer = graph.value(assignment.source).producer;
        if (producer < 0 || graph.nodes[static_cast<std::size_t>(producer)].part == Part::forward)
            targets.insert(assignment.target);
    }
    std::vector<Piece> all;
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        const Value& value = graph.values[i];
        const Place& place = plan.places[i];
        const bool lasts = value.role == Role::parameter || value.role == Role::state;
        if (!lasts || place.kind != Place::Kind::block) continue;
        all.push_back(
            {place.index, place.offset,
             static_cast<std::uint64_t>(value.spec.shape.numel()) * size_of(value.spec.dtype),
             value.spec.dtype, targets.count(static_cast<ValueId>(i)) > 0});
    }
    std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) {
        return a.block != b.block ? a.block < b.block : a.offset < b.offset;
    });
    std::vector<Piece> joined;
    bool open = false;
    for (const Piece& piece : all) {
        open = open && piece.changes && piece.block == joined.back().block &&
               piece.dtype == joined.back().dtype;
        if (open)
            joined.back().bytes = piece.offset + piece.bytes - joined.back().offset;
        else if (piece.changes)
            joined.push_back(piece);
        open = piece.changes;
    }
    return joined;
}

/// All of a block of floats, if the plan has it.
std::optional<Tensor> block_of(const Executor& executor, const char* name) {
    const std::vector<Block>& blocks = executor.plan().blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        if (blocks[i].name == name)
            return executor.tensor(
                static_cast<int>(i), 0,
                Shape{static_cast<std::int64_t>(blocks[i].bytes / sizeof(float))}, DType::f32);
    return std::nullopt;
}

/// "x0 + (x1 + x2)": the left halves of nodes, the outermost first, and the newest sum.
std::string nested_sum(std::size_t terms) {
    std::string text = cat("x", terms - 1);
    for (std::size_t i = terms - 1; i-- > 0;)
        text = i + 2 == terms ? cat("x", i, " + ", text) : cat("x", i, " + (", text, ")");
    return text;
}

/// out = factor * the nested sum of the terms.
void add_to(const Tensor& out, const std::vector<Tensor>& terms, double factor) {
    const std::string sum = nested_sum(terms.size());
    ops::CallOptions how;
    how.out = {out};
    if (factor == 1)
        ops::pointwise(cat("y0 = ", sum), terms, {}, how);
    else
        ops::pointwise(cat("y0 = (", sum, ") * p0"), terms, {factor}, how);
}

}  // namespace

std::uint64_t ShardSums::waiting_bytes(const Plan& plan, const std::vector<ShardRange>& parts,
                                       std::size_t rank) {
    const int shards = parts.back().end();
    std::uint64_t each = 0;
    for (const Block& block : plan.blocks)
        if (block.name == "gradients") each += block.bytes;
    for (const Piece& piece : running_statistics(plan)) each += piece.bytes;
    if (parts.size() == 1) return each * ShardTree::most_pending(shards, {0, shards});
    std::uint64_t received = 0;  // slices of the others' sums
    for (std::size_t q = 0; q < parts.size(); ++q) {
        ShardTree tree(shards);
        for (int shard = parts[q].first; shard < parts[q].end(); ++shard) tree.take({shard, 1});
        if (q != rank) received += tree.pending().size();
    }
    const ShardRange& own = parts.at(rank);
    return (waits_in_place(own, peers_are_allowed())
                ? 0
                : each * ShardTree::most_pending(shards, {own.first, own.count + 1})) +
           each / parts.size() * received;
}

std::uint64_t ShardSums::statistics_bytes(const Plan& plan) {
    std::uint64_t bytes = 0;
    for (const Piece& piece : running_statistics(plan)) bytes += piece.bytes;
    return bytes;
}

void ShardSums::attach(NetImpl& net, int shards) {
    shards_ = shards;
    part_ = {0, shards};
    forward_tree_ = tree_ = ShardTree(shards);
    if (shards > 1) reserve(net, ShardTree::most_pending(shards, part_));
}

void ShardSums::attach(NetImpl& net, std::shared_ptr<Exchange> exchange, std::size_t rank,
                       std::uint64_t range_bytes) {
    exchange_ = std::move(exchange);
    rank_ = rank;
    shards_ = exchange_->shards();
    part_ = exchange_->part(rank);
    tree_ = ShardTree(shards_);
    const std::uint64_t largest = exchange_->largest_reached();
    // A range has less than twice the bytes that it was asked for, and lies in one segment.
    ranges_ = cut(net.built().executor->plan(), std::min(range_bytes, largest / 2));
    assign_segments(largest);
    // The sum of the last shard waits, too.
    reserve(net, ShardTree::most_pending(shards_, {part_.first, part_.count + 1}));
    exchange_->expect(rank_, ranges_.size() + 1, range_bytes / 32);
}

void ShardSums::reserve(NetImpl& net, std::size_t most) {
    lasting_.clear();
    losses_.clear();
    waiting_.clear();
    const NetImpl::Built& built = net.built();
    const Executor& executor = *built.executor;
    const Plan& plan = executor.plan();
    if (const std::optional<Tensor> block = block_of(executor, "gradients"))
        lasting_ = segments_of(*block);
    gradients_ = lasting_.size();
    for (const Piece& piece : running_statistics(plan)) {
        require(is_float(piece.dtype), "a network that counts in ", name_of(piece.dtype),
                " during forward cannot be trained in shards, whose counts have no mean");
        lasting_.push_back(executor.tensor(
            piece.block, piece.offset,
            Shape{static_cast<std::int64_t>(piece.bytes / size_of(piece.dtype))}, piece.dtype));
    }
    std::vector<Tensor> tensors = lasting_;
    for (const auto& [name, weight] : built.losses) {
        losses_.push_back(name);
        tensors.push_back(built.outputs.at(name));
    }
    for (const Tensor& tensor : tensors) {
        waiting_.push_back(make_waiting(tensor, most, waiting_.size() < lasting_.size()));
    }
}

ShardSums::Waiting ShardSums::make_waiting(const Tensor& tensor, std::size_t most, bool lasts) {
    if (!is_alone() && lasts &&
        waits_in_place(part_, exchange_->waits_in_reach(tensor.shape(), tensor.dtype())))
        return {tensor};
    Waiting waiting;
    for (std::size_t i = 0; i < most; ++i)
        waiting.push_back(is_alone()
                              ? Tensor(tensor.context(), tensor.shape(), tensor.dtype())
                              : exchange_->make_waiting(rank_, tensor.shape(), tensor.dtype()));
    return waiting;
}

std::vector<Tensor> ShardSums::segments_of(const Tensor& block) const {
    if (ranges_.empty()) return {block};
    std::vector<Tensor> segments;
    for (std::size_t first = 0, next = 0; first < ranges_.size(); first = next) {
        while (next < ranges_.size() && ranges_[next].segment == segments.size()) ++next;
        const std::int64_t begin = ranges_[next - 1].begin;
        segments.push_back(elements_of(block.context(), block, begin, ranges_[first].end - begin));
    }
    return segments;
}

void ShardSums::assign_segments(std::uint64_t largest) {
    const auto most = static_cast<std::int64_t>(largest / sizeof(float));
    std::size_t segment = 0;
    std::int64_t end = ranges_.empty() ? 0 : ranges_.front().end;
    for (Range& range : ranges_) {
        if (end - range.begin > most && range.end < end) {
            end = range.end;
            ++segment;
        }
        range.segment = segment;
    }
}

void ShardSums::restart() {
    tree_.restart();
    forward_tree_.restart();
    taken_ = forwards_ = 0;
    leaving_ = false;
    sent_ = 0;
}

bool ShardSums::add(NetImpl& net) {
    if (shards_ == 1) return true;
    const bool is_last = taken_ + 1 == part_.count;
    if (is_last && !is_alone()) {
        meet(net);
        restart();
        return true;
    }
    if (taken_ == 0 && !is_alone()) exchange_->begin(rank_);
    const std::size_t joined = tree_.take({next(), 1});
    ++taken_;
    for (std::size_t i = 0; i < waiting_.size(); ++i)
        add(own(net, i), waiting_[i], tree_, joined, is_last ? 1.0 / shards_ : 0);
    if (is_last) restart();
    return is_last;
}

bool ShardSums::add_forward(NetImpl& net) {
    return add_half(net, true, forward_tree_, forwards_);
}

bool ShardSums::add_backward(NetImpl& net) {
    const bool is_last = add_half(net, false, tree_, taken_);
    if (is_last) restart();
    return is_last;
}

bool ShardSums::add_half(NetImpl& net, bool forward, ShardTree& tree, int& taken) {
    if (shards_ == 1) return true;
    const std::size_t joined = tree.take({taken, 1});
    const bool is_last = ++taken == shards_;
    for (std::size_t i = 0; i < waiting_.size(); ++i)
        if (is_of_forward(i) == forward)
            add(own(net, i), waiting_[i], tree, joined, is_last ? 1.0 / shards_ : 0);
    return is_last;
}

Tensor ShardSums::own(NetImpl& net, std::size_t index) const {
    if (index < lasting_.size()) return lasting_[index];
    return net.built().outputs.at(losses_[index - lasting_.size()]);
}

std::vector<ShardSums::Range> ShardSums::cut(const Plan& plan, std::uint64_t range_bytes) {
    // The same on all devices, whatever their plans: by the sizes of parameters alone.
    std::vector<Range> ranges;
    const auto usual = static_cast<std::int64_t>(std::max<std::uint64_t>(range_bytes / 4, 1));
    const std::vector<GradientMark>& marks = plan.gradient_marks;
    auto end = static_cast<std::int64_t>(marks.empty() ? 0 : marks.back().end / 4);
    for (std::size_t i = marks.size(); i-- > 0;) {
        const auto begin = static_cast<std::int64_t>(marks[i].begin / 4);
        // Nothing is left to compute beside the last ranges, so that they are smaller.
        const std::int64_t most = std::clamp(end / 4, std::max<std::int64_t>(usual / 8, 1), usual);
        if (end - begin < most && i > 0) continue;
        // A large parameter, whose gradient is complete as a whole, still moves in pieces.
        const std::int64_t pieces = std::max<std::int64_t>((end - begin) / most, 1);
        for (std::int64_t piece = pieces; piece-- > 0; end = ranges.back().begin)
            ranges.push_back({begin + (end - begin) * piece / (piece + 1) / 64 * 64, end});
    }
    if (!ranges.empty()) ranges.back().begin = 0;
    return ranges;
}

void ShardSums::find_last_steps(const Plan& plan, std::vector<Range>& ranges) {
    const std::vector<GradientMark>& marks = plan.gradient_marks;
    std::size_t next = marks.size(), last = 0;
    for (Range& range : ranges) {
        const auto begin = static_cast<std::uint64_t>(range.begin) * 4;
        // A mark that begins before the range may reach into it.
        while (next > 0 && marks[next - 1].begin >= begin)
            last = std::max(last, marks[--next].last_step);
        if (next > 0 && marks[next - 1].end > begin)
            last = std::max(last, marks[next - 1].last_step);
        range.last_step = last;
    }
}

std::vector<ShardSums::Range> ShardSums::ranges_of(const Plan& plan, std::uint64_t range_bytes) {
    std::vector<Range> ranges = cut(plan, range_bytes);
    find_last_steps(plan, ranges);
    return ranges;
}

Executor::AfterStep ShardSums::watch(NetImpl& net) {
    if (is_alone() || leaves_late_ || taken_ + 1 < part_.count || ranges_.empty()) return {};
    return [this, &net](std::size_t step) {
        if (!leaving_) {
            find_last_steps(net.built().executor->plan(), ranges_);
            send_rest(net);
        }
        while (sent_ < ranges_.size() && ranges_[sent_].last_step <= step) send_range();
    };
}

Exchange::Term ShardSums::term_of(const Tensor& own, const Waiting& waiting) const {
    const auto end = static_cast<std::ptrdiff_t>(tree_.pending().size());
    return {{waiting.begin(), waiting.begin() + end}, own};
}

void ShardSums::send_range() {
    const Range& range = ranges_[sent_++];
    const Context& context = lasting_.front().context();
    // Segments come in the order of ranges, and the last range of each begins where it begins.
    auto last = ranges_.begin() + static_cast<std::ptrdiff_t>(sent_ - 1);
    while (last + 1 != ranges_.end() && (last + 1)->segment == range.segment) ++last;
    const auto part = [&](const Tensor& segment) {
        return elements_of(context, segment, range.begin - last->begin, range.end - range.begin);
    };
    Waiting waiting;
    for (const Tensor& tensor : waiting_[range.segment]) waiting.push_back(part(tensor));
    const Tensor own = part(lasting_[range.segment]);
    add(own, waiting, tree_, joined_, 0);
    // Waiting for the last event of a step reports what its kernels have refused.
    const bool is_last = sent_ == ranges_.size();
    exchange_->start(rank_, sent_, {term_of(own, waiting)},
                     Access::impl(context).record({.looks = is_last}));
}

void ShardSums::send_rest(NetImpl& net) {
    if (taken_ == 0) exchange_->begin(rank_);
    leaving_ = true;
    joined_ = tree_.take({next(), 1});
    std::vector<Exchange::Term> terms;
    for (std::size_t i = ranges_.empty() ? 0 : gradients_; i < waiting_.size(); ++i) {
        add(own(net, i), waiting_[i], tree_, joined_, 0);
        terms.push_back(term_of(own(net, i), waiting_[i]));
    }
    exchange_->start(rank_, 0, std::move(terms),
                     Access::impl(net.context()).record({.looks = ranges_.empty()}));
}

void ShardSums::meet(NetImpl& net) {
    if (!leaving_) send_rest(net);
    while (sent_ < ranges_.size()) send_range();
    exchange_->finish(rank_);
}

void ShardSums::share_parameters(NetImpl& net) {
    const std::optional<Tensor> params = block_of(*net.built().executor, "params");
    if (!params) return;
    const auto ranks = static_cast<int>(exchange_->size());
    std::vector<Exchange::Slice> slices;
    for (int rank = 0; rank < ranks; ++rank) {
        const StateSlice slice = state_slice(params->shape().numel(), rank, ranks);
        slices.push_back({slice.begin, slice.end});
    }
    exchange_->share(rank_, *params, slices);
}

void ShardSums::add(const Tensor& own, const Waiting& waiting, const ShardTree& tree,
                    std::size_t joined, double share) {
    // The result takes the place of the first sum that it joins.
    const std::size_t at = tree.pending().size() - 1;
    if (joined == 0 && are_same(own, waiting[at])) return;
    // A GPU stops for what the driver copies.
    const bool by_kernel =
        own.context().info().kind == DeviceKind::gpu && own.dtype() == DType::f32;
    if (joined == 0 && by_kernel) return add_to(waiting[at], {own}, 1);
    if (joined == 0) {
        Access::impl(own.context())
            .queue()
            .copy({Access::buffer(own).get(), own.byte_offset()},
                  {Access::buffer(waiting[at]).get(), waiting[at].byte_offset()}, own.bytes());
        return;
    }
    std::vector<Tensor> terms(waiting.begin() + static_cast<std::ptrdiff_t>(at),
                              waiting.begin() + static_cast<std::ptrdiff_t>(at + joined));
    terms.push_back(own);
    // A launch computes in float at least, and here each sum has the type of its terms.
    while (size_of(own.dtype()) < sizeof(float) && terms.size() > 2) {
        const Tensor right = terms.back();
        terms.pop_back();
        add_to(terms.back(), {terms.back(), right}, 1);
    }
    const bool is_last = share > 0;
    add_to(is_last ? own : waiting[at], terms, is_last ? share : 1);
}

}  // namespace dlprim
