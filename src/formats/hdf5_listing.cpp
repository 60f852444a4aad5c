// SPDX-License-Identifier: MIT
// list_objects(): a depth-first walk with an explicit stack, in which each object is opened by its
// address. H5Ovisit would open every object by its whole path, which took seconds for a thousand
// nested groups.
#include "formats/hdf5_listing.hpp"

#include <algorithm>
#include <set>

namespace dlprim::hdf5 {

namespace {

#if H5_VERSION_GE(1, 12, 0)
using LinkInfo = H5L_info2_t;
Place place_of(const LinkInfo& link) {
    return link.u.token;
}
herr_t iterate(hid_t group, herr_t (*each)(hid_t, const char*, const LinkInfo*, void*), void* to) {
    return H5Literate2(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, each, to);
}
bool find_place(hid_t object, Place& place) {
    H5O_info2_t info;
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return false;
    place = info.token;
    return true;
}
#else
using LinkInfo = H5L_info_t;
Place place_of(const LinkInfo& link) {
    return link.u.address;
}
herr_t iterate(hid_t group, herr_t (*each)(hid_t, const char*, const LinkInfo*, void*), void* to) {
    return H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, each, to);
}
bool find_place(hid_t object, Place& place) {
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return false;
    place = info.addr;
    return true;
}
#endif

std::string key_of(const Place& place) {
    return {reinterpret_cast<const char*>(&place), sizeof(place)};
}

struct Link {
    std::string name;
    H5L_type_t type;
    Place place;
};

/// What the callback of H5Literate fills.
struct Links {
    std::vector<Link> all;
    std::uint64_t room;  ///< how many more links may be added
    bool too_many = false;
};

herr_t collect(hid_t, const char* name, const LinkInfo* info, void* to) {
    auto& links = *static_cast<Links*>(to);
    try {
        if (links.all.size() >= links.room) {
            links.too_many = true;
            return -1;
        }
        const bool hard = info->type == H5L_TYPE_HARD;
        links.all.push_back({name, info->type, hard ? place_of(*info) : Place{}});
        return 0;
    } catch (const std::exception&) {  // out of memory; exceptions must not pass through C
        links.too_many = true;
        return -1;
    }
}

class Walk {
  public:
    Walk(hid_t file, const std::string& path, std::uint64_t file_bytes)
        : file_(file), path_(path), room_(file_bytes / 8 + 16) {}

    Listing run() {
        Handle root(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose);
        Place place;
        if (!root || !find_place(root.id(), place)) damaged("its root cannot be opened", "");
        enter(root.id(), {"", place, 0});
        while (!pending_.empty()) {
            const Object object = std::move(pending_.back());
            pending_.pop_back();
            visit(object);
        }
        return std::move(listing_);
    }

  private:
    struct Object {
        std::string name;
        Place place;
        int parts;
    };

    [[noreturn]] void damaged(const char* what, const std::string& name) {
        const std::string why = last_error();
        fail(ErrorKind::format, "'", path_, "' is damaged: ", name.empty() ? "" : shown(name),
             name.empty() ? "" : " ", what, why.empty() ? "" : ": ", why);
    }

    void visit(const Object& object) {
        Handle opened = open_at(file_, object.place);
        if (!opened) damaged("cannot be opened", cat("'", object.name, "'"));
        switch (H5Iget_type(opened.id())) {
            case H5I_GROUP:
                return enter(opened.id(), object);
            case H5I_DATASET:
                listing_.datasets.emplace_back(object.name, object.place);
                return;
            default:  // a named datatype
                return;
        }
    }

    void enter(hid_t group, const Object& object) {
        if (!entered_.insert(key_of(object.place)).second) return;
        listing_.groups.emplace(object.name, object.place);
        Links links{{}, room_};
        if (iterate(group, collect, &links) < 0 || links.too_many) {
            const std::string name = object.name.empty() ? "its root" : cat("'", object.name, "'");
            if (links.too_many) damaged("lists more than the file can hold", name);
            damaged("cannot be listed", name);
        }
        room_ -= links.all.size();
        for (auto link = links.all.rbegin(); link != links.all.rend(); ++link) add(object, *link);
    }

    void add(const Object& parent, const Link& link) {
        std::string name = parent.name.empty() ? link.name : cat(parent.name, "/", link.name);
        if (parent.parts >= max_parts || name.size() > max_name)
            fail(ErrorKind::format, "'", path_, "' nests groups too deep: the name '", shown(name),
                 "' has more than ", max_parts, " parts or ", max_name, " bytes");
        if (link.type == H5L_TYPE_HARD)
            pending_.push_back({std::move(name), link.place, parent.parts + 1});
        else
            listing_.links.emplace(std::move(name),
                                   link.type == H5L_TYPE_EXTERNAL ? "a link to another file"
                                   : link.type == H5L_TYPE_SOFT   ? "a soft link"
                                                                  : "a link of a kind of its own");
    }

    hid_t file_;
    const std::string& path_;
    std::uint64_t room_;  ///< links that the file can still hold: each takes at least 8 bytes
    Listing listing_;
    std::vector<Object> pending_;
    std::set<std::string> entered_;
};

}  // namespace

Handle open_at(hid_t file, const Place& place) {
#if H5_VERSION_GE(1, 12, 0)
    return {H5Oopen_by_token(file, place), H5Oclose};
#else
    return {H5Oopen_by_addr(file, place), H5Oclose};
#endif
}

Listing list_objects(hid_t file, const std::string& path, std::uint64_t file_bytes) {
    Listing listing = Walk(file, path, file_bytes).run();
    std::sort(listing.datasets.begin(), listing.datasets.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return listing;
}

std::string shown(std::string_view text) {
    constexpr std::size_t most = 80;
    std::string out(text.substr(0, most));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return text.size() > most ? out + "..." : out;
}

}  // namespace dlprim::hdf5
