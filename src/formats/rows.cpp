// SPDX-License-Identifier: MIT
// Rows in memory, in a file and in a dataset of HDF5.
#include "formats/rows.hpp"

#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/idx.hpp"
#include "formats/rows_storage.hpp"

#include <cstring>
#include <mutex>

namespace dlprim {

namespace {

void check_range(const Rows& rows, std::int64_t first, std::int64_t count) {
    require(first >= 0 && count >= 0 && first <= rows.count() - count, "'", rows.name(), "' has ",
            rows.count(), " rows, not rows ", first, " to ", first + count - 1);
}

class MemoryRows final : public Rows {
  public:
    MemoryRows(std::string name, const Shape& shape, DType dtype, std::vector<std::byte> data)
        : name_(std::move(name)), shape_(shape), dtype_(dtype), data_(std::move(data)) {}
    const Shape& shape() const override { return shape_; }
    DType dtype() const override { return dtype_; }
    const std::string& name() const override { return name_; }
    void read(std::int64_t first, std::int64_t rows, void* data) const override {
        check_range(*this, first, rows);
        const std::size_t bytes = row_bytes();
        if (rows > 0 && bytes > 0)
            std::memcpy(data, data_.data() + static_cast<std::size_t>(first) * bytes,
                        static_cast<std::size_t>(rows) * bytes);
    }

  private:
    std::string name_;
    Shape shape_;
    DType dtype_;
    std::vector<std::byte> data_;
};

/// Rows that lie one after the other in a file, in host byte order.
class FileRows final : public Rows {
  public:
    FileRows(std::shared_ptr<const InputFile> file, std::string name, std::uint64_t position,
             const Shape& shape, DType dtype)
        : file_(std::move(file)),
          name_(std::move(name)),
          position_(position),
          shape_(shape),
          dtype_(dtype) {}
    const Shape& shape() const override { return shape_; }
    DType dtype() const override { return dtype_; }
    const std::string& name() const override { return name_; }
    void read(std::int64_t first, std::int64_t rows, void* data) const override {
        check_range(*this, first, rows);
        const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes();
        const std::uint64_t at = position_ + static_cast<std::uint64_t>(first) * row_bytes();
        if (file_->read(at, data, bytes) != bytes)
            fail(ErrorKind::io, "'", name_, "' was cut short while it was read");
    }

  private:
    std::shared_ptr<const InputFile> file_;
    std::string name_;
    std::uint64_t position_;
    Shape shape_;
    DType dtype_;
};

/// Rows in chunks, compressed or of another byte order, which HDF5 reads, one thread at a time.
class Hdf5Rows final : public Rows {
  public:
    Hdf5Rows(Hdf5Reader reader, const std::string& dataset)
        : reader_(std::move(reader)),
          dataset_(reader_.info(dataset)),
          name_(cat(reader_.path(), ":", dataset)) {}
    const Shape& shape() const override { return dataset_.shape; }
    DType dtype() const override { return dataset_.dtype; }
    const std::string& name() const override { return name_; }
    void read(std::int64_t first, std::int64_t rows, void* data) const override {
        check_range(*this, first, rows);
        const std::lock_guard lock(mutex_);
        reader_.read_rows(dataset_.name, first, rows, data);
    }

  private:
    mutable std::mutex mutex_;
    Hdf5Reader reader_;
    Hdf5Dataset dataset_;
    std::string name_;
};

}  // namespace

std::unique_ptr<Rows> rows_in_memory(std::string name, const Shape& shape, DType dtype,
                                     std::vector<std::byte> data) {
    return std::make_unique<MemoryRows>(std::move(name), shape, dtype, std::move(data));
}

std::unique_ptr<Rows> rows_in_file(std::shared_ptr<const InputFile> file, std::string name,
                                   std::uint64_t position, const Shape& shape, DType dtype) {
    return std::make_unique<FileRows>(std::move(file), std::move(name), position, shape, dtype);
}

std::unique_ptr<Rows> open_idx_rows(const std::string& path) {
    IdxArray array = read_idx(path);
    return rows_in_memory(path, array.shape, array.dtype, std::move(array.data));
}

std::unique_ptr<Rows> open_hdf5_rows(const std::string& path, const std::string& name) {
    auto file = std::make_shared<const InputFile>(path);
    Hdf5Reader reader(file);
    const Hdf5Dataset& dataset = reader.info(name);
    if (dataset.shape.rank() == 0)
        fail(ErrorKind::format, "'", path, "': dataset '", name, "' is a single number, no array");
    if (is_narrow(dataset.dtype))
        fail(ErrorKind::unsupported, "'", path, "': dataset '", name, "' holds ",
             name_of(dataset.dtype), ", which data sets do not");
    if (const auto position = reader.position(name))
        return rows_in_file(file, cat(path, ":", name), *position, dataset.shape, dataset.dtype);
    return std::make_unique<Hdf5Rows>(std::move(reader), name);
}

}  // namespace dlprim
