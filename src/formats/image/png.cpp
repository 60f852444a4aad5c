// SPDX-License-Identifier: MIT
// PNG by libpng.
//
// libpng leaves a call that fails by longjmp, so that nothing with a destructor is made between
// setjmp and such calls: they are in small functions of PngReader and PngWriter.
#include "formats/image/codec.hpp"

#if DLPRIM_WITH_PNG

#include "base/env.hpp"

#include <png.h>
#include <cstring>

namespace dlprim::image {

namespace {

/// Keeps libpng's message in `text` and leaves the call.
struct PngMessage {
    char text[160] = "";
    [[noreturn]] static void keep(png_structp png, png_const_charp what) {
        auto* const self = static_cast<PngMessage*>(png_get_error_ptr(png));
        std::strncpy(self->text, what, sizeof self->text - 1);
        png_longjmp(png, 1);
    }
    static void ignore(png_structp, png_const_charp) {}
};

class PngReader {
  public:
    explicit PngReader(std::string_view bytes) : bytes_(bytes) {}
    ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;

    /// Reads up to the pixels.
    bool begin() {
        png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message_, PngMessage::keep,
                                      PngMessage::ignore);
        info_ = png_ ? png_create_info_struct(png_) : nullptr;
        if (!info_ || setjmp(png_jmpbuf(png_))) return false;
        png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t count) {
            auto* const self = static_cast<PngReader*>(png_get_io_ptr(png));
            if (count > self->bytes_.size() - self->at_) png_error(png, "it is cut short");
            std::memcpy(to, self->bytes_.data() + self->at_, count);
            self->at_ += count;
        });
        png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // check_size() says more
        png_set_chunk_malloc_max(png_, 8 << 20);
        png_read_info(png_, info_);
        file_bits_ = png_get_channels(png_, info_) * png_get_bit_depth(png_, info_);
        return true;
    }
    /// Asks for 8 bits, without a palette, or as `raw` for the numbers in the file.
    bool transform(bool raw) {
        if (setjmp(png_jmpbuf(png_))) return false;
        if (raw) {
            png_set_packing(png_);
        } else {
            png_set_scale_16(png_);
            png_set_expand(png_);
        }
        png_set_interlace_handling(png_);
        png_read_update_info(png_, info_);
        return true;
    }
    bool read(png_bytepp rows) {
        if (setjmp(png_jmpbuf(png_))) return false;
        png_read_image(png_, rows);
        return true;
    }

    std::int64_t width() const { return png_get_image_width(png_, info_); }
    std::int64_t height() const { return png_get_image_height(png_, info_); }
    int bits() const { return png_get_bit_depth(png_, info_); }
    int colour_type() const { return png_get_color_type(png_, info_); }
    int channels() const { return png_get_channels(png_, info_); }
    int file_bits() const { return file_bits_; }  ///< of a pixel, in the file
    const char* message() const { return message_.text; }

  private:
    std::string_view bytes_;
    int file_bits_ = 0;
    std::size_t at_ = 0;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    PngMessage message_;
};

[[noreturn]] void bad_png(const std::string& name, const PngReader& reader) {
    fail(ErrorKind::format, "'", name, "' is no PNG that can be read: ", reader.message());
}

std::vector<std::uint8_t> read_rows(PngReader& reader, const std::string& name,
                                    std::size_t file_bytes) {
    const auto stride = static_cast<std::size_t>(reader.width() * reader.channels());
    constexpr std::size_t ratio = 1032;  // deflate's best
    const auto least_stride =
        static_cast<std::size_t>(reader.width()) * static_cast<std::size_t>(reader.file_bits()) / 8;
    if (least_stride * static_cast<std::size_t>(reader.height()) / ratio > file_bytes)
        fail(ErrorKind::format, "'", name, "' is no PNG that can be read: ", file_bytes,
             " bytes cannot hold ", reader.width(), " x ", reader.height(), " pixels");
    std::vector<std::uint8_t> pixels(stride * static_cast<std::size_t>(reader.height()));
    std::vector<png_bytep> rows;
    for (std::size_t at = 0; at < pixels.size(); at += stride) rows.push_back(pixels.data() + at);
    if (!reader.read(rows.data())) bad_png(name, reader);
    return pixels;
}

