// SPDX-License-Identifier: MIT
// Arrays of numpy: .npy files, and .npz archives of such files (numpy's format description, NEP 1).
#include "base/text.hpp"
#include "formats/rows_storage.hpp"
#include "formats/zip.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace dlprim {

namespace {

constexpr std::pair<std::string_view, DType> npy_types[] = {
    {"|u1", DType::u8},  {"|i1", DType::i8},      {"<u1", DType::u8},  {"<i1", DType::i8},
    {"<i2", DType::i16}, {"<u2", DType::u16},     {"<i4", DType::i32}, {"<u4", DType::u32},
    {"<i8", DType::i64}, {"<u8", DType::u64},     {"<f2", DType::f16}, {"<f4", DType::f32},
    {"<f8", DType::f64}, {"|b1", DType::boolean},
};

struct NpyHead {
    Shape shape;
    DType dtype = DType::f32;
    std::uint64_t bytes = 0;  ///< of the head itself
};

/// The head of an array: a dictionary in Python's syntax.
class NpyHeadReader {
  public:
    NpyHeadReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

    NpyHead read() {
        if (bytes_.size() < 10 || bytes_.substr(0, 6) != std::string_view("\x93NUMPY", 6))
            bad("is no array of numpy: its signature is missing");
        const int version = byte(6);
        if (version < 1 || version > 3) bad(cat("has version ", version, " of numpy's format"));
        const std::size_t width = version == 1 ? 2 : 4;
        std::size_t length = 0;
        for (std::size_t i = width; i-- > 0;)
            length = length << 8 | static_cast<std::size_t>(byte(8 + i));
        if (length > bytes_.size() - std::min(bytes_.size(), 8 + width))
            bad("is cut short within its head, or its head is longer than 1 MiB");
        text_ = bytes_.substr(8 + width, length);
        NpyHead head;
        head.bytes = 8 + width + length;
        head.dtype = dtype();
        const std::string_view fortran = value("fortran_order");
        if (fortran.starts_with("True"))
            fail(ErrorKind::unsupported, "'", name_,
                 "' is in Fortran's order; save numpy.ascontiguousarray(x)");
        if (!fortran.starts_with("False")) bad("has a head that is damaged");
        head.shape = shape();
        return head;
    }

  private:
    [[noreturn]] void bad(std::string_view what) const {
        fail(ErrorKind::format, "'", name_, "' ", what);
    }
    int byte(std::size_t at) const {
        if (at >= bytes_.size()) bad("is cut short");
        return static_cast<unsigned char>(bytes_[at]);
    }
    /// The text behind a key.
    std::string_view value(std::string_view key) const {
        for (const char quote : {'\'', '"'}) {
            const std::string quoted = cat(quote, key, quote);
            std::size_t at = text_.find(quoted);
            if (at == std::string_view::npos) continue;
            at = text_.find_first_not_of(" \t:", at + quoted.size());
            if (at != std::string_view::npos) return text_.substr(at);
        }
        bad(cat("has a head without '", key, "'"));
    }
    DType dtype() const {
        const std::string_view text = value("descr");
        const std::size_t end = text.find(text.empty() ? '\0' : text[0], 1);
        if (text.empty() || (text[0] != '\'' && text[0] != '"') || end == std::string_view::npos)
            fail(ErrorKind::unsupported, "'", name_,
                 "' holds records of several fields; save an array of numbers for each");
        const std::string_view type = text.substr(1, end - 1);
        for (const auto& [code, found] : npy_types)
            if (code == type) return found;
        fail(ErrorKind::unsupported, "'", name_, "' holds '", type.substr(0, 32), "', ",
             type.starts_with('>')
                 ? "numbers in big-endian order; save x.astype(x.dtype.newbyteorder('<'))"
                 : "which is no type of numbers; save integers or floats");
    }
    Shape shape() const {
        std::string_view text = value("shape");
        std::vector<std::int64_t> dims;
        const std::size_t end = text.find(')');
        if (!text.starts_with('(') || end == std::string_view::npos) bad("has no shape");
        for (const std::string& part : split(text.substr(1, end - 1), ',')) {
            const std::size_t from = part.find_first_not_of(" L");
            if (from == std::string::npos) continue;
            const auto size = leading_number<std::int64_t>(part, -1);
            if (size < 0 || dims.size() == Shape::max_rank)
                bad(cat("has a shape that cannot be: ",
                        text.substr(0, std::min<std::size_t>(end + 1, 100))));
            dims.push_back(size);
        }
        try {
            return Shape(dims);
        } catch (const Error& error) {
            bad(cat("is damaged: ", error.what()));
        }
    }

    std::string_view bytes_, text_;
    const std::string& name_;
};

constexpr std::uint64_t most_head = 1 << 20;

/// `size`: bytes of the array with its head.
NpyHead read_head(std::string_view beginning, std::uint64_t size, const std::string& name) {
    const NpyHead head = NpyHeadReader(beginning, name).read();
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(head.shape.numel()) * size_of(head.dtype);
    if (head.bytes > size || bytes > size - head.bytes)
        fail(ErrorKind::format, "'", name, "' is cut short or damaged: its shape ",
             head.shape.str(), " takes ", bytes, " bytes, it has ",
             size - std::min(size, head.bytes));
    if (head.shape.rank() == 0)
        fail(ErrorKind::format, "'", name, "' is a single number, no array");
    return head;
}

std::unique_ptr<Rows> npy_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                  std::uint64_t position, std::uint64_t size) {
    std::string beginning(static_cast<std::size_t>(std::min(size, most_head)), '\0');
    beginning.resize(file->read(position, beginning.data(), beginning.size()));
    const NpyHead head = read_head(beginning, size, name);
    return rows_in_file(std::move(file), name, position + head.bytes, head.shape, head.dtype);
}

}  // namespace

std::unique_ptr<Rows> open_npy_rows(const std::string& path, const std::string& name) {
    auto file = std::make_shared<const InputFile>(path);
    char first[4] = {};
    const bool archive = file->read(0, first, 4) == 4 && std::memcmp(first, "PK", 2) == 0;
    if (!archive) {
        if (!name.empty())
            fail(ErrorKind::format, "'", path, "' is no .npz archive, so that it has no array '",
                 name, "'");
        return npy_in_file(file, path, 0, file->size());
    }
    std::vector<std::string> names;
    for (const ZipMember& member : list_zip(*file)) {
        std::string_view stem = member.name;
        if (stem.ends_with(".npy")) stem.remove_suffix(4);
        names.emplace_back(stem);
        if (stem != name) continue;
        const std::string whole = cat(path, ":", name);
        if (!member.deflated) return npy_in_file(file, whole, member.position, member.size);
        std::vector<std::byte> data = read_zip_member(*file, member);
        const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
        const NpyHead head = read_head(bytes.substr(0, most_head), data.size(), whole);
        data.erase(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(head.bytes));
        data.resize(static_cast<std::size_t>(head.shape.numel()) * size_of(head.dtype));
        return rows_in_memory(whole, head.shape, head.dtype, std::move(data));
    }
    fail(ErrorKind::not_found, "'", path, "' has no array '", name, "'; it has ",
         names.empty() ? "none" : join(names, ", "), did_you_mean(name, names));
}

}  // namespace dlprim
