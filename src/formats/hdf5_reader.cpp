// SPDX-License-Identifier: MIT
// Hdf5Reader: opens, lists, reads. What the file says of its sizes is compared with how long it is
// before memory is asked for.
#include "formats/hdf5_file.hpp"
#include "formats/hdf5_handle.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace dlprim {

namespace {

using hdf5::Handle;

/// HDF5's signature stands at byte 0, 512, 1024, 2048, ... of the file.
bool has_signature(std::ifstream& file, std::uint64_t size) {
    constexpr char signature[] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char bytes[8];
    for (std::uint64_t at = 0; at + 8 <= size; at = at == 0 ? 512 : at * 2) {
        file.seekg(static_cast<std::streamoff>(at));
        if (!file.read(bytes, 8)) return false;
        if (std::equal(bytes, bytes + 8, signature)) return true;
    }
    return false;
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
    if (count < 0 || count > (1 << 20)) return std::nullopt;  // HDF5 itself stops at 64 KiB
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
    std::string path;
    std::uint64_t file_bytes = 0;
    Handle file;
    std::vector<Hdf5Dataset> datasets;
    std::string problem;  ///< of a dataset met while listing

    ~Impl() {
        const auto held = hdf5::lock();
        file.reset();
    }

    void add(hid_t parent, const char* name);
    void list();
    /// Throws Error(format) where the file cannot hold so much.
    void check_size(const Hdf5Dataset& dataset) const;
    /// `data` has room for dataset.bytes().
    void read(const Hdf5Dataset& dataset, void* data) const;
    const Hdf5Dataset* find(const std::string& name) const {
        const auto it = std::lower_bound(
            datasets.begin(), datasets.end(), name,
            [](const Hdf5Dataset& dataset, const std::string& n) { return dataset.name < n; });
        return it != datasets.end() && it->name == name ? &*it : nullptr;
    }
};

void Hdf5Reader::Impl::add(hid_t parent, const char* name) {
    Handle dataset(H5Dopen2(parent, name, H5P_DEFAULT), H5Dclose);
    if (!dataset) {
        problem = cat("dataset '", name, "' cannot be opened: ", hdf5::last_error());
        return;
    }
    Handle type(H5Dget_type(dataset.id()), H5Tclose);
    Handle space(H5Dget_space(dataset.id()), H5Sclose);
    std::optional<DType> dtype = hdf5::dtype_of(type.id());
    const int rank = H5Sget_simple_extent_ndims(space.id());
    if (!dtype || rank < 0 || rank > Shape::max_rank ||
        H5Sget_simple_extent_type(space.id()) == H5S_NULL)
        return;
    std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
    if (rank > 0) H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
    std::vector<std::int64_t> dims;
    for (const hsize_t size : sizes)
        dims.push_back(static_cast<std::int64_t>(std::min<hsize_t>(size, INT64_MAX)));
    if (dtype == DType::u16) {
        const auto tag = read_attribute(dataset.id(), "dtype");
        if (tag && std::holds_alternative<std::string>(*tag) &&
            std::get<std::string>(*tag) == "bfloat16")
            dtype = DType::bf16;
    }
    try {
        datasets.push_back({name, Shape(dims), *dtype});
    } catch (const Error& error) {
        problem = cat("dataset '", name, "': ", error.what());
    }
}

void Hdf5Reader::Impl::list() {
    // H5Ovisit meets every object once, so cycles of hard links end.
    const auto visit = [](hid_t root, const char* name, const H5O_info_t* object,
                          void* self) -> herr_t {
        auto& impl = *static_cast<Impl*>(self);
        try {
            if (object->type == H5O_TYPE_DATASET) impl.add(root, name);
        } catch (const std::exception& error) {
            impl.problem = error.what();
        }
        return impl.problem.empty() ? 0 : 1;
    };
#if H5_VERSION_GE(1, 12, 0)
    const herr_t status =
        H5Ovisit3(file.id(), H5_INDEX_NAME, H5_ITER_NATIVE, visit, this, H5O_INFO_BASIC);
#else
    const herr_t status =
        H5Ovisit2(file.id(), H5_INDEX_NAME, H5_ITER_NATIVE, visit, this, H5O_INFO_BASIC);
#endif
    if (!problem.empty()) fail(ErrorKind::format, "'", path, "' is damaged: ", problem);
    if (status < 0)
        fail(ErrorKind::format, "'", path,
             "' is damaged: HDF5 cannot list it: ", hdf5::last_error());
    std::sort(datasets.begin(), datasets.end(),
              [](const Hdf5Dataset& a, const Hdf5Dataset& b) { return a.name < b.name; });
}

Hdf5Reader::Hdf5Reader(const std::string& path) : impl_(std::make_unique<Impl>()) {
    impl_->path = path;
    std::error_code code;
    const auto status = std::filesystem::status(path, code);
    if (status.type() == std::filesystem::file_type::not_found)
        fail(ErrorKind::not_found, "there is no file '", path, "'");
    if (status.type() != std::filesystem::file_type::regular)
        fail(ErrorKind::io, "'", path, "' is not a file that can be read");
    std::ifstream probe(path, std::ios::binary);
    if (!probe) fail(ErrorKind::io, "'", path, "' cannot be opened: check its permissions");
    impl_->file_bytes = std::filesystem::file_size(path, code);
    if (impl_->file_bytes == 0) fail(ErrorKind::format, "'", path, "' is empty, not an HDF5 file");
    if (!has_signature(probe, impl_->file_bytes))
        fail(ErrorKind::format, "'", path, "' is not an HDF5 file: its signature is missing");
    probe.close();

    const auto held = hdf5::lock();
    impl_->file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!impl_->file) {
        const std::string why = hdf5::last_error();
        if (why.find("truncated") != std::string::npos || impl_->file_bytes < 96)
            fail(ErrorKind::format, "'", path, "' is cut short: it is ", impl_->file_bytes,
                 " bytes long (HDF5: ", why, "); copy or write it again");
        fail(ErrorKind::format, "'", path, "' is a damaged HDF5 file: ", why);
    }
    impl_->list();
}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::path() const {
    return impl_->path;
}
const std::vector<Hdf5Dataset>& Hdf5Reader::datasets() const {
    return impl_->datasets;
}
bool Hdf5Reader::has(const std::string& name) const {
    return impl_->find(name) != nullptr;
}

