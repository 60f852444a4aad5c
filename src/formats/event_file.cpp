// SPDX-License-Identifier: MIT
// EventFile.
#include "formats/event_file.hpp"

#include "base/file_size_signal.hpp"
#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace dlprim {

namespace {

/// Protobuf's wire types.
enum Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint32_t field, Wire wire) {
    put_varint(out, (field << 3) | wire);
}

/// Little-endian, whatever the host.
template <typename Unsigned>
void put_fixed(std::string& out, Unsigned value) {
    for (std::size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>(value >> (8 * i));
}

void put_text(std::string& out, std::uint32_t field, const std::string& text) {
    put_key(out, field, bytes);
    put_varint(out, text.size());
    out += text;
}

/// The beginning of an Event: wall_time = 1 and step = 2.
std::string begin_event(std::int64_t step) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    std::string event;
    put_key(event, 1, fixed64);
    put_fixed(event, std::bit_cast<std::uint64_t>(now.count()));
    put_key(event, 2, varint);
    put_varint(event, static_cast<std::uint64_t>(step));
    return event;
}

/// As TFRecord stores checksums, so that a checksum of data with checksums is none of a pattern.
std::uint32_t masked_crc(const std::string& data) {
    const std::uint32_t crc = crc32c(data);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string host() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "unknown";
}

}  // namespace

std::uint32_t crc32c(const std::string& data) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> made{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            made[i] = i;
            for (int bit = 0; bit < 8; ++bit)
                made[i] = (made[i] >> 1) ^ ((made[i] & 1) != 0 ? 0x82f63b78u : 0u);
        }
        return made;
    }();
    std::uint32_t crc = ~std::uint32_t{0};
    for (const char c : data)
        crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
    return ~crc;
}

EventFile::EventFile(const std::string& folder, std::int64_t first_step) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const std::string name =
        cat(folder, "/events.out.tfevents.", seconds.count(), ".", host(), ".", ::getpid());
    for (int serial = 0; descriptor_ < 0; ++serial) {
        path_ = serial == 0 ? name : cat(name, ".", serial);
        descriptor_ =
            ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno != EEXIST)
            fail(ErrorKind::io, "cannot create '", path_, "': ", std::strerror(errno));
    }
    try {
        std::string version = begin_event(first_step);
        put_text(version, 3, "brain.Event:2");  // file_version
        append(version);
        if (first_step == 0) return;
        std::string start = begin_event(first_step);
        std::string log;  // SessionLog: status = START
        put_key(log, 1, varint);
        put_varint(log, 1);
        put_text(start, 7, log);
        append(start);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

EventFile::~EventFile() {
    ::close(descriptor_);
}

void EventFile::append(const std::string& event) {
    std::string length, record;
    put_fixed(length, static_cast<std::uint64_t>(event.size()));
    record = length;
    put_fixed(record, masked_crc(length));
    record += event;
    put_fixed(record, masked_crc(event));
    const NoFileSizeSignal quiet;
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    if (::write(descriptor_, record.data(), record.size()) == static_cast<ssize_t>(record.size()))
        return;
    const int error = errno;
    // Half a record would hide all that follows it.
    if (::ftruncate(descriptor_, end) != 0)
        fail(ErrorKind::io, "'", path_, "' ends in half a record: ", std::strerror(errno));
    fail(ErrorKind::io, "cannot write '", path_, "': ", std::strerror(error));
}

void EventFile::add(std::int64_t step, const std::vector<std::pair<std::string, double>>& values) {
    std::string summary;
    for (const auto& [tag, number] : values) {
        std::string value;  // Summary.Value: tag = 1, simple_value = 2
        put_text(value, 1, tag);
        put_key(value, 2, fixed32);
        put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
        put_text(summary, 1, value);
    }
    std::string event = begin_event(step);
    put_text(event, 5, summary);
    append(event);
}

}  // namespace dlprim
