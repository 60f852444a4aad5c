// SPDX-License-Identifier: MIT
// Hdf5Reader: opens, lists, reads. The sizes that the file states are compared with its length
// before memory is allocated, and only values in the file itself are read.
#include "base/file_kind.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/hdf5_handle.hpp"
#include "formats/hdf5_listing.hpp"
#include "formats/hdf5_storage.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

namespace dlprim {

namespace {

using hdf5::Handle;

constexpr std::size_t max_attribute_bytes = 1 << 20;  ///< HDF5 itself mostly stops at 64 KiB

/// HDF5's signature may be at byte 0, 512, 1024, 2048, ... of the file.
bool has_signature(const InputFile& file) {
    constexpr char signature[] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char bytes[8];
    for (std::uint64_t at = 0; at + 8 <= file.size(); at = at == 0 ? 512 : at * 2) {
        if (file.read(at, bytes, 8) != 8) return false;
        if (std::equal(bytes, bytes + 8, signature)) return true;
    }
    return false;
}

[[noreturn]] void cannot_open(const InputFile& source, const std::string& why) {
    if (why.find("truncated") != std::string::npos || source.size() < 96)
        fail(ErrorKind::format, "'", source.path(), "' is cut short: it is ", source.size(),
             " bytes long (HDF5: ", why, "); copy or write it again");
    fail(ErrorKind::format, "'", source.path(), "' is a damaged HDF5 file: ", why);
}

bool is_same(const InputFile& source, const struct stat& other) {
    return other.st_dev == source.status().st_dev && other.st_ino == source.status().st_ino;
}

/// The name by which HDF5 opens the file that `source` has open. Where the system has names for
/// descriptors, it is that name, because the path may name another file by now, on which HDF5 might
/// wait. HDF5 must be able to resolve the name, which the system does not allow for all files.
std::string name_for_hdf5(const InputFile& source) {
    std::string name = cat("/proc/self/fd/", source.descriptor());
    const std::unique_ptr<char, void (*)(void*)> target(::realpath(name.c_str(), nullptr),
                                                        std::free);
    struct stat status {};
    if (target && ::stat(name.c_str(), &status) == 0 && is_same(source, status)) return name;
    if (::stat(source.path().c_str(), &status) != 0 || !is_same(source, status))
        fail(ErrorKind::io, "'", source.path(), "' was removed or replaced while it was opened");
    return source.path();
}

Handle open_file(const InputFile& source) {
    const std::string name = name_for_hdf5(source);
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_sec2(access.id());
    Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (!file) cannot_open(source, hdf5::last_error());
    void* descriptor = nullptr;
    struct stat status {};
    if (H5Fget_vfd_handle(file.id(), access.id(), &descriptor) < 0 ||
        ::fstat(*static_cast<int*>(descriptor), &status) != 0 || !is_same(source, status))
        fail(ErrorKind::io, "'", source.path(), "' was removed or replaced while it was opened");
    return file;
}

std::optional<std::string> text_attribute(hid_t attribute, hid_t type) {
    Handle space(H5Aget_space(attribute), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.id()) != 1) return std::nullopt;
    if (H5Tis_variable_str(type) > 0) {
        Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(memory.id(), H5T_VARIABLE);
        H5Tset_cset(memory.id(), H5Tget_cset(type));
        char* text = nullptr;
        if (H5Aread(attribute, memory.id(), &text) < 0 || text == nullptr) return std::nullopt;
        std::string out = text;
        H5free_memory(text);
        return out;
    }
    if (H5Tget_size(type) > max_attribute_bytes) return std::nullopt;
    std::string out(H5Tget_size(type), '\0');
    if (H5Aread(attribute, type, out.data()) < 0) return std::nullopt;
    out.resize(std::min(out.size(), out.find('\0')));
    return out;
}

template <typename T>
std::optional<Attr> number_attribute(hid_t attribute, hid_t memory, bool list, std::size_t count) {
    std::vector<T> values(count);
    if (count > 0 && H5Aread(attribute, memory, values.data()) < 0) return std::nullopt;
    if (list) return Attr(std::move(values));
    return Attr(values[0]);
}

std::optional<Attr> read_attribute(hid_t object, const std::string& name) {
    if (H5Aexists(object, name.c_str()) <= 0) return std::nullopt;
    Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!attribute) return std::nullopt;
    Handle type(H5Aget_type(attribute.id()), H5Tclose);
    Handle space(H5Aget_space(attribute.id()), H5Sclose);
    const hssize_t count = H5Sget_simple_extent_npoints(space.id());
    if (count < 0 || count > static_cast<hssize_t>(max_attribute_bytes / sizeof(double)))
        return std::nullopt;
    const bool list = H5Sget_simple_extent_ndims(space.id()) > 0;
    if (!list && count != 1) return std::nullopt;
    const auto size = static_cast<std::size_t>(count);
    switch (H5Tget_class(type.id())) {
        case H5T_STRING:
            if (auto text = text_attribute(attribute.id(), type.id()))
                return Attr(*std::move(text));
            return std::nullopt;
        case H5T_INTEGER:
            return number_attribute<std::int64_t>(attribute.id(), H5T_NATIVE_INT64, list, size);
        case H5T_FLOAT:
            return number_attribute<double>(attribute.id(), H5T_NATIVE_DOUBLE, list, size);
        default:
            return std::nullopt;
    }
}

}  // namespace

