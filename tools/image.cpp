// SPDX-License-Identifier: MIT
// Images: PNM by hand, PNG and JPEG by their libraries; see image.hpp.
#include "image.hpp"

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#ifdef DLPRIM_WITH_PNG
#include <png.h>
#endif
#ifdef DLPRIM_WITH_JPEG
#include <jpeglib.h>  // behind cstddef and cstdio, which it needs
#endif

namespace dlprim::tools {

namespace {

constexpr std::int64_t largest_side = 1 << 15;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
    throw Error(ErrorKind::format, "'" + path + "' " + what);
}

Image make_image(const std::string& path, std::int64_t width, std::int64_t height) {
    if (width < 1 || height < 1 || width > largest_side || height > largest_side)
        bad(path, "is an image of " + std::to_string(width) + " x " + std::to_string(height) +
                      " pixels; each side must be from 1 to " + std::to_string(largest_side));
    return {width, height, std::vector<float>(static_cast<std::size_t>(width * height * 3))};
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ErrorKind::not_found, "'" + path + "' cannot be opened");
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) throw Error(ErrorKind::io, "'" + path + "' cannot be read");
    return bytes;
}

/// The numbers of a PNM file's head, between which comments may stand.
class PnmHead {
  public:
    explicit PnmHead(std::string_view bytes) : bytes_(bytes) {}
    std::optional<std::int64_t> next() {
        const auto is_space = [&] { return at_ < bytes_.size() && bytes_[at_] <= ' '; };
        while (is_space() || (at_ < bytes_.size() && bytes_[at_] == '#')) {
            if (bytes_[at_] == '#') at_ = std::min(bytes_.find('\n', at_), bytes_.size() - 1);
            ++at_;
        }
        std::int64_t value = 0;
        const std::size_t begin = at_;
        for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_)
            value = std::min<std::int64_t>(value * 10 + (bytes_[at_] - '0'), 1 << 20);
        return at_ > begin ? std::optional(value) : std::nullopt;
    }
    /// Where pixels begin: one white space behind the last number.
    std::size_t end() const { return at_ + 1; }

  private:
    std::string_view bytes_;
    std::size_t at_ = 2;
};

Image read_pnm(const std::string& path, std::string_view bytes) {
    PnmHead head(bytes);
    const auto width = head.next(), height = head.next(), most = head.next();
    if (!width || !height || !most) bad(path, "is cut short");
    if (*most < 1 || *most > 255) bad(path, "has pixels of more than 8 bits");
    Image image = make_image(path, *width, *height);
    const std::size_t channels = bytes[1] == '6' ? 3 : 1, count = image.pixels.size() / 3;
    if (bytes.size() < head.end() || bytes.size() - head.end() < count * channels)
        bad(path, "is cut short");
    const float scale = 255.0f / static_cast<float>(*most);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        const std::size_t from = head.end() + (channels == 3 ? i : i / 3);
        image.pixels[i] = scale * static_cast<float>(static_cast<unsigned char>(bytes[from]));
    }
    return image;
}

#ifdef DLPRIM_WITH_PNG
Image read_png(const std::string& path, std::string_view bytes) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    const std::unique_ptr<png_image, void (*)(png_image*)> freed(&png, png_image_free);
    if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()))
        bad(path, std::string("is no PNG that can be read: ") + png.message);
    png.format = PNG_FORMAT_RGB;
    Image image = make_image(path, png.width, png.height);
    std::vector<png_byte> pixels(PNG_IMAGE_SIZE(png));
    const png_color black{};
    if (!png_image_finish_read(&png, &black, pixels.data(), 0, nullptr))
        bad(path, std::string("is no PNG that can be read: ") + png.message);
    std::copy(pixels.begin(), pixels.end(), image.pixels.begin());
    return image;
}
#endif

#ifdef DLPRIM_WITH_JPEG
/// libjpeg leaves by longjmp, so nothing with a destructor is made between the calls that may.
struct JpegReader {
    jpeg_decompress_struct state{};
    jpeg_error_mgr errors{};
    std::jmp_buf back;
    char message[JMSG_LENGTH_MAX] = "";

    JpegReader() {
        state.err = jpeg_std_error(&errors);
        state.client_data = this;
        errors.error_exit = [](j_common_ptr common) {
            auto* const self = static_cast<JpegReader*>(common->client_data);
            common->err->format_message(common, self->message);
            std::longjmp(self->back, 1);
        };
        errors.output_message = [](j_common_ptr) {};
    }
    ~JpegReader() { jpeg_destroy_decompress(&state); }
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;

    bool begin(std::string_view bytes) {
        if (setjmp(back)) return false;
        jpeg_create_decompress(&state);
        jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&state, TRUE);
        state.out_color_space = JCS_RGB;
        jpeg_start_decompress(&state);
        return true;
    }
    bool read_row(unsigned char* row) {
        if (setjmp(back)) return false;
        return jpeg_read_scanlines(&state, &row, 1) == 1;
    }
};

