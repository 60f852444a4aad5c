// SPDX-License-Identifier: MIT
// Parsing of GGUF files.
#include "formats/gguf/file.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

namespace dlprim {

namespace {

constexpr std::string_view magic = "GGUF";
constexpr std::uint64_t most_name = 1 << 16;  ///< bytes of a key or of a tensor's name
constexpr int most_dimensions = 4;

enum class Kind : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    text,
    array,
    u64,
    i64,
    f64
};

constexpr std::uint64_t bytes_of(Kind kind) {
    constexpr std::uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
    return sizes[static_cast<std::size_t>(kind)];  // a text and an array have a length at least
}

/// The header, read from front to back through a buffer. Every call throws Error(format) at the
/// file's end.
class Reader {
  public:
    explicit Reader(const InputFile& file) : file_(file) {}

    template <typename... Parts>
    [[noreturn]] void damaged(const Parts&... parts) const {
        fail(ErrorKind::format, "'", file_.path(), "' is damaged or cut short: ", parts...);
    }

    std::uint64_t position() const { return position_; }
    std::uint64_t left() const { return file_.size() - position_; }

    void bytes(void* to, std::size_t count) {
        auto* target = static_cast<std::byte*>(to);
        while (count > 0) {
            if (position_ < start_ || position_ >= start_ + buffer_.size()) fill();
            const auto at = static_cast<std::size_t>(position_ - start_);
            const std::size_t part = std::min(count, buffer_.size() - at);
            std::memcpy(target, buffer_.data() + at, part);
            target += part;
            count -= part;
            position_ += part;
        }
    }

    template <typename T>
    T plain() {
        T value;
        bytes(&value, sizeof value);
        return value;
    }

    std::string text(std::string_view what, std::uint64_t most) {
        const auto length = plain<std::uint64_t>();
        if (length > most || length > left())
            damaged(what, " at byte ", position_, " has a length of ", length);
        std::string value(static_cast<std::size_t>(length), '\0');
        bytes(value.data(), value.size());
        return value;
    }

    std::int64_t integer(Kind kind) {
        switch (kind) {
            case Kind::u8:
                return plain<std::uint8_t>();
            case Kind::i8:
                return plain<std::int8_t>();
            case Kind::u16:
                return plain<std::uint16_t>();
            case Kind::i16:
                return plain<std::int16_t>();
            case Kind::u32:
                return plain<std::uint32_t>();
            case Kind::i32:
                return plain<std::int32_t>();
            case Kind::boolean:
                return plain<std::uint8_t>();
            case Kind::i64:
                return plain<std::int64_t>();
            default:
                break;
        }
        const auto value = plain<std::uint64_t>();
        if (value > std::numeric_limits<std::int64_t>::max())
            damaged("the integer before byte ", position_, " does not fit into 63 bits");
        return static_cast<std::int64_t>(value);
    }

    double number(Kind kind) { return kind == Kind::f32 ? plain<float>() : plain<double>(); }

    Kind kind(std::string_view key) {
        const auto code = plain<std::uint32_t>();
        if (code > static_cast<std::uint32_t>(Kind::f64))
            damaged("key '", key, "' has a value of the unknown type ", code);
        return static_cast<Kind>(code);
    }

  private:
    void fill() {
        start_ = position_;
        buffer_.resize(1 << 16);
        buffer_.resize(file_.read(start_, buffer_.data(), buffer_.size()));
        if (buffer_.empty())
            fail(ErrorKind::format, "'", file_.path(), "' is cut short: it ends within its header");
    }