struct Hdf5Reader::Impl {
    std::shared_ptr<const InputFile> source;
    Handle file;
    hdf5::Listing listing;
    std::vector<Hdf5Dataset> datasets;
    std::vector<hdf5::Place> places;             ///< of `datasets`, in the same order
    std::map<std::string, std::string> refused;  ///< datasets that are not read, and why not
    Handle rows_dataset;                         ///< the one that read_rows() read from last
    std::string rows_name;

    explicit Impl(std::shared_ptr<const InputFile> opened) : source(std::move(opened)) {}
    ~Impl() {
        const auto held = hdf5::lock();
        rows_dataset.reset();
        file.reset();
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    const std::string& path() const { return source->path(); }
    void open_and_list();
    void add(const std::string& name, const hdf5::Place& place);
    std::optional<Hdf5Dataset> describe(const std::string& name, hid_t dataset);
    /// Opens the dataset if it is unchanged since it was listed and may be read.
    Handle open(const Hdf5Dataset& dataset) const;
    /// Throws Error(format) if the file is too short to hold the dataset. The caller must hold the
    /// lock.
    void check_size(const Hdf5Dataset& dataset, hid_t opened) const;
    /// Calls `make_room` for the memory after everything is checked.
    void read(const Hdf5Dataset& dataset, const std::function<void*()>& make_room) const;
    const Hdf5Dataset* find(const std::string& name) const {
        const auto it = std::lower_bound(
            datasets.begin(), datasets.end(), name,
            [](const Hdf5Dataset& dataset, const std::string& n) { return dataset.name < n; });
        return it != datasets.end() && it->name == name ? &*it : nullptr;
    }
    /// If the name, or a group in its path, is a link other than a hard link: that link and its
    /// kind. Otherwise nullptr.
    const std::pair<const std::string, std::string>* link_to(const std::string& name) const;
};

void Hdf5Reader::Impl::open_and_list() {
    if (source->size() == 0) fail(ErrorKind::format, "'", path(), "' is empty, not an HDF5 file");
    if (!has_signature(*source)) {
        char first[16];
        const std::size_t count = source->read(0, first, sizeof(first));
        check_kind({first, count}, path(), "an HDF5 file (weights or data)");
        fail(ErrorKind::format, "'", path(), "' is not an HDF5 file: its signature is missing");
    }
    const auto held = hdf5::lock();
    file = open_file(*source);
    listing = hdf5::list_objects(file.id(), path(), source->size());
    for (const auto& [name, place] : listing.datasets) add(name, place);
}

void Hdf5Reader::Impl::add(const std::string& name, const hdf5::Place& place) {
    const Handle dataset = hdf5::open_at(file.id(), place);
    if (!dataset)
        fail(ErrorKind::format, "'", path(), "' is damaged: dataset '", name,
             "' cannot be opened: ", hdf5::last_error());
    try {
        if (auto found = describe(name, dataset.id())) {
            datasets.push_back(*std::move(found));
            places.push_back(place);
        }
    } catch (const Error& error) {
        fail(ErrorKind::format, "'", path(), "' is damaged: dataset '", name, "': ", error.what());
    }
}

std::optional<Hdf5Dataset> Hdf5Reader::Impl::describe(const std::string& name, hid_t dataset) {
    const Handle type(H5Dget_type(dataset), H5Tclose);
    std::optional<DType> dtype = hdf5::dtype_of(type.id());
    if (!dtype) return std::nullopt;
    if (std::string why = hdf5::foreign_storage(dataset); !why.empty()) {
        refused.emplace(name, std::move(why));
        return Hdf5Dataset{name, Shape{}, *dtype};
    }
    const Handle space(H5Dget_space(dataset), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space.id());
    if (rank < 0 || rank > Shape::max_rank || H5Sget_simple_extent_type(space.id()) == H5S_NULL)
        return std::nullopt;
    std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
    if (rank > 0) H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
    std::vector<std::int64_t> dims;
    for (const hsize_t size : sizes)
        dims.push_back(static_cast<std::int64_t>(std::min<hsize_t>(size, INT64_MAX)));
    if (dtype == DType::u16 && read_attribute(dataset, "dtype") == Attr(std::string("bfloat16")))
        dtype = DType::bf16;
    return Hdf5Dataset{name, Shape(dims), *dtype};
}

const std::pair<const std::string, std::string>* Hdf5Reader::Impl::link_to(
    const std::string& name) const {
    if (listing.links.empty()) return nullptr;
    for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
        const auto link = listing.links.find(name.substr(0, end));
        if (link != listing.links.end()) return &*link;
        if (end == std::string::npos) return nullptr;
    }
}