Image read_jpeg(const std::string& path, std::string_view bytes) {
    JpegReader reader;
    if (!reader.begin(bytes))
        bad(path, std::string("is no JPEG that can be read: ") + reader.message);
    Image image = make_image(path, reader.state.output_width, reader.state.output_height);
    std::vector<unsigned char> row(static_cast<std::size_t>(image.width) * 3);
    for (std::int64_t y = 0; y < image.height; ++y) {
        if (!reader.read_row(row.data()))
            bad(path, std::string("is no JPEG that can be read: ") + reader.message);
        std::copy(row.begin(), row.end(), image.pixels.begin() + y * image.width * 3);
    }
    return image;
}
#endif

/// By output pixel: its first input pixel and the weights of that and those behind it.
struct Taps {
    std::int64_t first = 0;
    std::vector<float> weights;
};

std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
    const double step = static_cast<double>(from) / static_cast<double>(to);
    const double reach = std::max(step, 1.0);
    std::vector<Taps> result;
    for (std::int64_t i = 0; i < to; ++i) {
        const double center = (static_cast<double>(i) + 0.5) * step;
        Taps taps;
        taps.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - reach + 0.5));
        const std::int64_t end =
            std::min<std::int64_t>(from, static_cast<std::int64_t>(center + reach + 0.5));
        double sum = 0;
        for (std::int64_t k = taps.first; k < end; ++k) {
            const double distance = (static_cast<double>(k) + 0.5 - center) / reach;
            const double weight = std::max(0.0, 1 - std::abs(distance));
            taps.weights.push_back(static_cast<float>(weight));
            sum += weight;
        }
        for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
        result.push_back(std::move(taps));
    }
    return result;
}

/// Rows of `length` numbers, each a mixture of the given rows.
std::vector<float> mixed_rows(const std::vector<float>& rows, std::int64_t length,
                              const std::vector<Taps>& all) {
    std::vector<float> result(all.size() * static_cast<std::size_t>(length));
    for (std::size_t y = 0; y < all.size(); ++y) {
        float* const to = result.data() + y * static_cast<std::size_t>(length);
        for (std::size_t k = 0; k < all[y].weights.size(); ++k) {
            const float weight = all[y].weights[k];
            const float* const from =
                rows.data() + (all[y].first + static_cast<std::int64_t>(k)) * length;
            for (std::int64_t i = 0; i < length; ++i) to[i] += weight * from[i];
        }
    }
    return result;
}

/// Rows become columns, a pixel of three numbers staying together.
std::vector<float> turned(const std::vector<float>& pixels, std::int64_t width,
                          std::int64_t height) {
    std::vector<float> result(pixels.size());
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            std::copy_n(pixels.begin() + (y * width + x) * 3, 3,
                        result.begin() + (x * height + y) * 3);
    return result;
}

}  // namespace

Image read_image(const std::string& path) {
    const std::string bytes = read_file(path);
    const std::string_view view(bytes);
    if (view.starts_with("P5") || view.starts_with("P6")) return read_pnm(path, view);
    const bool png = view.starts_with("\x89PNG"), jpeg = view.starts_with("\xff\xd8\xff");
#ifdef DLPRIM_WITH_PNG
    if (png) return read_png(path, view);
#endif
#ifdef DLPRIM_WITH_JPEG
    if (jpeg) return read_jpeg(path, view);
#endif
    if (png || jpeg)
        throw Error(ErrorKind::unsupported, "'" + path + "' is " + (png ? "PNG" : "JPEG") +
                                                ", which this build does not read; build where " +
                                                (png ? "libpng" : "libjpeg") +
                                                " is installed, or convert it to PPM");
    bad(path, "is no image in PPM, PGM, PNG or JPEG");
}

Image resized(const Image& image, std::int64_t width, std::int64_t height) {
    if (image.width == width && image.height == height) return image;
    std::vector<float> pixels =
        mixed_rows(image.pixels, image.width * 3, taps_of(image.height, height));
    pixels = turned(pixels, image.width, height);
    pixels = mixed_rows(pixels, height * 3, taps_of(image.width, width));
    return {width, height, turned(pixels, height, width)};
}

Image cropped(const Image& image, std::int64_t size) {
    Image result{size, size, {}};
    // Halves go to the even neighbour, as torchvision has it.
    const auto half = [](std::int64_t rest) { return rest / 2 + (rest % 2 & (rest / 2) % 2); };
    const std::int64_t left = half(image.width - size), top = half(image.height - size);
    for (std::int64_t y = 0; y < size; ++y) {
        const auto row = image.pixels.begin() + ((top + y) * image.width + left) * 3;
        result.pixels.insert(result.pixels.end(), row, row + size * 3);
    }
    return result;
}

}  // namespace dlprim::tools
