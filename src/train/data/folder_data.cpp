// SPDX-License-Identifier: MIT
// Data sets of pictures in folders.
#include "train/data/folder_data.hpp"

#include "base/text.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <filesystem>
#include <map>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path, bool jpeg) {
    std::string ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), ascii::lower);
    return ending == ".png" || ending == ".pgm" || ending == ".ppm" ||
           (jpeg && (ending == ".jpg" || ending == ".jpeg"));
}

[[noreturn]] void cannot_list(const fs::path& path, const std::error_code& error) {
    if (error == std::errc::no_such_file_or_directory)
        fail(ErrorKind::not_found, "there is no folder '", path.string(), "'");
    if (error == std::errc::too_many_symbolic_link_levels)
        fail(ErrorKind::io, "'", path.string(), "' is a link that leads back to itself; remove it");
    fail(ErrorKind::io, "folder '", path.string(), "' cannot be read: ", error.message());
}

/// The entries of a folder without those that begin with a dot, by name.
std::vector<fs::path> entries_of(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> entries;
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error))
        if (!at->path().filename().string().starts_with('.')) entries.push_back(at->path());
    if (error) cannot_list(folder, error);
    std::sort(entries.begin(), entries.end());
    return entries;
}

/// Lists folders and remembers in which it is, so that a link that leads back is found.
class PictureLister {
  public:
    explicit PictureLister(bool jpeg) : jpeg_(jpeg) {}

    bool is_folder(const fs::path& path) const {
        struct stat status {};
        if (::stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
        if (errno == ELOOP) cannot_list(path, std::error_code(errno, std::generic_category()));
        return false;  // a link to nothing
    }

    /// Adds the pictures of a folder and of those in it.
    void list(const fs::path& folder, std::vector<std::string>& pictures) {
        struct stat status {};
        if (::stat(folder.c_str(), &status) != 0)
            cannot_list(folder, std::error_code(errno, std::generic_category()));
        const std::pair identity(status.st_dev, status.st_ino);
        if (std::find(within_.begin(), within_.end(), identity) != within_.end())
            fail(ErrorKind::io, "'", folder.string(),
                 "' is a link to a folder that it is in, so that there is no end; remove it");
        within_.push_back(identity);
        for (const fs::path& entry : entries_of(folder)) {
            if (is_folder(entry))
                list(entry, pictures);
            else if (is_picture(entry, jpeg_))
                pictures.push_back(entry.string());
            else if (passed_over_++ == 0)
                first_passed_ = entry.string();
        }
        within_.pop_back();
    }

    /// What was not listed, as a sentence, or nothing.
    std::vector<std::string> remarks() const {
        if (passed_over_ == 0) return {};
        return {cat(passed_over_, passed_over_ == 1 ? " file is" : " files are",
                    " passed over, since the name does not end as that of a PNG, JPEG, PPM or PGM "
                    "file: '",
                    first_passed_, "'", passed_over_ == 1 ? "" : ", and others")};
    }

  private:
    bool jpeg_;
    std::int64_t passed_over_ = 0;
    std::string first_passed_;
    std::vector<std::pair<dev_t, ino_t>> within_;
};

class ClassFolder final : public Dataset {
  public:
    ClassFolder(const std::string& folder, int channels, std::vector<std::string> classes)
        : folder_(folder), channels_(channels), classes_(std::move(classes)) {
        PictureLister lister(true);
        const bool given = !classes_.empty();
        bool has_pictures = false;
        for (const fs::path& entry : entries_of(folder)) {
            if (!lister.is_folder(entry)) {
                has_pictures = has_pictures || is_picture(entry, true);
                continue;
            }
            const std::string name = entry.filename().string();
            std::vector<std::string> pictures;
            lister.list(entry, pictures);
            if (given)
                check_known(name);
            else if (pictures.empty())
                fail(ErrorKind::format, "'", entry.string(),
                     "', the folder of a class, has no pictures (PNG, JPEG, PPM or PGM); remove it "
                     "or fill it");
            else
                classes_.push_back(name);
            const auto at = std::find(classes_.begin(), classes_.end(), name);
            files_.insert(files_.end(), pictures.begin(), pictures.end());
            labels_.resize(files_.size(), static_cast<std::int32_t>(at - classes_.begin()));
        }
        remarks_ = lister.remarks();
        if (classes_.empty() || (given && files_.empty()))
            fail(ErrorKind::format, "folder '", folder, "' has no classes: ",
                 has_pictures ? "its pictures are to be in a folder for each class"
                              : "a folder for each class, with its pictures in it, is wanted");
        if (classes_.size() == 1)
            fail(ErrorKind::format, "folder '", folder, "' has one class alone, '", classes_[0],
                 "'; a net that classifies needs a folder for each of two classes or more");
    }