Hdf5Reader::Hdf5Reader(const std::string& path)
    : Hdf5Reader(std::make_shared<const InputFile>(path)) {}
Hdf5Reader::Hdf5Reader(std::shared_ptr<const InputFile> file)
    : impl_(std::make_unique<Impl>(std::move(file))) {
    impl_->open_and_list();
}
Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::path() const {
    return impl_->path();
}
const std::vector<Hdf5Dataset>& Hdf5Reader::datasets() const {
    return impl_->datasets;
}
bool Hdf5Reader::has(const std::string& name) const {
    return impl_->find(name) != nullptr || impl_->link_to(name) != nullptr;
}

const Hdf5Dataset& Hdf5Reader::info(const std::string& name) const {
    if (const auto why = impl_->refused.find(name); why != impl_->refused.end())
        fail(ErrorKind::unsupported, "'", path(), "': dataset '", name, "' ", why->second);
    if (const Hdf5Dataset* dataset = impl_->find(name)) return *dataset;
    if (const auto* link = impl_->link_to(name))
        fail(ErrorKind::unsupported, "'", path(), "': '", link->first, "' is ", link->second,
             ", which is not followed; write the values themselves");
    std::vector<std::string> names;
    for (const Hdf5Dataset& dataset : impl_->datasets) names.push_back(dataset.name);
    fail(ErrorKind::not_found, "'", path(), "' has no dataset '", name, "'",
         did_you_mean(name, names));
}

std::vector<std::byte> Hdf5Reader::read(const std::string& name) const {
    const Hdf5Dataset& dataset = info(name);
    std::vector<std::byte> bytes;
    impl_->read(dataset, [&] {
        bytes.resize(dataset.bytes());
        return bytes.data();
    });
    return bytes;
}

void Hdf5Reader::check_total() const {
    std::uint64_t total = 0;
    const Hdf5Dataset* largest = nullptr;
    for (const Hdf5Dataset& dataset : impl_->datasets) {
        total += std::min<std::uint64_t>(dataset.bytes(), INT64_MAX - total);
        if (largest == nullptr || dataset.bytes() > largest->bytes()) largest = &dataset;
    }
    if (total > hdf5::most_values(impl_->source->size()))
        fail(ErrorKind::format, "'", path(), "' is damaged: its datasets take ", total,
             " bytes in all, '", largest->name, "' the most, which cannot be in a file of ",
             impl_->source->size(), " bytes");
}

