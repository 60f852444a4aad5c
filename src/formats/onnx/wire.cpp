// SPDX-License-Identifier: MIT
// The outermost fields of a protobuf message; see wire.hpp.
#include "formats/onnx/wire.hpp"

#include "base/text.hpp"

#include <cstdint>
#include <optional>

namespace dlprim::onnx {

namespace {

// ModelProto's fields: numbers from onnx.proto.
constexpr std::uint64_t graph_field = 7, highest_field = 1 << 29;

struct Cursor {
    std::string_view bytes;
    std::size_t at = 0;

    std::size_t left() const { return bytes.size() - at; }
    /// Nothing where the bytes end before the number does, or it has more than 64 bits.
    std::optional<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64 && left() > 0; shift += 7) {
            const auto byte = static_cast<unsigned char>(bytes[at++]);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        return std::nullopt;
    }
};

enum class Step { field, graph, not_protobuf, cut_short };

/// Reads one field.
Step step(Cursor& cursor) {
    const std::size_t start = cursor.left();
    const auto cut_or_broken = [&] {
        return cursor.left() == 0 && start < 10 ? Step::cut_short : Step::not_protobuf;
    };
    const auto tag = cursor.varint();
    if (!tag) return cut_or_broken();
    const std::uint64_t field = *tag >> 3, wire_type = *tag & 7;
    if (field == 0 || field >= highest_field) return Step::not_protobuf;
    std::uint64_t length = 0;
    if (wire_type == 0) {
        if (!cursor.varint()) return cursor.left() == 0 ? Step::cut_short : Step::not_protobuf;
    } else if (wire_type == 2) {
        const auto given = cursor.varint();
        if (!given) return cursor.left() == 0 ? Step::cut_short : Step::not_protobuf;
        length = *given;
    } else if (wire_type == 1 || wire_type == 5) {
        length = wire_type == 1 ? 8 : 4;
    } else {
        return Step::not_protobuf;
    }
    if (length > cursor.left()) return Step::cut_short;
    cursor.at += length;
    return field == graph_field && wire_type == 2 ? Step::graph : Step::field;
}

}  // namespace

void check_message(std::string_view bytes, const std::string& source) {
    if (bytes.empty()) fail(ErrorKind::format, "'", source, "' is empty, it is no ONNX model");
    Cursor cursor{bytes};
    bool has_graph = false;
    while (cursor.left() > 0) {
        const std::size_t at = cursor.at;
        switch (step(cursor)) {
            case Step::graph:
                has_graph = true;
                break;
            case Step::field:
                break;
            case Step::not_protobuf:
                fail(ErrorKind::format, "'", source,
                     "' is no ONNX model: it is no protobuf message (byte ", at, ")");
            case Step::cut_short:
                fail(ErrorKind::format, "'", source, "' ends at byte ", bytes.size(),
                     ", inside the field that begins at byte ", at,
                     ": it is cut short, or no ONNX model");
        }
    }
    if (!has_graph)
        fail(ErrorKind::format, "'", source,
             "' is a protobuf message, but no ONNX model: it has no graph");
}

}  // namespace dlprim::onnx
