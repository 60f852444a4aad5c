// SPDX-License-Identifier: MIT
// Reading ZIP archives (PKWARE's APPNOTE.TXT, version 6.3), those of 64 bits, too.
#include "formats/zip.hpp"

#include "base/text.hpp"

#include <algorithm>

#if DLPRIM_WITH_ZLIB
#include <zlib.h>
#endif

namespace dlprim {

namespace {

[[noreturn]] void bad_zip(const InputFile& file, std::string_view what) {
    fail(ErrorKind::format, "'", file.path(), "' ", what);
}

/// Bytes of the file with little-endian numbers.
class ZipBytes {
  public:
    ZipBytes(const InputFile& file, std::uint64_t position, std::uint64_t count) : file_(file) {
        if (position > file.size() || count > file.size() - position)
            bad_zip(file, "is a ZIP archive that is damaged or cut short");
        bytes_.resize(static_cast<std::size_t>(count));
        if (file.read(position, bytes_.data(), bytes_.size()) != bytes_.size())
            bad_zip(file, "was cut short while it was read");
    }
    std::uint64_t number(std::size_t at, std::size_t width) const {
        if (at > bytes_.size() || width > bytes_.size() - at)
            bad_zip(file_, "is a ZIP archive that is damaged");
        std::uint64_t value = 0;
        for (std::size_t i = width; i-- > 0;) value = value << 8 | bytes_[at + i];
        return value;
    }
    std::string text(std::size_t at, std::size_t count) const {
        if (at > bytes_.size() || count > bytes_.size() - at)
            bad_zip(file_, "is a ZIP archive that is damaged");
        return {bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                bytes_.begin() + static_cast<std::ptrdiff_t>(at + count)};
    }
    std::size_t size() const { return bytes_.size(); }

