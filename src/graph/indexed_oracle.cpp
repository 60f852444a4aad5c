// SPDX-License-Identifier: MIT
// IndexedDefinition: coordinates mode by mode.
#include "graph/indexed_oracle.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

IndexedDefinition::IndexedDefinition(const Attrs& attrs, const Shape& data,
                                     const HostArray& indices)
    : mode_(attrs.text("mode")),
      dim_(static_cast<int>(attrs.integer("dim"))),
      batch_(static_cast<int>(attrs.integer("batch_dims"))),
      dims_(attrs.ints("dims")),
      from_end_(attrs.boolean("from_end")),
      data_(data),
      indices_(indices) {
    if (dim_ < 0) dim_ += data.rank();
    const Ints x = data.to_vector(), i = indices.shape.to_vector();
    Ints sizes;
    if (mode_ == "elements") {
        sizes = i;
    } else if (mode_ == "rows") {
        sizes.assign(x.begin(), x.begin() + dim_);
        sizes.insert(sizes.end(), i.begin(), i.end());
        sizes.insert(sizes.end(), x.begin() + dim_ + 1, x.end());
    } else if (mode_ == "dims") {
        for (std::int64_t d = 0; d < data.rank(); ++d)
            if (std::find(dims_.begin(), dims_.end(), d) == dims_.end())
                sizes.push_back(data[static_cast<int>(d)]);
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(front()), i.begin(), i.end() - 1);
    } else {
        sizes.assign(i.begin(), i.end() - 1);
        sizes.insert(sizes.end(), x.begin() + batch_ + i.back(), x.end());
    }
    parts_ = Shape(sizes);
}

std::size_t IndexedDefinition::flat(const Shape& shape, const Ints& at) {
    std::int64_t place = 0;
    for (int i = 0; i < shape.rank(); ++i)
        place = place * shape[i] + at[static_cast<std::size_t>(i)];
    return static_cast<std::size_t>(place);
}

std::size_t IndexedDefinition::front() const {
    const bool side_by_side = dims_.back() - dims_.front() + 1 == std::ssize(dims_);
    return side_by_side ? static_cast<std::size_t>(dims_.front()) : 0;
}

std::int64_t IndexedDefinition::index(const Ints& at, int dimension) const {
    const auto value = static_cast<std::int64_t>(indices_.data[flat(indices_.shape, at)]);
    require(value >= (from_end_ ? -data_[dimension] : 0) && value < data_[dimension], "index ",
            value, " is outside of dimension ", dimension, " of data ", data_);
    return value < 0 ? value + data_[dimension] : value;
}

Ints IndexedDefinition::named_by(const Ints& at) const {
    if (mode_ == "elements") {
        Ints named = at;
        named[static_cast<std::size_t>(dim_)] = index(at, dim_);
        return named;
    }
    const auto rank = static_cast<std::ptrdiff_t>(indices_.shape.rank());
    if (mode_ == "rows") {
        const auto front = at.begin() + dim_;
        Ints named(at.begin(), front);
        named.push_back(index(Ints(front, front + rank), dim_));
        named.insert(named.end(), front + rank, at.end());
        return named;
    }
    if (mode_ == "dims") {
        const auto begin = at.begin() + static_cast<std::ptrdiff_t>(front());
        Ints entry(begin, begin + rank - 1), others(at.begin(), begin), named;
        others.insert(others.end(), begin + rank - 1, at.end());
        entry.push_back(0);
        auto other = others.begin();
        for (std::int64_t d = 0; d < data_.rank(); ++d) {
            const auto found = std::find(dims_.begin(), dims_.end(), d);
            entry.back() = found - dims_.begin();
            named.push_back(found == dims_.end() ? *other++ : index(entry, static_cast<int>(d)));
        }
        return named;
    }
    Ints tuple(at.begin(), at.begin() + rank - 1);
    Ints named(at.begin(), at.begin() + batch_);
    tuple.push_back(0);
    for (std::int64_t k = 0; k < indices_.shape[-1]; ++k) {
        tuple.back() = k;
        named.push_back(index(tuple, batch_ + static_cast<int>(k)));
    }
    named.insert(named.end(), at.begin() + rank - 1, at.end());
    return named;
}

}  // namespace dlprim
