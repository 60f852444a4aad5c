// SPDX-License-Identifier: MIT
// PPM and PGM with binary pixels of 8 bits.
#include "formats/image/codec.hpp"

#include <optional>

namespace dlprim::image {

namespace {

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
        for (; at_ < bytes_.size() && ascii::is_digit(bytes_[at_]); ++at_)
            value = std::min<std::int64_t>(value * 10 + (bytes_[at_] - '0'), 1 << 20);
        return at_ > begin ? std::optional(value) : std::nullopt;
    }
    /// Where pixels begin: one white space behind the last number.
    std::size_t end() const { return at_ + 1; }

  private:
    std::string_view bytes_;
    std::size_t at_ = 2;
};

}  // namespace

Image decode_pnm(std::string_view bytes, const std::string& name) {
    PnmHead head(bytes);
    const auto width = head.next(), height = head.next(), most = head.next();
    const auto bad = [&](std::string_view what) { fail(ErrorKind::format, "'", name, "' ", what); };
    if (!width || !height || !most) bad("is cut short");
    if (*most < 1 || *most > 255) bad("has pixels of more than 8 bits");
    check_size(name, *width, *height);
    const int channels = bytes[1] == '6' ? 3 : 1;
    const auto count = static_cast<std::size_t>(*width * *height * channels);
    if (bytes.size() < head.end() || bytes.size() - head.end() < count) bad("is cut short");
    Image image = make(name, *width, *height, channels);
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<unsigned char>(bytes[head.end() + i]);
        image.pixels[i] = static_cast<std::uint8_t>(
            std::min<std::int64_t>(255, (value * 255 + *most / 2) / *most));
    }
    return image;
}

}  // namespace dlprim::image