void Hdf5Reader::Impl::check_size(const Hdf5Dataset& dataset, hid_t opened) const {
    const std::uint64_t stored =
        std::min<std::uint64_t>(H5Dget_storage_size(opened), source->size());
    if (dataset.bytes() > hdf5::most_values(stored))
        fail(ErrorKind::format, "'", path(), "' is damaged: dataset '", dataset.name, "' of shape ",
             dataset.shape.str(), " cannot be in ", stored, " bytes of a file of ", source->size(),
             " bytes");
    if (const std::string why = hdf5::absurd_storage(opened, dataset.bytes()); !why.empty())
        fail(ErrorKind::format, "'", path(), "' is damaged: dataset '", dataset.name, "' ", why);
}

Handle Hdf5Reader::Impl::open(const Hdf5Dataset& dataset) const {
    const auto index = static_cast<std::size_t>(&dataset - datasets.data());
    Handle opened = hdf5::open_at(file.id(), places[index]);
    if (!opened || H5Iget_type(opened.id()) != H5I_DATASET)
        fail(ErrorKind::format, "'", path(), "' is damaged or cut short: dataset '", dataset.name,
             "' cannot be opened: ", hdf5::last_error());
    // Checked again, because the file may have been written to after it was listed.
    const Handle type(H5Dget_type(opened.id()), H5Tclose);
    const DType stored = dataset.dtype == DType::bf16 ? DType::u16 : dataset.dtype;
    bool same = hdf5::dtype_of(type.id()) == stored && hdf5::foreign_storage(opened.id()).empty();
    if (same) {
        const Handle space(H5Dget_space(opened.id()), H5Sclose);
        hsize_t sizes[H5S_MAX_RANK] = {};
        const auto dims = dataset.shape.dims();
        same = H5Sget_simple_extent_ndims(space.id()) == dataset.shape.rank() &&
               H5Sget_simple_extent_dims(space.id(), sizes, nullptr) >= 0 &&
               std::equal(dims.begin(), dims.end(), sizes,
                          [](std::int64_t a, hsize_t b) { return static_cast<hsize_t>(a) == b; });
    }
    if (!same)
        fail(ErrorKind::format, "'", path(), "': dataset '", dataset.name,
             "' has changed since the file was opened");
    return opened;
}

