// SPDX-License-Identifier: MIT
// Hdf5Writer. If the disk fills while HDF5 flushes or closes, HDF5 leaves a half-closed file behind
// and may crash at exit. So disk space is reserved (posix_fallocate) before data are handed to
// HDF5. A full disk is then found here, where it can be reported, and HDF5's own writes succeed.
#include "base/file_size_signal.hpp"
#include "base/input_file.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/hdf5_handle.hpp"
#include "formats/hdf5_listing.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace dlprim {
namespace {

using hdf5::Handle;

/// An upper bound on what HDF5 adds to the data of one dataset: headers, group tables, free-space
/// records.
constexpr std::uint64_t margin = 256 * 1024;

/// Turns off the creation times that HDF5 would store for files, groups and datasets. With them the
/// same weights would never give the same bytes.
Handle without_times(hid_t list) {
    Handle how(H5Pcreate(list), H5Pclose);
    if (H5Pset_obj_track_times(how.id(), false) < 0)
        fail(ErrorKind::io, "HDF5 cannot turn off timestamps: ", hdf5::last_error());
    return how;
}

}  // namespace

struct Hdf5Writer::Impl {
    std::string path, temporary;
    int descriptor = -1;  ///< of the temporary file, for reserving space and syncing
    Handle file;

    explicit Impl(const std::string& target);
    ~Impl() { discard(); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    [[noreturn]] void broken(const std::string& why) {
        fail(ErrorKind::io, "cannot write '", path, "': ", why);
    }
    /// Makes sure that `bytes` more bytes and HDF5's own records fit on the disk.
    void reserve(std::uint64_t bytes);
    /// Creates the groups that the slashes in a name imply.
    void make_groups(const std::string& name, bool last_too);
    Handle open_object(const std::string& name);
    void set_attribute(hid_t object, const std::string& name, const Attr& value);
    void discard() noexcept;
};

Hdf5Writer::Impl::Impl(const std::string& target) : path(target) {
    const NoFileSizeSignal quiet;
    require(!path.empty(), "the name of the file to write is empty");
    if (std::filesystem::is_directory(path)) broken("it is a folder");
    check_target(path);
    temporary = path + ".tmp-XXXXXX";
    descriptor = mkstemp(temporary.data());
    if (descriptor < 0) {
        const int code = errno;
        temporary.clear();
        broken(cat(std::strerror(code), code == ENOENT ? " (its folder does not exist)" : ""));
    }
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    const auto held = hdf5::lock();
    try {
        reserve(0);
        const Handle how = without_times(H5P_FILE_CREATE);
        file = Handle(H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, how.id(), H5P_DEFAULT), H5Fclose);
        if (!file) broken(cat("HDF5 cannot create it: ", hdf5::last_error()));
        reserve(0);  // creating the file truncated it
    } catch (...) {
        file.reset();
        close(descriptor);
        unlink(temporary.c_str());
        throw;
    }
}

void Hdf5Writer::Impl::reserve(std::uint64_t bytes) {
    hsize_t used = 0;
    if (file && H5Fget_filesize(file.id(), &used) < 0) broken(hdf5::last_error());
    const int code = posix_fallocate(descriptor, 0, static_cast<off_t>(used + bytes + margin));
    if (code == ENOSPC || code == EDQUOT)
        broken(cat("the disk is full (", used + bytes + margin, " bytes are needed so far)"));
    if (code == EFBIG) broken("the file would be larger than the limit set for this process");
    if (code != 0 && code != EOPNOTSUPP && code != EINVAL) broken(std::strerror(code));
}

void Hdf5Writer::Impl::make_groups(const std::string& name, bool last_too) {
    std::vector<std::string> parts = split(name, '/');
    for (const std::string& part : parts)
        require(!part.empty() && part != "." && part.find('\0') == std::string::npos, "'", name,
                "' cannot name a dataset or group: a part of it is empty or '.', or holds a zero");
    require(parts.size() <= hdf5::max_parts && name.size() <= hdf5::max_name, "'",
            hdf5::shown(name), "' cannot name a dataset or group: it has more than ",
            hdf5::max_parts, " parts or ", hdf5::max_name, " bytes");
    const Handle how = without_times(H5P_GROUP_CREATE);
    if (!last_too) parts.pop_back();
    std::string group;
    for (const std::string& part : parts) {
        group += "/" + part;
        if (H5Lexists(file.id(), group.c_str(), H5P_DEFAULT) > 0) continue;
        Handle made(H5Gcreate2(file.id(), group.c_str(), H5P_DEFAULT, how.id(), H5P_DEFAULT),
                    H5Gclose);
        if (!made)
            fail(ErrorKind::invalid_argument, "'", path, "': group '", group,
                 "' cannot be made: ", hdf5::last_error());
    }
}

Handle Hdf5Writer::Impl::open_object(const std::string& name) {
    if (!name.empty() && H5Lexists(file.id(), split(name, '/')[0].c_str(), H5P_DEFAULT) <= 0)
        make_groups(name, true);
    Handle object(H5Oopen(file.id(), ("/" + name).c_str(), H5P_DEFAULT), H5Oclose);
    if (!object) {
        hdf5::last_error();
        make_groups(name, true);
        object = Handle(H5Oopen(file.id(), ("/" + name).c_str(), H5P_DEFAULT), H5Oclose);
    }
    if (!object) broken(cat("'", name, "' cannot be opened: ", hdf5::last_error()));
    return object;
}

