// SPDX-License-Identifier: MIT
// JPEG by libjpeg, of which libjpeg-turbo also decodes a part of a picture alone.
//
// libjpeg leaves a call that fails by longjmp, so that nothing with a destructor is made between
// setjmp and such calls: they are in small functions of JpegReader.
#include "formats/image/codec.hpp"

#if DLPRIM_WITH_JPEG

#include <jerror.h>   // after jpeglib.h
#include <jpeglib.h>  // after cstddef and cstdio, which it needs
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace dlprim::image {

namespace {

/// Rows and columns of a picture at the size at which it is decoded.
struct JpegPart {
    std::int64_t left = 0, top = 0, width = 0, height = 0;
};

class JpegReader {
  public:
    JpegReader() {
        state_.err = jpeg_std_error(&errors_);
        state_.client_data = this;
        errors_.error_exit = [](j_common_ptr common) {
            auto* const self = static_cast<JpegReader*>(common->client_data);
            common->err->format_message(common, self->message_);
            std::longjmp(self->back_, 1);
        };
        // libjpeg goes on with grey where data are missing; here that is an error.
        errors_.emit_message = [](j_common_ptr common, int level) {
            const int code = common->err->msg_code;
            if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
                static_cast<JpegReader*>(common->client_data)->stop("it is cut short");
        };
        errors_.output_message = [](j_common_ptr) {};
    }
    ~JpegReader() { jpeg_destroy_decompress(&state_); }
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;

    bool begin(std::string_view bytes) {
        if (setjmp(back_)) return false;
        jpeg_create_decompress(&state_);
        jpeg_mem_src(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&state_, TRUE);
        return true;
    }
    /// Starts decoding at numerator / 8 of the size.
    bool start(unsigned numerator, int channels) {
        if (setjmp(back_)) return false;
        const bool four =
            state_.jpeg_color_space == JCS_CMYK || state_.jpeg_color_space == JCS_YCCK;
        const bool grey = channels == 1 && (state_.jpeg_color_space == JCS_GRAYSCALE ||
                                            state_.jpeg_color_space == JCS_YCbCr);
        state_.out_color_space = four ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
        state_.scale_num = numerator;
        state_.scale_denom = 8;
        progress_.progress_monitor = [](j_common_ptr common) {
            // A small file may repeat scans for hours.
            if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number > 500)
                static_cast<JpegReader*>(common->client_data)->stop("it has more than 500 scans");
        };
        state_.progress = &progress_;
        jpeg_start_decompress(&state_);
        return true;
    }
    /// Leaves out what is not of `part`, which becomes what is decoded of the columns.
    bool select([[maybe_unused]] JpegPart& part) {
        if (setjmp(back_)) return false;
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
        auto left = static_cast<JDIMENSION>(part.left);
        auto columns = static_cast<JDIMENSION>(part.width);
        if (columns < state_.output_width) jpeg_crop_scanline(&state_, &left, &columns);
        if (part.top > 0) jpeg_skip_scanlines(&state_, static_cast<JDIMENSION>(part.top));
        part.left = left;
        part.width = columns;
#endif
        return true;
    }
    bool read_row(unsigned char* row) {
        if (setjmp(back_)) return false;
        if (jpeg_read_scanlines(&state_, &row, 1) != 1) stop("it is cut short");
        return true;
    }

    [[noreturn]] void stop(const char* why) {
        std::strncpy(message_, why, sizeof message_ - 1);
        std::longjmp(back_, 1);
    }
    const jpeg_decompress_struct& state() const {
        return state_;
    }
    const char* message() const {
        return message_;
    }

  private:
    jpeg_decompress_struct state_{};
    jpeg_error_mgr errors_{};
    jpeg_progress_mgr progress_{};
    std::jmp_buf back_;
    char message_[JMSG_LENGTH_MAX] = "";
};

/// Whether the picture's end is in the file. Decoding a part would not miss what follows it.
bool has_end(const JpegReader& reader) {
    const jpeg_source_mgr& source = *reader.state().src;
    const std::string_view rest(reinterpret_cast<const char*>(source.next_input_byte),
                                source.bytes_in_buffer);
    return rest.rfind("\xff\xd9") != std::string_view::npos;
}

/// The smallest numerator / 8 at which the box still has the wanted size. Halves alone, since
/// libjpeg-turbo's code for others is not vectorised.
unsigned numerator_for(const WantedPart& wanted) {
    const auto suffices = [&](unsigned numerator) {
        return wanted.box.width * numerator >= 8 * static_cast<double>(wanted.width) &&
               wanted.box.height * numerator >= 8 * static_cast<double>(wanted.height);
    };
    unsigned numerator = 8;
    while (numerator > 1 && suffices(numerator / 2)) numerator /= 2;
    return numerator;
}

/// Colours from cyan, magenta, yellow and black. Adobe's programs store all four inverted.
std::vector<std::uint8_t> from_cmyk(const std::vector<std::uint8_t>& pixels, bool inverted) {
    std::vector<std::uint8_t> result;
    result.reserve(pixels.size() / 4 * 3);
    for (std::size_t at = 0; at < pixels.size(); at += 4)
        for (std::size_t c = 0; c < 3; ++c) {
            const int ink = pixels[at + c], black = pixels[at + 3];
            const int light = inverted ? ink * black : (255 - ink) * (255 - black);
            result.push_back(static_cast<std::uint8_t>((light + 127) / 255));
        }
    return result;
}

[[noreturn]] void bad_jpeg(const std::string& name, const JpegReader& reader) {
    fail(ErrorKind::format, "'", name, "' is no JPEG that can be read: ", reader.message());
}

}  // namespace

