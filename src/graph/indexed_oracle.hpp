// SPDX-License-Identifier: MIT
// IndexedDefinition: which elements of a tensor indices name, by the definition of the modes that
// Gather and Scatter share (engine/indexing/indexing.hpp), in naive loops for their oracles.
#pragma once

#include "graph/oracle_loops.hpp"

#include <string>

namespace dlprim {

class IndexedDefinition {
  public:
    /// From the options mode, dim, batch_dims, dims and from_end. `indices` must outlive this
    /// object.
    IndexedDefinition(const Attrs& attrs, const Shape& data, const HostArray& indices);

    /// The shape of all that is named: Gather's result, Scatter's updates.
    const Shape& parts() const { return parts_; }

    /// visit(place in data, place in parts) for all elements of the parts, in row-major order.
    /// Throws Error(invalid_argument) on an index out of range.
    template <typename Visit>
    void each(Visit&& visit) const {
        for_each_position(parts_, [&](const Ints& at, std::size_t place) {
            visit(flat(data_, named_by(at)), place);
        });
    }

  private:
    static std::size_t flat(const Shape& shape, const Ints& at);
    /// The index at these coordinates, of this dimension of data.
    std::int64_t index(const Ints& at, int dimension) const;
    /// Of mode dims: where the dimensions of the indices stand among those of the parts.
    std::size_t front() const;
    /// The coordinates in data of the part's element at `at`.
    Ints named_by(const Ints& at) const;

    std::string mode_;
    int dim_, batch_;
    Ints dims_;
    bool from_end_;
    Shape data_, parts_;
    const HostArray& indices_;
};

}  // namespace dlprim