void Hdf5Writer::Impl::set_attribute(hid_t object, const std::string& name, const Attr& value) {
    const auto put = [&](hid_t file_type, hid_t memory, const void* data,
                         std::optional<hsize_t> size) {
        if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
        Handle space(size ? H5Screate_simple(1, &*size, nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
        Handle attribute(
            H5Acreate2(object, name.c_str(), file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose);
        if (!attribute || (size.value_or(1) > 0 && H5Awrite(attribute.id(), memory, data) < 0) ||
            !attribute.reset())
            broken(cat("attribute '", name, "': ", hdf5::last_error()));
    };
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        put(H5T_STD_I64LE, H5T_NATIVE_INT64, integer, std::nullopt);
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
        const std::int64_t as_integer = *boolean ? 1 : 0;
        put(H5T_STD_I64LE, H5T_NATIVE_INT64, &as_integer, std::nullopt);
    } else if (const auto* number = std::get_if<double>(&value)) {
        put(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, number, std::nullopt);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(type.id(), std::max<std::size_t>(text->size(), 1));
        H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
        H5Tset_cset(type.id(), H5T_CSET_UTF8);
        put(type.id(), type.id(), text->c_str(), std::nullopt);
    } else if (const auto* integers = std::get_if<Ints>(&value)) {
        put(H5T_STD_I64LE, H5T_NATIVE_INT64, integers->data(), integers->size());
    } else if (const auto* numbers = std::get_if<Doubles>(&value)) {
        put(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, numbers->data(), numbers->size());
    } else {
        fail(ErrorKind::invalid_argument, "attribute '", name,
             "': lists of strings are not written");
    }
}

void Hdf5Writer::Impl::discard() noexcept {
    const NoFileSizeSignal quiet;
    if (file) {
        const auto held = hdf5::lock();
        file.reset();
    }
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
    if (!temporary.empty()) unlink(temporary.c_str());
    temporary.clear();
}

Hdf5Writer::Hdf5Writer(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Hdf5Writer::~Hdf5Writer() = default;
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;

void Hdf5Writer::write(const std::string& name, const Shape& shape, DType dtype, const void* data) {
    const NoFileSizeSignal quiet;
    const auto held = hdf5::lock();
    impl_->reserve(static_cast<std::uint64_t>(shape.numel()) * size_of(dtype));
    impl_->make_groups(name, false);
    require(H5Lexists(impl_->file.id(), name.c_str(), H5P_DEFAULT) <= 0, "'", impl_->path,
            "' already holds '", name, "'");
    std::vector<hsize_t> sizes(shape.dims().begin(), shape.dims().end());
    Handle space(sizes.empty() ? H5Screate(H5S_SCALAR)
                               : H5Screate_simple(shape.rank(), sizes.data(), nullptr),
                 H5Sclose);
    Handle type = hdf5::file_type(dtype);
    const Handle how = without_times(H5P_DATASET_CREATE);
    Handle dataset(H5Dcreate2(impl_->file.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT,
                              how.id(), H5P_DEFAULT),
                   H5Dclose);
    if (!dataset) impl_->broken(cat("dataset '", name, "': ", hdf5::last_error()));
    if (dtype == DType::bf16) impl_->set_attribute(dataset.id(), "dtype", std::string("bfloat16"));
    Handle memory = hdf5::memory_type(dtype);
    if (!shape.empty() &&
        H5Dwrite(dataset.id(), memory.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        impl_->broken(cat("dataset '", name, "': ", hdf5::last_error()));
    if (!dataset.reset()) impl_->broken(cat("dataset '", name, "': ", hdf5::last_error()));
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, const Attr& value) {
    const NoFileSizeSignal quiet;
    const auto held = hdf5::lock();
    impl_->reserve(0);
    Handle opened = impl_->open_object(object);
    impl_->set_attribute(opened.id(), name, value);
}

/// Makes a rename durable: the entry of the folder is on disk, too. Some file systems cannot; the
/// file itself is written nevertheless.
static void sync_folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    const int descriptor =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

void Hdf5Writer::commit() {
    const NoFileSizeSignal quiet;
    hsize_t size = 0;
    {
        const auto held = hdf5::lock();
        impl_->reserve(0);
        if (H5Fflush(impl_->file.id(), H5F_SCOPE_GLOBAL) < 0 ||
            H5Fget_filesize(impl_->file.id(), &size) < 0 || !impl_->file.reset())
            impl_->broken(hdf5::last_error());
    }
    // Gives back the space that was reserved beyond the end.
    struct stat status {};
    if (fstat(impl_->descriptor, &status) != 0 ||
        (static_cast<hsize_t>(status.st_size) > size &&
         ftruncate(impl_->descriptor, static_cast<off_t>(size)) != 0) ||
        fsync(impl_->descriptor) != 0)
        impl_->broken(std::strerror(errno));
    if (close(std::exchange(impl_->descriptor, -1)) != 0) impl_->broken(std::strerror(errno));
    if (std::rename(impl_->temporary.c_str(), impl_->path.c_str()) != 0)
        impl_->broken(std::strerror(errno));
    impl_->temporary.clear();
    sync_folder_of(impl_->path);
}

}  // namespace dlprim