void Hdf5Reader::Impl::read(const Hdf5Dataset& dataset,
                            const std::function<void*()>& make_room) const {
    if (dataset.bytes() == 0) return;
    const auto held = hdf5::lock();
    const Handle object = open(dataset);
    check_size(dataset, object.id());
    Handle memory = hdf5::memory_type(dataset.dtype);
    // HDF5 converts enumerations by member name. Booleans of other programs have other names, so
    // they are read by value.
    if (dataset.dtype == DType::boolean) {
        const Handle stored(H5Dget_type(object.id()), H5Tclose);
        memory = Handle(H5Tcopy(stored.id()), H5Tclose);
    }
    void* const data = make_room();
    // HDF5 does not touch elements that were never written and have no fill value.
    if (H5Dget_offset(object.id()) == HADDR_UNDEF) std::memset(data, 0, dataset.bytes());
    if (H5Dread(object.id(), memory.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        fail(ErrorKind::format, "'", path(), "' is damaged or cut short: dataset '", dataset.name,
             "' cannot be read: ", hdf5::last_error());
    if (!source->is_unchanged())
        fail(ErrorKind::io, "'", path(), "' was written to while it was read");
}

void Hdf5Reader::read(const std::string& name, DType dtype, void* data, std::uint64_t bytes) const {
    const Hdf5Dataset& dataset = info(name);
    const auto count = static_cast<std::size_t>(dataset.shape.numel());
    require(bytes == count * size_of(dtype), "'", path(), "': dataset '", name, "' of shape ",
            dataset.shape.str(), " takes ", count * size_of(dtype), " bytes as ", name_of(dtype),
            ", not ", bytes);
    if (dtype == dataset.dtype)  // no second copy of what may be large
        return impl_->read(dataset, [&] { return data; });
    const std::vector<std::byte> stored = read(name);
    if (count > 0) convert(stored.data(), dataset.dtype, data, dtype, count);
}

void Hdf5Reader::read_rows(const std::string& name, std::int64_t first, std::int64_t count,
                           void* data) const {
    const Hdf5Dataset& dataset = info(name);
    const int rank = dataset.shape.rank();
    require(rank > 0 && first >= 0 && count >= 0 && first <= dataset.shape[0] - count, "'", path(),
            "': dataset '", name, "' of shape ", dataset.shape.str(), " has no rows ", first,
            " to ", first + count - 1);
    if (count == 0 || dataset.bytes() == 0) return;
    const auto held = hdf5::lock();
    if (impl_->rows_name != name) {
        impl_->rows_dataset = impl_->open(dataset);
        impl_->check_size(dataset, impl_->rows_dataset.id());
        impl_->rows_name = name;
    }
    const hid_t object = impl_->rows_dataset.id();
    hsize_t begin[H5S_MAX_RANK] = {static_cast<hsize_t>(first)};
    hsize_t size[H5S_MAX_RANK] = {static_cast<hsize_t>(count)};
    for (int i = 1; i < rank; ++i) size[i] = static_cast<hsize_t>(dataset.shape[i]);
    const Handle space(H5Dget_space(object), H5Sclose);
    const Handle memory_space(H5Screate_simple(rank, size, nullptr), H5Sclose);
    Handle memory = hdf5::memory_type(dataset.dtype);
    if (dataset.dtype == DType::boolean) {  // as in Impl::read()
        const Handle stored(H5Dget_type(object), H5Tclose);
        memory = Handle(H5Tcopy(stored.id()), H5Tclose);
    }
    if (H5Dget_offset(object) == HADDR_UNDEF)
        std::memset(data, 0,
                    static_cast<std::size_t>(count * dataset.shape.product(1, rank)) *
                        size_of(dataset.dtype));
    if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, begin, nullptr, size, nullptr) < 0 ||
        H5Dread(object, memory.id(), memory_space.id(), space.id(), H5P_DEFAULT, data) < 0)
        fail(ErrorKind::format, "'", path(), "' is damaged or cut short: dataset '", name,
             "' cannot be read: ", hdf5::last_error());
}

std::optional<std::uint64_t> Hdf5Reader::position(const std::string& name) const {
    const Hdf5Dataset& dataset = info(name);
    const auto held = hdf5::lock();
    const Handle object = impl_->open(dataset);
    const Handle stored(H5Dget_type(object.id()), H5Tclose);
    const Handle how(H5Dget_create_plist(object.id()), H5Pclose);
    const Handle memory = hdf5::memory_type(dataset.dtype);
    if (!stored || !how || H5Pget_layout(how.id()) != H5D_CONTIGUOUS ||
        H5Tequal(stored.id(), memory.id()) <= 0)
        return std::nullopt;
    const haddr_t at = H5Dget_offset(object.id());
    const std::uint64_t end = impl_->source->size();
    if (at == HADDR_UNDEF || at > end || dataset.bytes() > end - at) return std::nullopt;
    return at;
}

std::optional<Attr> Hdf5Reader::attribute(const std::string& object,
                                          const std::string& name) const {
    const auto held = hdf5::lock();
    const auto group = impl_->listing.groups.find(object);
    const Hdf5Dataset* dataset = impl_->find(object);
    if (group == impl_->listing.groups.end() && dataset == nullptr) return std::nullopt;
    const Handle opened =
        dataset != nullptr
            ? hdf5::open_at(
                  impl_->file.id(),
                  impl_->places[static_cast<std::size_t>(dataset - impl_->datasets.data())])
            : hdf5::open_at(impl_->file.id(), group->second);
    if (!opened) return std::nullopt;
    return read_attribute(opened.id(), name);
}

}  // namespace dlprim
