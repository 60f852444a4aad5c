// SPDX-License-Identifier: MIT
// Transport.
#include "collective/processes/transport.hpp"

#include "base/text.hpp"
#include "collective/processes/sum_check.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <utility>

namespace dlprim {

namespace {

constexpr std::uint32_t magic = 0x31747264;
constexpr const char* kinds[] = {"exchanges", "gathers", "shares", "waits for all", "adds up"};

struct Text {
    std::array<char, 400> bytes{};
    dlprim_message message() { return {bytes.data(), bytes.size()}; }
};

/// Lists of pieces by process, as plugins take them, of which most may be empty.
class Lists {
  public:
    explicit Lists(std::size_t processes) : lists_(processes) {}
    /// For a process, which has none yet.
    void set(std::size_t process, const Pieces& pieces) {
        std::vector<dlprim_piece>& list = pieces_.emplace_back();
        for (const MessagePiece& piece : pieces)
            if (piece.bytes > 0) list.push_back({piece.data, piece.bytes});
        lists_[process] = {list.data(), list.size()};
    }
    const dlprim_pieces* data() const { return lists_.data(); }

  private:
    std::vector<dlprim_pieces> lists_;
    std::deque<std::vector<dlprim_piece>> pieces_;
};

std::uint64_t bytes_of(const Pieces& pieces) {
    std::uint64_t bytes = 0;
    for (const MessagePiece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

std::uint64_t digest_of(const Pieces& pieces) {
    std::uint64_t digest = 0;
    for (const MessagePiece& piece : pieces)
        digest = dlprim::digest_of(piece.data, piece.bytes, digest);
    return digest;
}

}  // namespace

std::uint64_t digest_of(const void* data, std::uint64_t bytes, std::uint64_t before) {
    // Four chains, so that multiplications overlap. Multiplication by an odd number is a bijection,
    // and so is each step: a change of one word changes the digest.
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15, other = 0xc2b2ae3d27d4eb4f;
    std::uint64_t chains[4] = {before ^ bytes, odd, other, ~before};
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t words[4];
    const auto mix = [&] {
        for (int i = 0; i < 4; ++i) {
            chains[i] = (chains[i] ^ words[i]) * odd;
            chains[i] ^= chains[i] >> 29;
        }
    };
    for (; bytes >= sizeof(words); bytes -= sizeof(words), at += sizeof(words)) {
        std::memcpy(words, at, sizeof(words));
        mix();
    }
    if (bytes > 0) {
        std::memset(words, 0, sizeof(words));
        std::memcpy(words, at, bytes);
        mix();
    }
    std::uint64_t digest = 0;
    for (const std::uint64_t chain : chains) {
        digest = (digest ^ chain) * other;
        digest ^= digest >> 31;
    }
    return digest;
}

/// What a process says to another about a call.
struct Transport::Header {
    std::uint32_t magic = 0, kind = 0;
    std::uint64_t number = 0, bytes = 0, digest = 0;
    char what[96] = {};
};

Transport::Transport(const dlprim_transport& plugin, void* self, int rank,
                     std::vector<std::string> names)
    : plugin_(plugin),
      self_(self),
      rank_(static_cast<std::size_t>(rank)),
      names_(std::move(names)) {}

Transport::~Transport() {
    if (!closed_) plugin_.close(self_, 0);
}

void Transport::close() {
    closed_ = true;
    plugin_.close(self_, 1);
}

void Transport::cancel() {
    plugin_.cancel(self_);
}

void Transport::check(int result, const char* text, const std::string& what,
                      Deadline deadline) const {
    if (result == DLPRIM_TRANSPORT_DONE) return;
    if (result == DLPRIM_TRANSPORT_CANCELLED)
        fail(ErrorKind::device, "was stopped while it waited for ", what);
    if (result == DLPRIM_TRANSPORT_LATE)
        fail(ErrorKind::device, "another process of the run did not come for ", what, " within ",
             deadline.count(), " seconds: look after it, or set a longer deadline");
    fail(ErrorKind::device, plugin_.name, " failed in ", what, ": ", text);
}

Transport::Header Transport::header(Kind kind, const std::string& what) const {
    Header header;
    header.magic = magic;
    header.kind = kind;
    header.number = number_;
    std::memcpy(header.what, what.data(), std::min(what.size(), sizeof(header.what) - 1));
    return header;
}

void Transport::mismatch(std::size_t rank, const Header& theirs, const Header& own) const {
    if (theirs.magic != magic || theirs.kind >= std::size(kinds))
        fail(ErrorKind::device, "what arrived from ", names_[rank], " in call ", own.number,
             " is no message of this run: the connection changes what it carries");
    const auto text = [&](const Header& header) {
        return cat(kinds[header.kind], " ",
                   std::string(header.what, ::strnlen(header.what, sizeof(header.what))), " (call ",
                   header.number, ", ", header.bytes, " bytes)");
    };
    fail(ErrorKind::device, names_[rank], " ", text(theirs), ", but ", names_[rank_], " ",
         text(own), ": the processes do not run the same steps");
}

void Transport::changed(std::size_t rank, const std::string& what) const {
    fail(ErrorKind::device, "what arrived from ", names_[rank], " for ", what,
         " is not what it has sent: the connection changes what it carries");
}

Transport::Partners Transport::others() const {
    Partners all(names_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(rank_));
    return all;
}

std::vector<Transport::Header> Transport::meet(std::vector<Header> own, const Partners& partners,
                                               const std::string& what, Deadline deadline) {
    std::vector<Header> theirs(partners.size());
    Lists to(names_.size()), from(names_.size());
    for (std::size_t k = 0; k < partners.size(); ++k) {
        to.set(partners[k], {{reinterpret_cast<std::byte*>(&own[k]), sizeof(Header)}});
        from.set(partners[k], {{reinterpret_cast<std::byte*>(&theirs[k]), sizeof(Header)}});
    }
    Text text;
    const int result =
        plugin_.exchange(self_, to.data(), from.data(), deadline.count(), text.message());
    check(result, text.bytes.data(), what, deadline);
    ++number_;
    for (std::size_t k = 0; k < partners.size(); ++k)
        if (theirs[k].magic != magic || theirs[k].kind != own[k].kind ||
            theirs[k].number != own[k].number ||
            std::memcmp(theirs[k].what, own[k].what, sizeof(own[k].what)) != 0)
            mismatch(partners[k], theirs[k], own[k]);
    return theirs;
}

std::vector<Transport::Header> Transport::meet(const Header& own, const std::string& what,
                                               Deadline deadline) {
    return meet(std::vector<Header>(names_.size() - 1, own), others(), what, deadline);
}

void Transport::move(Kind kind, const std::vector<Pieces>& to, const std::vector<Pieces>& from,
                     const std::string& what, Deadline deadline) {
    Partners partners;
    for (std::size_t i = 0; i < names_.size(); ++i)
        if (i != rank_ && !(to[i].empty() && from[i].empty())) partners.push_back(i);
    std::vector<Header> own(partners.size(), header(kind, what));
    for (std::size_t k = 0; k < partners.size(); ++k) {
        own[k].bytes = bytes_of(to[partners[k]]);
        own[k].digest = digest_of(to[partners[k]]);
    }
    const std::vector<Header> theirs = meet(own, partners, what, deadline);
    bool any = false;
    Lists out(names_.size()), in(names_.size());
    for (std::size_t k = 0; k < partners.size(); ++k) {
        const std::size_t i = partners[k];
        if (theirs[k].bytes != bytes_of(from[i]))
            fail(ErrorKind::device, names_[i], " sends ", theirs[k].bytes, " bytes for ", what,
                 ", and ", names_[rank_], " expects ", bytes_of(from[i]),
                 ": the processes do not compute the same network");
        any = any || own[k].bytes + theirs[k].bytes > 0;
        sent_ += own[k].bytes;
        out.set(i, to[i]);
        in.set(i, from[i]);
    }
    if (!any) return;
    Text text;
    const int result =
        plugin_.exchange(self_, out.data(), in.data(), deadline.count(), text.message());
    check(result, text.bytes.data(), what, deadline);
    for (std::size_t k = 0; k < partners.size(); ++k)
        if (digest_of(from[partners[k]]) != theirs[k].digest) changed(partners[k], what);
}

void Transport::allgather(const void* own, std::uint64_t bytes, void* all, const std::string& what,
                          Deadline deadline) {
    auto* const first = static_cast<std::byte*>(all);
    const MessagePiece mine{first + rank_ * bytes, bytes};
    std::memcpy(mine.data, own, bytes);
    std::vector<Pieces> to(names_.size()), from(names_.size());
    for (const std::size_t i : others()) {
        to[i] = {mine};
        from[i] = {{first + i * bytes, bytes}};
    }
    move(allgather_call, to, from, what, deadline);
}

void Transport::broadcast(std::size_t root, void* data, std::uint64_t bytes,
                          const std::string& what, Deadline deadline) {
    const MessagePiece piece{static_cast<std::byte*>(data), bytes};
    std::vector<Pieces> to(names_.size()), from(names_.size());
    if (root == rank_)
        to.assign(names_.size(), {piece});
    else
        from[root] = {piece};
    move(broadcast_call, to, from, what, deadline);
}

void Transport::allreduce(float* values, std::uint64_t count, const std::string& what,
                          Deadline deadline) {
    Header mine = header(allreduce_call, what);
    mine.bytes = count * sizeof(float);
    const std::vector<Header> theirs = meet(mine, what, deadline);
    for (std::size_t k = 0; k < theirs.size(); ++k)
        if (theirs[k].bytes != mine.bytes) mismatch(others()[k], theirs[k], mine);
    const std::vector<double> given = SumCheck::of(values, count);
    Text text;
    check(plugin_.allreduce(self_, values, count, deadline.count(), text.message()),
          text.bytes.data(), what, deadline);
    const std::string checks = "checks of " + what;
    const std::uint64_t digest = SumCheck::digest(values, count);
    std::vector<std::uint64_t> digests(names_.size());
    allgather(&digest, sizeof(digest), digests.data(), checks, deadline);
    for (std::size_t i = 0; i < digests.size(); ++i)
        if (digests[i] != digest)
            fail(ErrorKind::device, names_[i], " and ", names_[rank_], " do not get the same ",
                 what, " from ", plugin_.name, ": the connection changes what it carries");
    std::vector<double> all(given.size() * names_.size());
    allgather(given.data(), given.size() * sizeof(double), all.data(), checks, deadline);
    if (!SumCheck::agrees(values, count, all))
        fail(ErrorKind::device, plugin_.name, " has not added up the ", what,
             " of all processes: the connection changes what it carries");
}

void Transport::barrier(const std::string& what, Deadline deadline) {
    meet(header(barrier_call, what), what, deadline);
}

}  // namespace dlprim