const Hdf5Dataset& Hdf5Reader::info(const std::string& name) const {
    if (const Hdf5Dataset* dataset = impl_->find(name)) return *dataset;
    std::vector<std::string> names;
    for (const Hdf5Dataset& dataset : impl_->datasets) names.push_back(dataset.name);
    fail(ErrorKind::not_found, "'", impl_->path, "' has no dataset '", name, "'",
         did_you_mean(name, names));
}

std::vector<std::byte> Hdf5Reader::read(const std::string& name) const {
    const Hdf5Dataset& dataset = info(name);
    impl_->check_size(dataset);
    std::vector<std::byte> bytes(dataset.bytes());
    impl_->read(dataset, bytes.data());
    return bytes;
}

void Hdf5Reader::Impl::check_size(const Hdf5Dataset& dataset) const {
    // Deflate shrinks at most about a thousandfold; small datasets may be all fill value.
    const std::uint64_t most = std::max<std::uint64_t>(file_bytes * 1100, 64u << 20);
    if (dataset.bytes() > most)
        fail(ErrorKind::format, "'", path, "' is damaged: dataset '", dataset.name, "' of shape ",
             dataset.shape.str(), " cannot be in a file of ", file_bytes, " bytes");
}

void Hdf5Reader::Impl::read(const Hdf5Dataset& dataset, void* data) const {
    if (dataset.bytes() == 0) return;
    const auto held = hdf5::lock();
    Handle object(H5Dopen2(file.id(), dataset.name.c_str(), H5P_DEFAULT), H5Dclose);
    Handle memory = hdf5::memory_type(dataset.dtype);
    Handle stored(object ? H5Dget_type(object.id()) : H5I_INVALID_HID, H5Tclose);
    // Enumerations convert by member name; other programs' booleans are read by value instead.
    if (dataset.dtype == DType::boolean) memory = Handle(H5Tcopy(stored.id()), H5Tclose);
    if (!object || H5Dread(object.id(), memory.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        fail(ErrorKind::format, "'", path, "' is damaged or cut short: dataset '", dataset.name,
             "' cannot be read: ", hdf5::last_error());
}

void Hdf5Reader::read(const std::string& name, DType dtype, void* data, std::uint64_t bytes) const {
    const Hdf5Dataset& dataset = info(name);
    const auto count = static_cast<std::size_t>(dataset.shape.numel());
    require(bytes == count * size_of(dtype), "'", impl_->path, "': dataset '", name, "' of shape ",
            dataset.shape.str(), " takes ", count * size_of(dtype), " bytes as ", name_of(dtype),
            ", not ", bytes);
    if (dtype == dataset.dtype) {  // no second copy of what may be large
        impl_->check_size(dataset);
        return impl_->read(dataset, data);
    }
    const std::vector<std::byte> stored = read(name);
    if (count > 0) convert(stored.data(), dataset.dtype, data, dtype, count);
}

std::optional<std::uint64_t> Hdf5Reader::position(const std::string& name) const {
    const Hdf5Dataset& dataset = info(name);
    const auto held = hdf5::lock();
    Handle object(H5Dopen2(impl_->file.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
    Handle stored(object ? H5Dget_type(object.id()) : H5I_INVALID_HID, H5Tclose);
    Handle how(object ? H5Dget_create_plist(object.id()) : H5I_INVALID_HID, H5Pclose);
    const Handle memory = hdf5::memory_type(dataset.dtype);
    if (!stored || !how || H5Pget_layout(how.id()) != H5D_CONTIGUOUS ||
        H5Pget_external_count(how.id()) != 0 || H5Tequal(stored.id(), memory.id()) <= 0)
        return std::nullopt;
    const haddr_t at = H5Dget_offset(object.id());
    if (at == HADDR_UNDEF || at > impl_->file_bytes || dataset.bytes() > impl_->file_bytes - at)
        return std::nullopt;
    return at;
}

std::optional<Attr> Hdf5Reader::attribute(const std::string& object,
                                          const std::string& name) const {
    const auto held = hdf5::lock();
    const std::string path = "/" + object;
    if (!object.empty()) {
        // H5Lexists wants every part before the last to exist.
        std::string part;
        for (const std::string& piece : split(object, '/')) {
            part += "/" + piece;
            if (H5Lexists(impl_->file.id(), part.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
        }
    }
    Handle opened(H5Oopen(impl_->file.id(), path.c_str(), H5P_DEFAULT), H5Oclose);
    if (!opened) return std::nullopt;
    return read_attribute(opened.id(), name);
}

}  // namespace dlprim