    const InputFile& file_;
    std::vector<std::byte> buffer_;
    std::uint64_t start_ = 0, position_ = 0;
};

template <typename T, typename Read>
std::vector<T> read_all(std::uint64_t count, const Read& read) {
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(read());
    return values;
}

GgufValue read_array(Reader& reader, const std::string& key) {
    const Kind kind = reader.kind(key);
    const auto count = reader.plain<std::uint64_t>();
    if (kind == Kind::array) reader.damaged("key '", key, "' has arrays within an array");
    if (count > reader.left() / bytes_of(kind))
        reader.damaged("key '", key, "' has an array of ", count,
                       " values, more than the file can hold");
    if (kind == Kind::text)
        return read_all<std::string>(count, [&] { return reader.text(key, reader.left()); });
    if (kind == Kind::f32 || kind == Kind::f64)
        return read_all<double>(count, [&] { return reader.number(kind); });
    return read_all<std::int64_t>(count, [&] { return reader.integer(kind); });
}

GgufValue read_value(Reader& reader, const std::string& key) {
    const Kind kind = reader.kind(key);
    switch (kind) {
        case Kind::array:
            return read_array(reader, key);
        case Kind::text:
            return reader.text(key, reader.left());
        case Kind::f32:
        case Kind::f64:
            return reader.number(kind);
        case Kind::boolean:
            return reader.integer(kind) != 0;
        default:
            return reader.integer(kind);
    }
}

GgufTensor read_tensor(Reader& reader) {
    GgufTensor tensor;
    tensor.name = reader.text("a tensor's name", most_name);
    const auto dimensions = reader.plain<std::uint32_t>();
    if (dimensions > most_dimensions)
        reader.damaged("tensor '", tensor.name, "' has ", dimensions, " dimensions");
    std::vector<std::int64_t> sizes;
    for (std::uint32_t i = 0; i < dimensions; ++i) sizes.push_back(reader.integer(Kind::u64));
    std::reverse(sizes.begin(), sizes.end());
    try {
        tensor.shape = Shape(sizes);
    } catch (const Error& error) {
        reader.damaged("tensor '", tensor.name, "': ", error.what());
    }
    tensor.type = reader.plain<std::uint32_t>();
    tensor.position = reader.plain<std::uint64_t>();  // from the beginning of the data, until below
    return tensor;
}

/// Makes `position` one in the file, and checks that the data lie there.
void place(GgufTensor& tensor, std::uint64_t data, std::uint64_t size, const Reader& reader) {
    if (tensor.position > size - data)
        reader.damaged("the data of tensor '", tensor.name, "' begin behind the file's end");
    tensor.position += data;
    const GgufType* type = find_gguf_type(tensor.type);
    if (!type) return;  // an error only where somebody reads it
    const int rank = tensor.shape.rank();
    const std::int64_t row = rank == 0 ? 1 : tensor.shape[rank - 1];
    if (row % type->elements != 0)
        reader.damaged("rows of tensor '", tensor.name, "' have ", row, " elements, blocks of ",
                       type->name, " have ", type->elements);
    const auto blocks = static_cast<std::uint64_t>(tensor.shape.numel() / type->elements);
    if (blocks > (size - tensor.position) / type->bytes)
        reader.damaged("tensor '", tensor.name, "' takes ", blocks, " blocks of ", type->bytes,
                       " bytes, the file ends after ", size - tensor.position, " bytes of it");
}

void check_start(Reader& reader, const InputFile& file) {
    std::string start(std::min<std::uint64_t>(file.size(), 64), '\0');
    start.resize(file.read(0, start.data(), start.size()));
    if (!start.starts_with(magic)) {
        check_kind(start, file.path(), "a GGUF file");
        fail(ErrorKind::format, "'", file.path(),
             "' is not a GGUF file: it does not begin with \"GGUF\"");
    }
    reader.plain<std::uint32_t>();
    const auto version = reader.plain<std::uint32_t>();
    if (version != 2 && version != 3)
        fail(ErrorKind::format, "'", file.path(), "' is of version ", version,
             " of GGUF, or of a machine with another order of bytes; versions 2 and 3 of "
             "little-endian machines are read");
}

}  // namespace

GgufFile::GgufFile(const std::string& path) : file_(std::make_unique<const InputFile>(path)) {
    Reader reader(*file_);
    check_start(reader, *file_);
    const auto tensors = reader.plain<std::uint64_t>();
    const auto keys = reader.plain<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
        const std::string key = reader.text("a key", most_name);
        if (!metadata_.emplace(key, read_value(reader, key)).second)
            reader.damaged("it has two keys '", key, "'");
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
        GgufTensor tensor = read_tensor(reader);
        const std::string name = tensor.name;
        if (!tensors_.emplace(name, std::move(tensor)).second)
            reader.damaged("it has two tensors '", name, "'");
    }
    const auto alignment = value_or<std::int64_t>("general.alignment", 32);
    if (alignment < 1 || alignment > 1 << 20) reader.damaged("its alignment is ", alignment);
    const auto step = static_cast<std::uint64_t>(alignment);
    // A file without tensors may end before the padding.
    const std::uint64_t data =
        std::min((reader.position() + step - 1) / step * step, file_->size());
    for (auto& [name, tensor] : tensors_) place(tensor, data, file_->size(), reader);
}

template <typename T>
T GgufFile::value(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end())
        fail(ErrorKind::format, "'", path(), "' has no key '", key, "' in its metadata");
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    if constexpr (std::is_same_v<T, double>)
        if (const auto* whole = std::get_if<std::int64_t>(&found->second))
            return static_cast<double>(*whole);
    fail(ErrorKind::format, "'", path(), "' has a value of an unexpected type for the key '", key,
         "' in its metadata");
}

template std::int64_t GgufFile::value(const std::string&) const;
template double GgufFile::value(const std::string&) const;
template bool GgufFile::value(const std::string&) const;
template std::string GgufFile::value(const std::string&) const;
template std::vector<std::int64_t> GgufFile::value(const std::string&) const;
template std::vector<double> GgufFile::value(const std::string&) const;
template std::vector<std::string> GgufFile::value(const std::string&) const;

void GgufFile::read_at(std::uint64_t position, std::byte* data, std::size_t bytes) const {
    if (file_->read(position, data, bytes) != bytes || !file_->is_unchanged())
        fail(ErrorKind::io, "'", path(), "' has changed since it was opened");
}

void GgufFile::read(const GgufTensor& tensor, float* values) const {
    const GgufType* type = find_gguf_type(tensor.type);
    if (!type) {
        std::vector<std::string> names;
        for (const GgufType& known : gguf_types()) names.emplace_back(known.name);
        fail(ErrorKind::unsupported, "tensor '", tensor.name, "' of '", path(), "' has type ",
             gguf_type_name(tensor.type), "; read are ", join(names, ", "));
    }
    constexpr std::uint64_t blocks_at_once = 4096;
    std::vector<std::byte> buffer(static_cast<std::size_t>(blocks_at_once) * type->bytes);
    std::uint64_t blocks = static_cast<std::uint64_t>(tensor.shape.numel() / type->elements);
    std::uint64_t position = tensor.position;
    while (blocks > 0) {
        const std::uint64_t count = std::min(blocks, blocks_at_once);
        const auto bytes = static_cast<std::size_t>(count) * type->bytes;
        read_at(position, buffer.data(), bytes);
        for (std::uint64_t i = 0; i < count; ++i, values += type->elements)
            type->unpack(buffer.data() + i * type->bytes, values);
        position += bytes;
        blocks -= count;
    }
}

}  // namespace dlprim