    std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
    bool has_pictures() const override { return true; }
    Shape input_shape() const override { return Shape{channels_, 0, 0}; }
    TargetKind target_kind() const override { return TargetKind::label; }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::int32_t label(std::int64_t index) const override {
        return labels_[static_cast<std::size_t>(index)];
    }
    Example read(std::int64_t index, const ChoosePart& choose) const override {
        const std::string& file = files_[static_cast<std::size_t>(index)];
        ImagePart part = decode_image(read_image_file(file), file, channels_, choose);
        Example example;
        example.image = std::move(part.image);
        example.box = part.box;
        example.label = label(index);
        return example;
    }
    std::string name(std::int64_t index) const override {
        return files_[static_cast<std::size_t>(index)];
    }
    std::string source() const override { return cat("'", folder_, "'"); }
    std::vector<std::string> remarks() const override { return remarks_; }

  private:
    void check_known(const std::string& name) const {
        if (std::find(classes_.begin(), classes_.end(), name) == classes_.end())
            fail(ErrorKind::format, "folder '", folder_, "' has a class '", name,
                 "' that the training set lacks", did_you_mean(name, classes_));
    }

    std::string folder_;
    int channels_;
    std::vector<std::string> classes_, files_, remarks_;
    std::vector<std::int32_t> labels_;
};

class MaskFolder final : public Dataset {
  public:
    MaskFolder(const std::string& images, const std::string& masks, int channels,
               std::vector<std::string> classes)
        : folder_(images), channels_(channels), classes_(std::move(classes)) {
        PictureLister lister(true);
        lister.list(images, files_);
        remarks_ = lister.remarks();
        if (files_.empty())
            fail(ErrorKind::format, "folder '", images,
                 "' has no pictures (PNG, JPEG, PPM or PGM)");
        std::vector<std::string> all;
        PictureLister(false).list(masks, all);
        std::map<std::string, std::string> by_name;
        for (const std::string& mask : all) by_name[key(masks, mask)] = mask;
        for (const std::string& file : files_) {
            const auto found = by_name.find(key(images, file));
            if (found == by_name.end())
                fail(ErrorKind::format, "'", file, "' has no mask: '", masks,
                     "' holds no PNG or PGM file of that name");
            masks_.push_back(found->second);
        }
    }

    std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
    bool has_pictures() const override { return true; }
    Shape input_shape() const override { return Shape{channels_, 0, 0}; }
    TargetKind target_kind() const override { return TargetKind::mask; }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::int32_t label(std::int64_t) const override { return 0; }
    Example read(std::int64_t index, const ChoosePart& choose) const override {
        const std::string& file = files_[static_cast<std::size_t>(index)];
        const std::string& mask = masks_[static_cast<std::size_t>(index)];
        ImagePart part = decode_image(read_image_file(file), file, channels_, choose);
        Example example;
        example.image = std::move(part.image);
        example.box = part.box;
        example.mask = decode_mask(read_image_file(mask), mask);
        // With a part the augmenter knows the picture's size, and checks it.
        if (!choose && (example.mask.width != example.image.width ||
                        example.mask.height != example.image.height))
            fail(ErrorKind::format, "'", file, "' is ", example.image.width, " x ",
                 example.image.height, " pixels, but its mask is ", example.mask.width, " x ",
                 example.mask.height);
        return example;
    }
    std::string name(std::int64_t index) const override {
        return files_[static_cast<std::size_t>(index)];
    }
    std::string source() const override { return cat("'", folder_, "'"); }
    std::vector<std::string> remarks() const override { return remarks_; }

  private:
    /// The path within the folder, without its ending.
    static std::string key(const std::string& folder, const std::string& file) {
        return fs::path(file).lexically_relative(folder).replace_extension().string();
    }

    std::string folder_;
    int channels_;
    std::vector<std::string> classes_, files_, masks_, remarks_;
};

}  // namespace

std::unique_ptr<Dataset> open_class_folder(const std::string& folder, int channels,
                                           const std::vector<std::string>& classes) {
    return std::make_unique<ClassFolder>(folder, channels, classes);
}

std::unique_ptr<Dataset> open_mask_folder(const std::string& images, const std::string& masks,
                                          int channels, const std::vector<std::string>& classes) {
    return std::make_unique<MaskFolder>(images, masks, channels, classes);
}

}  // namespace dlprim