ImagePart decode_jpeg(std::string_view bytes, const std::string& name, int channels,
                      const ChoosePart& choose) {
    JpegReader reader;
    if (!reader.begin(bytes)) bad_jpeg(name, reader);
    const jpeg_decompress_struct& state = reader.state();
    check_size(name, state.image_width, state.image_height);
    const double width = state.image_width, height = state.image_height;
    WantedPart wanted{{0, 0, width, height}, state.image_width, state.image_height};
    if (choose) wanted = choose(state.image_width, state.image_height);
    const unsigned numerator = numerator_for(wanted);
    if (!has_end(reader))
        fail(ErrorKind::format, "'", name, "' is no JPEG that can be read: it is cut short");
    if (!reader.start(numerator, channels)) bad_jpeg(name, reader);

    const double scale = numerator / 8.0;
    const ImageBox box{wanted.box.left * scale, wanted.box.top * scale, wanted.box.width * scale,
                       wanted.box.height * scale};
    const std::int64_t all_columns = state.output_width, all_rows = state.output_height;
    JpegPart part{0, 0, all_columns, all_rows};
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    // What resizing reaches, and two more pixels, so that colours next to the edges are
    // interpolated as within.
    const auto around = [](double begin, double length, std::int64_t to, std::int64_t all) {
        const double margin = std::max(1.0, length / static_cast<double>(to)) + 2;
        const auto first = static_cast<std::int64_t>(std::max(0.0, begin - margin));
        const auto end = static_cast<std::int64_t>(std::ceil(begin + length + margin));
        return std::pair(std::min(first, all - 1), std::min(end, all));
    };
    const auto [left, right] = around(box.left, box.width, wanted.width, all_columns);
    const auto [top, bottom] = around(box.top, box.height, wanted.height, all_rows);
    part = {left, top, right - left, bottom - top};
#endif
    if (!reader.select(part)) bad_jpeg(name, reader);
    ImagePart result;
    result.image = {part.width, part.height, state.output_components, {}};
    result.image.pixels.resize(
        static_cast<std::size_t>(part.width * part.height * state.output_components));
    const std::int64_t stride = part.width * state.output_components;
    for (std::int64_t y = 0; y < part.height; ++y)
        if (!reader.read_row(result.image.pixels.data() + y * stride)) bad_jpeg(name, reader);
    if (state.output_components == 4) {
        result.image.pixels = from_cmyk(result.image.pixels, state.saw_Adobe_marker != FALSE);
        result.image.channels = 3;
    }
    result.box = {box.left - static_cast<double>(part.left),
                  box.top - static_cast<double>(part.top), box.width, box.height};
    return result;
}

}  // namespace dlprim::image

#endif
