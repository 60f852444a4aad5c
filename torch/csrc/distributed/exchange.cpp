// SPDX-License-Identifier: MIT
#include "distributed/exchange.hpp"

#include "device/errors.hpp"
#include "memory/pinned.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

namespace dlprim_torch {
namespace {

/// Terms as they are sent.
struct Card {
    std::int64_t operation, reduction, root, type, count;
    std::int64_t shares;  ///< in which ranks may differ
    bool fits(const Card& other) const {
        return operation == other.operation && reduction == other.reduction && root == other.root &&
               type == other.type && count == other.count;
    }
};

at::Tensor bytes_of(void* data, std::size_t size) {
    return at::from_blob(data, {static_cast<std::int64_t>(size)}, at::kByte);
}

const char* name_of_reduction(std::int64_t reduction) {
    constexpr std::array names{"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
    const auto index = static_cast<std::size_t>(reduction);
    return index < names.size() ? names[index] : "";
}

std::string elements(std::int64_t count, std::int64_t type) {
    std::ostringstream text;
    text << count << " elements of " << static_cast<at::ScalarType>(type);
    return text.str();
}

std::string described(const Card& card) {
    std::ostringstream text;
    text << c10d::opTypeToString(static_cast<c10d::OpType>(card.operation));
    if (const std::string name = name_of_reduction(card.reduction); !name.empty())
        text << " (" << name << ")";
    if (card.count >= 0) text << " of " << elements(card.count, card.type);
    if (card.root >= 0) text << " with root " << card.root;
    return text.str();
}

const std::string no_exchange =
    "the ranks could not exchange their values. Another rank has ended, or made no such operation "
    "within the time that init_process_group(timeout=...) sets. ";

std::int64_t type_of(const at::Tensor& values) {
    return static_cast<std::int64_t>(values.scalar_type());
}

}  // namespace

Exchange::Exchange(c10::intrusive_ptr<c10d::Backend> gloo, std::shared_ptr<HostWay> host,
                   c10d::OpType operation, std::chrono::milliseconds timeout)
    : gloo_(std::move(gloo)), host_(std::move(host)), operation_(operation), timeout_(timeout) {}

void Exchange::fail(const std::string& problem) const {
    TORCH_CHECK_WITH(DistBackendError, false, c10d::opTypeToString(operation_), " failed on rank ",
                     rank(), " of ", size(), ": ", problem);
    std::abort();  // never reached
}

/// Makes the call, which waits for a transfer.
template <typename Call>
void Exchange::transfer(Call&& call) {
    std::string problem;
    try {
        call();
        return;
    } catch (const c10::Error& error) {
        problem = error.what_without_backtrace();
    } catch (const std::exception& error) {
        problem = error.what();
    }
    fail(no_exchange + "Gloo reports: " + problem);
}

template <typename Call>
void Exchange::share(Call&& call) {
    try {
        return call();
    } catch (const dp::Error& error) {
        if (error.kind() == dp::ErrorKind::out_of_memory) throw_translated(error);
        fail(no_exchange + "Their shared memory reports: " + error.what());
    }
}

std::vector<std::string> Exchange::exchange_texts(const std::string& own) {
    struct Text {
        std::uint64_t bytes;
        char text[504];
    };
    Text mine{std::min(own.size(), sizeof mine.text), {}};
    std::memcpy(mine.text, own.data(), mine.bytes);
    std::vector<Text> all(static_cast<std::size_t>(size()));
    all_gather(bytes_of(&mine, sizeof mine), bytes_of(all.data(), all.size() * sizeof mine));
    std::vector<std::string> texts;
    for (const Text& one : all) texts.emplace_back(one.text, one.bytes);
    return texts;
}

bool Exchange::agree(const Terms& terms) {
    const bool any = terms.values.defined();
    Card own{static_cast<std::int64_t>(operation_),
             static_cast<std::int64_t>(terms.reduction),
             terms.root,
             any ? type_of(terms.values) : -1,
             any ? terms.values.numel() : -1,
             terms.shares};
    std::vector<Card> all(static_cast<std::size_t>(size()));
    bool shared = false;
    share([&] {
        shared = host_->is_open(rank(), size(),
                                [this](const std::string& text) { return exchange_texts(text); });
    });
    if (shared)
        share([&] {
            const std::string note(reinterpret_cast<const char*>(&own), sizeof own);
            const std::vector<std::string> notes = host_->exchange_notes(note, timeout_);
            for (std::size_t q = 0; q < all.size(); ++q)
                std::memcpy(&all[q], notes.at(q).data(), std::min(notes[q].size(), sizeof own));
        });
    else
        all_gather(bytes_of(&own, sizeof own), bytes_of(all.data(), all.size() * sizeof own));
    const auto other = std::find_if(all.begin(), all.end(),
                                    [&](const Card& card) { return !card.fits(all.front()); });
    if (other == all.end())
        return shared &&
               std::all_of(all.begin(), all.end(), [](const Card& card) { return card.shares; });
    fail("the ranks do not make the same operation. Rank 0 makes " + described(all.front()) +
         ", rank " + std::to_string(other - all.begin()) + " makes " + described(*other) +
         ". All ranks of a group make the same operations, in the same order and with tensors of "
         "the same type and number of elements.");
}

void Exchange::all_reduce(const Prepared& tensor, HostWay::Reduction reduction) {
    share([&] { host_->all_reduce(tensor, reduction, timeout_); });
}

void Exchange::broadcast(const Prepared& tensor, int root) {
    share([&] { host_->broadcast(tensor, root, timeout_); });
}

void Exchange::all_gather(const Prepared& own, const std::vector<Prepared>& all) {
    share([&] { host_->all_gather(own, all, timeout_); });
}

void Exchange::all_gather(at::Tensor own, at::Tensor all) {
    if (own.numel() == 0) return;
    transfer([&] { gloo_->_allgather_base(all, own, {.timeout = timeout_})->wait(); });
}

void Exchange::all_to_all(at::Tensor own, at::Tensor all) {
    if (own.numel() == 0) return;
    std::vector<std::int64_t> equal;
    transfer([&] { gloo_->alltoall_base(all, own, equal, equal, {.timeout = timeout_})->wait(); });
}

void Exchange::agree_on_pieces(const std::vector<std::int64_t>& sends,
                               const std::vector<std::int64_t>& receives) {
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<std::int64_t> own(sends);
    own.insert(own.end(), receives.begin(), receives.end());
    std::vector<std::int64_t> table(ranks * own.size());
    all_gather(bytes_of(own.data(), own.size() * sizeof own[0]),
               bytes_of(table.data(), table.size() * sizeof own[0]));
    for (std::size_t from = 0; from < ranks; ++from)
        for (std::size_t to = 0; to < ranks; ++to) {
            const std::int64_t sent = table[from * own.size() + to];
            const std::int64_t expected = table[to * own.size() + ranks + from];
            if (sent == expected) continue;
            fail("rank " + std::to_string(from) + " sends " + std::to_string(sent) +
                 " bytes to rank " + std::to_string(to) + ", which expects " +
                 std::to_string(expected) + " of it.");
        }
}

void Exchange::all_to_all(at::Tensor own, std::vector<std::int64_t> sends, at::Tensor all,
                          std::vector<std::int64_t> receives) {
    agree_on_pieces(sends, receives);
    transfer(
        [&] { gloo_->alltoall_base(all, own, receives, sends, {.timeout = timeout_})->wait(); });
}

void Exchange::broadcast(at::Tensor bytes, int root) {
    if (bytes.numel() == 0) return;
    std::vector<at::Tensor> list{std::move(bytes)};
    transfer([&] { gloo_->broadcast(list, {.rootRank = root, .timeout = timeout_})->wait(); });
}

void Exchange::gather(at::Tensor own, const at::Tensor& all, int root) {
    if (own.numel() == 0) return;
    std::vector<std::vector<at::Tensor>> lists;
    if (rank() == root) lists.push_back(all.chunk(size()));
    std::vector<at::Tensor> list{std::move(own)};
    transfer([&] { gloo_->gather(lists, list, {.rootRank = root, .timeout = timeout_})->wait(); });
}

void Exchange::scatter(const at::Tensor& all, at::Tensor own, int root) {
    if (own.numel() == 0) return;
    std::vector<std::vector<at::Tensor>> lists;
    if (rank() == root) lists.push_back(all.chunk(size()));
    std::vector<at::Tensor> list{std::move(own)};
    transfer([&] { gloo_->scatter(list, lists, {.rootRank = root, .timeout = timeout_})->wait(); });
}

void Exchange::send(at::Tensor bytes, const at::Tensor& values, int to, int tag) {
    std::array<std::int64_t, 2> card{type_of(values), values.numel()};
    std::vector<at::Tensor> list{bytes_of(card.data(), sizeof card)};
    transfer([&] { gloo_->send(list, to, tag)->wait(); });
    list = {std::move(bytes)};
    if (list[0].numel() > 0) transfer([&] { gloo_->send(list, to, tag)->wait(); });
}

at::Tensor Exchange::receive(const at::Tensor& values, int& from, int tag) {
    std::array<std::int64_t, 2> card{};
    std::vector<at::Tensor> list{bytes_of(card.data(), sizeof card)};
    transfer([&] {
        const auto work = from < 0 ? gloo_->recvAnysource(list, tag) : gloo_->recv(list, from, tag);
        work->wait();
        if (from < 0) from = work->sourceRank();
    });
    const auto [type, count] = card;
    const auto size =
        static_cast<std::int64_t>(c10::elementSize(static_cast<at::ScalarType>(type)));
    list = {pinned_bytes(count * size)};
    if (count > 0) transfer([&] { gloo_->recv(list, from, tag)->wait(); });
    if (type != type_of(values) || count != values.numel())
        fail("rank " + std::to_string(from) + " sent " + elements(count, type) +
             " for a tensor of " + elements(values.numel(), type_of(values)) + ".");
    return list[0];
}

}  // namespace dlprim_torch
