// SPDX-License-Identifier: MIT
// Refusals: what kernels refuse: an index that is out of range, or lengths that do not add up.
//
// A kernel cannot throw. It reads or writes nothing that is out of range, goes on, and notes the
// index in device memory that all kernels of a context share (kernels/engine/refuse.clh). The
// next read, wait or readback of the context looks at that memory on its way, and throws. So
// nobody waits for the note, and it costs 32 bytes that are read along with a result. Without such
// kernels not even that.
//
// Of several indices that are refused between two waits, one of the kernel that ran first is
// reported.
#pragma once

#include "runtime/buffer.hpp"

#include <dlprim/error.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace dlprim {

/// What a wait throws for a refusal, which may be of any work before it.
class RefusedIndex : public Error {
  public:
    explicit RefusedIndex(const std::string& message)
        : Error(ErrorKind::invalid_argument, message) {}
};

class Refusals {
  public:
    virtual ~Refusals() = default;
    /// Where kernels note what they refuse. Lives as long as the context. Throws
    /// Error(out_of_memory).
    virtual const Buffer& memory() = 0;
    /// A number, larger than 0, by which a kernel's note says that `who` refused. Any thread may
    /// ask.
    virtual int number_of(const std::string& who) = 0;
    /// A kernel that may refuse something was enqueued.
    virtual void expect() noexcept = 0;
};

/// "index 7 at position 3 is outside of a dimension of 5 elements, where indices are -5 to 4", or
/// "0 to 4" where indices do not count from the end.
std::string outside_text(std::int64_t index, std::int64_t place, std::int64_t size, bool from_end);
/// "cumulative lengths begin with 0, do not fall and end with the number of rows, 12, and the one
/// at position 3 is 7".
std::string lengths_text(std::int64_t length, std::int64_t place, std::int64_t rows);
/// What lengths_text() says of the first length that does not fit, or nothing if all do. The
/// sequences have `rows` rows together, and the first length stands at `first_place`.
std::string refused_lengths(std::span<const std::int64_t> lengths, std::int64_t first_place,
                            std::int64_t rows);

}  // namespace dlprim
