// Exported libraries in memory, for paddle_inference_api.h: which are one model, what a predictor
// and its handles share.
#ifndef MINIPADDLE_EXPORTED_SESSION_H
#define MINIPADDLE_EXPORTED_SESSION_H

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "exported_model.h"

namespace paddle_infer {

inline int GetNumBytesOfDataType(DataType type) {
    static const int bytes[] = {4, 8, 4, 1, 1, 2, 1, 8, 2, 2};
    return bytes[type];
}

namespace exported {

using Shape = std::vector<int>;
enum Side { INPUT, OUTPUT };

[[noreturn]] inline void refuse(const std::string &why) {
    throw std::runtime_error("paddle_infer: " + why);
}

inline std::string text(const Shape &shape, const char *between = ", ") {
    std::string all;
    for (size_t k = 0; k < shape.size(); k++) all += (k ? between : "") + std::to_string(shape[k]);
    return all;
}

inline size_t count(const Shape &shape) {
    return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<size_t>());
}

inline bool exists(const std::string &path) { return std::ifstream(path).good(); }

inline bool ends(const std::string &text, const std::string &with) {
    return text.size() >= with.size() &&
           !text.compare(text.size() - with.size(), with.size(), with);
}

inline const char *name_of(DataType type) {
    static const char *const names[] = {"float32", "int64", "int32",   "uint8",    "int8",
                                        "float16", "bool",  "float64", "bfloat16", "int16"};
    return names[type];
}

// Whether a T is an element of this type; float16 and bfloat16 are any two bytes but a short.
template <typename T> bool holds(DataType type) {
    static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
    if (sizeof(T) != size_t(GetNumBytesOfDataType(type))) return false;
    if (type == FLOAT16 || type == BFLOAT16) return !std::is_signed<T>::value;
    if (type == FLOAT32 || type == FLOAT64) return std::is_floating_point<T>::value;
    const bool signs = type != UINT8 && type != BOOL;
    return std::is_integral<T>::value && std::is_signed<T>::value == signs;
}

// Bytes that begin at a multiple of an alignment.
class Memory {
    std::unique_ptr<char[]> room;
    char *first;

public:
    Memory(size_t size, size_t alignment) : room(new char[size + alignment]) {
        first = room.get() + (alignment - reinterpret_cast<uintptr_t>(room.get()) % alignment);
    }
    char *at(size_t byte = 0) const { return first + byte; }
};

// A library, opened, and its weights. It never changes: predictors in all threads share it.
class Library {
    std::shared_ptr<void> handle;
    std::unique_ptr<Memory> weights;

    void read(const std::string &file) {
        const size_t size = model->weights_size;
        std::ifstream stream(file, std::ios::binary | std::ios::ate);
        if (!stream) refuse("there are no weights " + file);
        if (stream.tellg() != std::streamoff(size))
            refuse(file + " does not have " + std::to_string(size) + " bytes, as the weights of " +
                   path);
        weights = std::make_unique<Memory>(size, model->alignment);
        if (!stream.seekg(0).read(weights->at(), std::streamsize(size)))
            refuse(file + " cannot be read");
    }

public:
    const std::string path;
    const exported_model *model;

    Library(const std::string &library, const std::string &file) : path(library) {
        void *const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!opened) refuse(std::string("a library cannot be opened: ") + dlerror());
        handle = std::shared_ptr<void>(opened, dlclose);
        void *const entry = dlsym(opened, EXPORTED_MODEL_ENTRY);
        if (!entry)
            refuse(path + " is no model for this header: export it again, and take its header");
        model = reinterpret_cast<const exported_model *(*)()>(entry)();
        if (model->weights && file.empty()) return;
        read(file.empty() ? path.substr(0, path.rfind('/') + 1) + model->weights_file : file);
    }

    std::unique_ptr<Memory> instance() const {
        auto arena = std::make_unique<Memory>(model->arena_size, model->alignment);
        const void *const from = weights ? weights->at() : model->weights;
        check(model->init(arena->at(), model->arena_size, from, model->weights_size));
        return arena;
    }

    void check(int code) const {
        if (code) refuse(path + ": " + model->error(code));
    }

    Shape shape(Side side, size_t k) const {
        const exported_array &x = model->arrays[side][k];
        return Shape(x.shape, x.shape + x.rank);
    }

    std::vector<Shape> shapes() const {
        std::vector<Shape> all;
        for (size_t k = 0; k < model->counts[INPUT]; k++) all.push_back(shape(INPUT, k));
        return all;
    }

    bool is_like(const Library &other) const {
        const auto same = [](const exported_array &a, const exported_array &b) {
            return !std::strcmp(a.name, b.name) && a.type == b.type && a.rank == b.rank;
        };
        for (Side side : {INPUT, OUTPUT}) {
            const auto a = model->arrays[side], b = other.model->arrays[side];
            const size_t n = model->counts[side];
            if (n != other.model->counts[side] || !std::equal(a, a + n, b, same)) return false;
        }
        return true;
    }
};

using Libraries = std::vector<std::shared_ptr<const Library>>;

// The names of the files in a folder; of what is no folder, nothing.
inline std::vector<std::string> files(const std::string &folder) {
    std::vector<std::string> names;
    DIR *const open = opendir(folder.c_str());
    while (const dirent *const entry = open ? readdir(open) : nullptr) names.push_back(entry->d_name);
    if (open) closedir(open);
    std::sort(names.begin(), names.end());
    return names;
}