  private:
    const InputFile& file_;
    std::vector<unsigned char> bytes_;
};

struct ZipDirectory {
    std::uint64_t position = 0, bytes = 0;
};

ZipDirectory find_directory(const InputFile& file) {
    constexpr std::uint64_t record = 22, most_comment = 65535;
    if (file.size() < record) bad_zip(file, "is too short for a ZIP archive (.npz)");
    const std::uint64_t window = std::min(file.size(), record + most_comment);
    const std::uint64_t begin = file.size() - window;
    const ZipBytes end(file, begin, window);
    for (std::uint64_t at = window - record + 1; at-- > 0;) {
        if (end.number(at, 4) != 0x06054b50) continue;
        ZipDirectory found{end.number(at + 16, 4), end.number(at + 12, 4)};
        if (found.position != 0xffffffff && found.bytes != 0xffffffff) return found;
        // The record of 64 bits, whose place stands before this one.
        if (begin + at < 20) break;
        const ZipBytes locator(file, begin + at - 20, 20);
        if (locator.number(0, 4) != 0x07064b50) break;
        const ZipBytes large(file, locator.number(8, 8), 56);
        if (large.number(0, 4) != 0x06064b50) break;
        return {large.number(48, 8), large.number(40, 8)};
    }
    bad_zip(file, "is no ZIP archive (.npz), or is cut short: it has no directory");
}

/// Sizes and the offset that do not fit 32 bits stand in an extra field.
void read_large_sizes(const ZipBytes& directory, std::size_t at, std::size_t bytes,
                      ZipMember& member, std::uint64_t& header) {
    const std::size_t end = at + bytes;
    while (at + 4 <= end) {
        const std::uint64_t tag = directory.number(at, 2), length = directory.number(at + 2, 2);
        at += 4;
        if (tag == 1) {
            std::size_t field = at;
            for (std::uint64_t* value : {&member.size, &member.stored, &header}) {
                if (*value != 0xffffffff) continue;
                *value = directory.number(field, 8);
                field += 8;
            }
        }
        at += length;
    }
}

}  // namespace

std::vector<ZipMember> list_zip(const InputFile& file) {
    const ZipDirectory where = find_directory(file);
    const ZipBytes directory(file, where.position, where.bytes);
    std::vector<ZipMember> members;
    for (std::size_t at = 0; at < directory.size();) {
        if (directory.number(at, 4) != 0x02014b50)
            bad_zip(file, "is a ZIP archive that is damaged");
        const std::uint64_t flags = directory.number(at + 8, 2), how = directory.number(at + 10, 2);
        ZipMember member;
        member.deflated = how == 8;
        member.checksum = static_cast<std::uint32_t>(directory.number(at + 16, 4));
        member.stored = directory.number(at + 20, 4);
        member.size = directory.number(at + 24, 4);
        std::uint64_t header = directory.number(at + 42, 4);
        const auto name = static_cast<std::size_t>(directory.number(at + 28, 2));
        const auto extra = static_cast<std::size_t>(directory.number(at + 30, 2));
        const auto comment = static_cast<std::size_t>(directory.number(at + 32, 2));
        member.name = directory.text(at + 46, name);
        read_large_sizes(directory, at + 46 + name, extra, member, header);
        if ((flags & 1) != 0 || (how != 0 && how != 8))
            fail(ErrorKind::unsupported, "'", file.path(), "': member '", member.name, "' is ",
                 (flags & 1) != 0 ? "encrypted" : cat("compressed by method ", how),
                 "; stored and deflated members are read");
        const ZipBytes local(file, header, 30);
        if (local.number(0, 4) != 0x04034b50) bad_zip(file, "is a ZIP archive that is damaged");
        member.position = header + 30 + local.number(26, 2) + local.number(28, 2);
        if (member.position > file.size() || member.stored > file.size() - member.position ||
            (!member.deflated && member.stored != member.size))
            bad_zip(file,
                    cat("is damaged or cut short: it cannot hold member '", member.name, "'"));
        members.push_back(std::move(member));
        at += 46 + name + extra + comment;
    }
    return members;
}

#if DLPRIM_WITH_ZLIB

namespace {

struct Inflater {
    z_stream stream{};
    bool ready = inflateInit2(&stream, -MAX_WBITS) == Z_OK;
    Inflater() = default;
    ~Inflater() {
        if (ready) inflateEnd(&stream);
    }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

std::vector<std::byte> read_zip_member(const InputFile& file, const ZipMember& member) {
    constexpr std::uint64_t ratio = 1032;  // deflate's best
    if (member.deflated && member.size / ratio > member.stored + 1)
        bad_zip(file,
                cat("is damaged: member '", member.name, "' cannot have ", member.size, " bytes"));
    std::vector<std::byte> data(static_cast<std::size_t>(member.size));
    if (!member.deflated) {
        file.read(member.position, data.data(), data.size());
    } else {
        Inflater inflater;
        require(inflater.ready, "zlib cannot start");
        z_stream& stream = inflater.stream;
        std::vector<unsigned char> piece(1 << 18);
        std::uint64_t taken = 0, made = 0;
        int state = Z_OK;
        while (state == Z_OK) {
            if (stream.avail_in == 0) {
                const std::size_t want = static_cast<std::size_t>(
                    std::min<std::uint64_t>(piece.size(), member.stored - taken));
                if (want == 0) break;
                stream.avail_in =
                    static_cast<unsigned>(file.read(member.position + taken, piece.data(), want));
                stream.next_in = piece.data();
                taken += want;
            }
            const auto room =
                static_cast<unsigned>(std::min<std::uint64_t>(data.size() - made, 1u << 30));
            unsigned char none = 0;
            stream.next_out =
                room > 0 ? reinterpret_cast<unsigned char*>(data.data()) + made : &none;
            stream.avail_out = room > 0 ? room : 1;
            state = inflate(&stream, Z_NO_FLUSH);
            made += room > 0 ? room - stream.avail_out : 0;
            if (room == 0 && stream.avail_out == 0) break;  // more than the size says
        }
        if (state != Z_STREAM_END || made != data.size())
            bad_zip(file, cat("is damaged: member '", member.name, "' does not inflate"));
    }
    uLong sum = crc32(0, nullptr, 0);
    for (std::size_t at = 0; at < data.size(); at += 1u << 30)
        sum = crc32(sum, reinterpret_cast<const unsigned char*>(data.data()) + at,
                    static_cast<unsigned>(std::min<std::size_t>(data.size() - at, 1u << 30)));
    if (sum != member.checksum)
        bad_zip(file, cat("is damaged: the checksum of member '", member.name, "' is wrong"));
    return data;
}

#else

std::vector<std::byte> read_zip_member(const InputFile& file, const ZipMember& member) {
    if (member.deflated)
        fail(ErrorKind::unsupported, "'", file.path(), "': member '", member.name,
             "' is compressed, which this build does not read: install zlib1g-dev and build dlprim "
             "again, or write it by numpy.savez");
    std::vector<std::byte> data(static_cast<std::size_t>(member.size));
    file.read(member.position, data.data(), data.size());
    return data;
}

#endif

}  // namespace dlprim