/// Lays pixels whose last channel is opacity over black.
std::vector<std::uint8_t> opaque(const std::vector<std::uint8_t>& pixels, int channels) {
    std::vector<std::uint8_t> result;
    const auto step = static_cast<std::size_t>(channels);
    result.reserve(pixels.size() / step * (step - 1));
    for (std::size_t at = 0; at < pixels.size(); at += step)
        for (std::size_t c = 0; c + 1 < step; ++c)
            result.push_back(
                static_cast<std::uint8_t>((pixels[at + c] * pixels[at + step - 1] + 127) / 255));
    return result;
}

}  // namespace

ImagePart decode_png(std::string_view bytes, const std::string& name) {
    PngReader reader(bytes);
    if (!reader.begin()) bad_png(name, reader);
    check_size(name, reader.width(), reader.height());
    if (!reader.transform(false)) bad_png(name, reader);
    ImagePart part;
    const int channels = reader.channels();
    part.image = {reader.width(), reader.height(), channels < 3 ? 1 : 3,
                  read_rows(reader, name, bytes.size())};
    if (channels % 2 == 0) part.image.pixels = opaque(part.image.pixels, channels);
    return part;
}

Image decode_png_mask(std::string_view bytes, const std::string& name) {
    PngReader reader(bytes);
    if (!reader.begin()) bad_png(name, reader);
    check_size(name, reader.width(), reader.height());
    const int type = reader.colour_type();
    if ((type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY) || reader.bits() > 8)
        fail(ErrorKind::format, "'", name, "' has ",
             reader.bits() > 8 ? "16 bits per pixel" : "colours or transparency",
             "; a mask has class numbers: grey of at most 8 bits, or a palette");
    if (!reader.transform(true)) bad_png(name, reader);
    return {reader.width(), reader.height(), 1, read_rows(reader, name, bytes.size())};
}

namespace {

class PngWriter {
  public:
    PngWriter() = default;
    ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
    PngWriter(const PngWriter&) = delete;
    PngWriter& operator=(const PngWriter&) = delete;

    bool write(const Image& image, png_bytepp rows) {
        png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message_, PngMessage::keep,
                                       PngMessage::ignore);
        info_ = png_ ? png_create_info_struct(png_) : nullptr;
        if (!info_ || setjmp(png_jmpbuf(png_))) return false;
        png_set_write_fn(
            png_, &bytes_,
            [](png_structp png, png_bytep from, std::size_t count) {
                static_cast<std::string*>(png_get_io_ptr(png))
                    ->append(reinterpret_cast<const char*>(from), count);
            },
            nullptr);
        png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.width),
                     static_cast<png_uint_32>(image.height), 8,
                     image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png_, info_);
        png_write_image(png_, rows);
        png_write_end(png_, nullptr);
        return true;
    }
    const std::string& bytes() const { return bytes_; }
    const char* message() const { return message_.text; }

  private:
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::string bytes_;
    PngMessage message_;
};

}  // namespace

}  // namespace dlprim::image

namespace dlprim {

std::string encode_png(const Image& image) {
    const auto stride = static_cast<std::size_t>(image.width * image.channels);
    require(image.width > 0 && image.height > 0 && (image.channels == 1 || image.channels == 3) &&
                image.pixels.size() == stride * static_cast<std::size_t>(image.height),
            "an image of ", image.width, " x ", image.height, " pixels with ", image.channels,
            " channels and ", image.pixels.size(), " bytes cannot be written");
    std::vector<png_bytep> rows;
    for (std::size_t at = 0; at < image.pixels.size(); at += stride)
        rows.push_back(const_cast<png_bytep>(image.pixels.data() + at));  // libpng only reads them
    image::PngWriter writer;
    if (!writer.write(image, rows.data()))
        fail(ErrorKind::io, "an image cannot be made a PNG: ", writer.message());
    return writer.bytes();
}

}  // namespace dlprim

#else

namespace dlprim {

std::string encode_png(const Image&) {
    fail(ErrorKind::unsupported,
         "this build writes no PNG: install libpng-dev and build dlprim again");
}

}  // namespace dlprim

#endif