// The libraries that a path means: all in a folder; a file X.so; for another file X.*, those beside
// it that are called X.so or X_*.so.
inline std::vector<std::string> find(const std::string &path) {
    const auto inside = files(path);
    const size_t base = inside.empty() ? path.rfind('/') + 1 : path.size();  // without a slash 0
    const std::string folder = base ? path.substr(0, base) + "/" : "./", file = path.substr(base);
    const std::string stem = file.substr(0, file.rfind('.'));
    if (ends(file, ".so") && exists(path)) return {folder + file};
    std::vector<std::string> paths;
    for (const std::string &name : files(folder)) {
        const bool named = name == stem + ".so" || !name.compare(0, stem.size() + 1, stem + "_");
        if (ends(name, ".so") && (file.empty() || named)) paths.push_back(folder + name);
    }
    return paths;
}

// All that a path means, opened: one model for several shapes.
inline Libraries open(const std::string &path, std::string weights) {
    if (path.empty()) refuse("no model is set: config.SetModel(FOLDER)");
    const auto paths = find(path);
    if (paths.empty())
        refuse("there is no exported library at " + path +
               "\n  try: python -m minipaddle export MODEL --to c -o FOLDER, make -C FOLDER paddle,"
               " and SetModel(FOLDER)");
    if (ends(weights, ".pdiparams")) {
        if (exists(weights))
            refuse(weights + " holds weights for Python, and " + paths[0] +
                   " may be of other ones\n"
                   "  try: SetModel(FOLDER), where FOLDER holds the export alone");
        weights.clear();
    }
    if (!weights.empty() && paths.size() > 1)
        refuse(weights + " belongs to one library, and there are " + paths[0] + ", " + paths[1] +
               "\n  try: no file of weights, so that each takes its own");
    Libraries all;
    for (const std::string &one : paths) {
        auto library = std::make_shared<const Library>(one, weights);
        for (const auto &other : all) {
            const std::string both = one + " and " + other->path;
            if (!library->is_like(*other)) refuse(both + " are not one model: their arrays differ");
            if (library->shapes() == other->shapes()) refuse(both + " are for the same shapes");
            if (library->model->changes) refuse(both + " have states that change, each for itself");
        }
        all.push_back(std::move(library));
    }
    return all;
}

struct Input {
    Shape shape;
    bool shaped = false, filled = false;
    std::vector<char> own;
    const void *data = nullptr;  // in `own`, or the user's
};

// What a predictor and its handles share.
struct Session {
    const Libraries libraries;
    std::vector<std::unique_ptr<Memory>> arenas;  // of each library; null after TryShrinkMemory
    std::vector<Input> inputs;
    std::vector<std::pair<void *, Shape>> copies;  // where a run copies each output, if anywhere
    const Library *last = nullptr;                 // the library that ran,
    const Memory *arena = nullptr;                 // and its arena

    explicit Session(Libraries all)
        : libraries(std::move(all)), inputs(model().counts[INPUT]), copies(model().counts[OUTPUT]) {
        for (const auto &one : libraries) arenas.push_back(one->instance());
        for (size_t k = 0; k < inputs.size(); k++) {
            inputs[k].shape = libraries[0]->shape(INPUT, k);
            inputs[k].shaped = std::all_of(
                libraries.begin(), libraries.end(),
                [&](const auto &one) { return one->shape(INPUT, k) == inputs[k].shape; });
        }
    }

    const exported_model &model() const { return *libraries[0]->model; }

    std::vector<Shape> shapes() const {
        std::vector<Shape> all;
        for (const Input &x : inputs) all.push_back(x.shape);
        return all;
    }

    [[noreturn]] void refuse_shapes(const std::vector<Shape> &wanted) const {
        std::string asked, options, known;
        for (size_t k = 0; k < wanted.size(); k++) {
            const std::string name = (k ? ", " : "") + std::string(model().arrays[INPUT][k].name);
            asked += name + " [" + text(wanted[k]) + "]";
            options += " --input " + text(wanted[k], ",");
        }
        for (const auto &one : libraries) {
            known += "\n  " + one->path + ":";
            for (const Shape &shape : one->shapes()) known += " [" + text(shape) + "]";
        }
        refuse("no library is for " + asked + "; there are" + known +
               "\n  try: python -m minipaddle export MODEL --to c" + options +
               " --name ANOTHER -o FOLDER, and make -C FOLDER paddle");
    }

    void run() {
        const auto wanted = shapes();
        size_t n = 0;
        while (n < libraries.size() && libraries[n]->shapes() != wanted) n++;
        if (n == libraries.size()) refuse_shapes(wanted);
        const Library &library = *libraries[n];
        if (!arenas[n]) arenas[n] = library.instance();
        for (size_t k = 0; k < inputs.size(); k++) {
            const exported_array &x = library.model->arrays[INPUT][k];
            if (!inputs[k].filled)
                refuse(std::string(x.name) + " has no values: CopyFromCpu gives it some");
            std::memcpy(arenas[n]->at(x.at), inputs[k].data, bytes(library, INPUT, k));
        }
        last = nullptr;  // a run that fails leaves no outputs
        library.check(library.model->run(arenas[n]->at()));
        last = &library;
        arena = arenas[n].get();
        for (size_t k = 0; k < copies.size(); k++) {
            if (!copies[k].first) continue;
            const exported_array &y = library.model->arrays[OUTPUT][k];
            if (copies[k].second != library.shape(OUTPUT, k))
                refuse(std::string(y.name) + " is [" + text(library.shape(OUTPUT, k)) +
                       "], and ShareExternalData was given [" + text(copies[k].second) + "]");
            std::memcpy(copies[k].first, arena->at(y.at), bytes(library, OUTPUT, k));
        }
    }

    static size_t bytes(const Library &library, Side side, size_t k) {
        return count(library.shape(side, k)) *
               size_t(GetNumBytesOfDataType(library.model->arrays[side][k].type));
    }
};

}  // namespace exported

}  // namespace paddle_infer
#endif
