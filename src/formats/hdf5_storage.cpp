// SPDX-License-Identifier: MIT
// A dataset's layout, external files, filters and chunks.
#include "formats/hdf5_storage.hpp"

#include "formats/hdf5_listing.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace dlprim::hdf5 {

namespace {

constexpr std::uint64_t always_allowed = 64u << 20;

struct Filter {
    H5Z_filter_t id = 0;
    std::string name;  ///< as the file states it, which may be any text
    std::vector<unsigned> values;
};

/// The flags are not fetched here: for those H5Pget_filter2 would load the filter itself.
std::vector<Filter> filters_of(hid_t how) {
    std::vector<Filter> filters;
    const int count = H5Pget_nfilters(how);
    for (int i = 0; i < count; ++i) {
        Filter& filter = filters.emplace_back();
        filter.values.resize(32);
        std::size_t size = filter.values.size();
        unsigned flags = 0;
        char name[64] = {};
        filter.id = H5Pget_filter2(how, static_cast<unsigned>(i), &flags, &size,
                                   filter.values.data(), sizeof(name) - 1, name, nullptr);
        filter.name = name;
        filter.values.resize(std::min(size, filter.values.size()));
    }
    return filters;
}

/// The name of a filter that is built into HDF5, or nullptr.
const char* built_in(H5Z_filter_t id) {
    switch (id) {
#ifdef H5_HAVE_FILTER_DEFLATE
        case H5Z_FILTER_DEFLATE:
            return "deflate";
#endif
        case H5Z_FILTER_SHUFFLE:
            return "shuffle";
        case H5Z_FILTER_FLETCHER32:
            return "fletcher32";
#ifdef H5_HAVE_FILTER_SZIP
        case H5Z_FILTER_SZIP:
            return "szip";
#endif
        case H5Z_FILTER_NBIT:
            return "nbit";
        case H5Z_FILTER_SCALEOFFSET:
            return "scaleoffset";
        default:
            return nullptr;
    }
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

/// Number of elements of a chunk.
std::uint64_t chunk_elements(hid_t how) {
    hsize_t sizes[H5S_MAX_RANK] = {};
    const int rank = H5Pget_chunk(how, H5S_MAX_RANK, sizes);
    std::uint64_t elements = rank < 0 ? 0 : 1;
    for (int i = 0; i < rank; ++i) elements = times(elements, sizes[i]);
    return elements;
}

/// Whether nbit or scaleoffset would produce as many elements, of the same size, as a chunk has.
/// They take that number from settings in the file. nbit also trusts what the settings say about
/// the type.
bool fits_chunk(const Filter& filter, std::uint64_t elements, std::size_t element) {
    const std::vector<unsigned>& set = filter.values;
    if (filter.id != H5Z_FILTER_NBIT && filter.id != H5Z_FILTER_SCALEOFFSET) return true;
    if (set.size() <= 4 || set[2] != elements || set[4] != element) return false;
    constexpr unsigned number = 1, unchanged = 4;  // nbit's classes for the types of numbers
    if (filter.id == H5Z_FILTER_SCALEOFFSET || set[3] == unchanged) return true;
    return set[3] == number && set.size() >= 8 && set[6] >= 1 &&
           std::uint64_t{set[6]} + set[7] <= 8 * element;  // precision and offset in bits
}

}  // namespace

std::string foreign_storage(hid_t dataset) {
    Handle how(H5Dget_create_plist(dataset), H5Pclose);
    if (!how) return cat("does not say how it is stored: ", last_error());
    if (H5Pget_layout(how.id()) == H5D_VIRTUAL)
        return "is virtual: its values are those of other datasets, perhaps in other files, which "
               "are not read; write the values themselves";
    if (H5Pget_external_count(how.id()) != 0)
        return "keeps its values in another file, which is not read; write them into this one";
    for (const Filter& filter : filters_of(how.id()))
        if (built_in(filter.id) == nullptr)
            return cat("is stored through filter ", filter.id, filter.name.empty() ? "" : " ('",
                       shown(filter.name), filter.name.empty() ? "" : "')",
                       ", which is not supported; write it with gzip or without compression");
    return {};
}

std::string absurd_storage(hid_t dataset, std::uint64_t bytes) {
    Handle how(H5Dget_create_plist(dataset), H5Pclose);
    Handle type(H5Dget_type(dataset), H5Tclose);
    if (!how || !type) return cat("does not say how it is stored: ", last_error());
    if (H5Pget_layout(how.id()) != H5D_CHUNKED) return {};
    const std::size_t element = H5Tget_size(type.id());
    const std::uint64_t elements = chunk_elements(how.id());
    if (elements == 0 || times(elements, element) > std::max(bytes, always_allowed))
        return cat("has chunks of ", elements, " elements, far more than its own");
    std::vector<H5Z_filter_t> seen;
    for (const Filter& filter : filters_of(how.id())) {
        if (std::find(seen.begin(), seen.end(), filter.id) != seen.end())
            return cat("is stored through filter ", built_in(filter.id), " twice");
        if (!fits_chunk(filter, elements, element))
            return cat("has filter ", built_in(filter.id), " set up for other chunks than its own");
        seen.push_back(filter.id);
    }
    return {};
}

std::uint64_t most_values(std::uint64_t stored) {
    return std::max(times(stored, 1100), always_allowed);
}

}  // namespace dlprim::hdf5
