// SPDX-License-Identifier: MIT
// Reading and writing IDX files.
#include "formats/idx.hpp"

#include "base/env.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>

#if DLPRIM_WITH_ZLIB
#include <zlib.h>
#endif

namespace dlprim {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::pair<unsigned char, DType> types[] = {
    {0x08, DType::u8},  {0x09, DType::i8},  {0x0B, DType::i16},
    {0x0C, DType::i32}, {0x0D, DType::f32}, {0x0E, DType::f64},
};

/// Reads up to `bytes` bytes and returns how many it read.
using Source = std::function<std::size_t(void*, std::size_t)>;

void swap_bytes(std::byte* data, std::size_t bytes, std::size_t element) {
    if (element == 1) return;
    for (std::size_t at = 0; at < bytes; at += element)
        std::reverse(data + at, data + at + element);
}

/// `most`: the file cannot yield more bytes than this. `sure`: memory for this many bytes is
/// allocated at once, memory for more as they arrive.
IdxArray parse(const Source& source, const std::string& path, std::uint64_t most,
               std::uint64_t sure) {
    const auto damaged = [&path](const auto&... what) {
        fail(ErrorKind::format, "'", path, "' ", what...);
    };
    std::array<unsigned char, 4> magic{};
    if (source(magic.data(), 4) != 4) damaged("is too short for an IDX file");
    if (magic[0] != 0 || magic[1] != 0)
        damaged("is not an IDX file: it does not begin with two zero bytes");
    const auto type = std::find_if(std::begin(types), std::end(types),
                                   [&](const auto& entry) { return entry.first == magic[2]; });
    if (type == std::end(types))
        damaged("is not an IDX file: it has the unknown type code ", int{magic[2]});
    if (magic[3] < 1 || magic[3] > Shape::max_rank)
        damaged("has ", int{magic[3]}, " dimensions; 1 to ", Shape::max_rank, " are read");
    std::vector<std::int64_t> dims;
    for (int i = 0; i < magic[3]; ++i) {
        std::array<unsigned char, 4> size{};
        if (source(size.data(), 4) != 4) damaged("is cut short within its header");
        dims.push_back((std::int64_t{size[0]} << 24) | (size[1] << 16) | (size[2] << 8) | size[3]);
    }
    IdxArray array;
    array.dtype = type->second;
    try {
        array.shape = Shape(dims);
    } catch (const Error& error) {
        damaged("is damaged: ", error.what());
    }
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(array.shape.numel()) * size_of(array.dtype);
    if (bytes > most)
        damaged("is cut short or damaged: its shape ", array.shape.str(), " takes ", bytes,
                " bytes, more than it can hold");
    std::size_t got = 0;
    while (got < bytes && array.data.size() == got) {
        array.data.resize(std::min<std::uint64_t>(bytes, std::max<std::uint64_t>(2 * got, sure)));
        got += source(array.data.data() + got, array.data.size() - got);
    }
    if (got != bytes)
        damaged("is cut short: its shape ", array.shape.str(), " takes ", bytes, " bytes, it has ",
                got);
    unsigned char extra = 0;
    if (source(&extra, 1) != 0)
        damaged("holds more bytes than its shape ", array.shape.str(), " takes");
    swap_bytes(array.data.data(), array.data.size(), size_of(array.dtype));
    return array;
}

#if DLPRIM_WITH_ZLIB
IdxArray read_compressed(const InputFile& plain) {
    const std::string& path = plain.path();
    const int descriptor = ::dup(plain.descriptor());
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
        descriptor < 0 ? nullptr : gzdopen(descriptor, "rb"), gzclose_r);
    if (!file) {
        if (descriptor >= 0) ::close(descriptor);
        fail(ErrorKind::io, "'", path, "' cannot be opened");
    }
    gzbuffer(file.get(), 1 << 17);
    const Source source = [&](void* data, std::size_t bytes) {
        std::size_t done = 0;
        while (done < bytes) {
            const auto most = static_cast<unsigned>(std::min<std::size_t>(bytes - done, 1u << 30));
            const int got = gzread(file.get(), static_cast<char*>(data) + done, most);
            int code = Z_OK;
            const char* what = gzerror(file.get(), &code);
            if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
                fail(ErrorKind::format, "'", path,
                     "' is damaged or cut short: its gzip data end wrongly (", what, ")");
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    };
    constexpr std::uint64_t ratio = 1032;  // deflate's best; a small file may claim more
    return parse(source, path, plain.size() * ratio,
                 std::max<std::uint64_t>(plain.size(), 64u << 20));
}
#endif

}  // namespace

IdxArray read_idx(const std::string& path) {
    const InputFile file(path);
    unsigned char first[2] = {};
    if (file.read(0, first, 2) == 2 && first[0] == 0x1f && first[1] == 0x8b) {
#if DLPRIM_WITH_ZLIB
        return read_compressed(file);
#else
        fail(ErrorKind::unsupported, "'", path,
             "' is compressed, which this build does not read: install zlib1g-dev and build dlprim "
             "again, or decompress it with gunzip");
#endif
    }
    std::uint64_t position = 0;
    const Source source = [&](void* data, std::size_t bytes) {
        const std::size_t got = file.read(position, data, bytes);
        position += got;
        return got;
    };
    return parse(source, path, file.size(), file.size());
}

void write_idx(const std::string& path, const Shape& shape, DType dtype, const void* data) {
    const auto type = std::find_if(std::begin(types), std::end(types),
                                   [&](const auto& entry) { return entry.second == dtype; });
    require(type != std::end(types), "IDX files do not hold ", name_of(dtype));
    require(shape.rank() >= 1, "an IDX file has at least one dimension");
    std::string bytes = {0, 0, static_cast<char>(type->first), static_cast<char>(shape.rank())};
    for (const std::int64_t size : shape.dims()) {
        require(size <= 0xffffffffLL, "dimension ", size, " does not fit an IDX file");
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes.push_back(static_cast<char>(size >> shift));
    }
    const std::size_t header = bytes.size();
    bytes.resize(header + static_cast<std::size_t>(shape.numel()) * size_of(dtype));
    if (!shape.empty()) std::memcpy(bytes.data() + header, data, bytes.size() - header);
    swap_bytes(reinterpret_cast<std::byte*>(bytes.data() + header), bytes.size() - header,
               size_of(dtype));
    write_file_atomically(path, bytes);
}

}  // namespace dlprim
