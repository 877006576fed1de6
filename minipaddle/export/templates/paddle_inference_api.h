// Paddle's C++ interface for inference, over models that MiniPaddle exported as C libraries.
//
//     python -m minipaddle export net --to c --input 1,3,224,224 -o net_c
//     make -C net_c paddle                                    # net_c/model.so
//     g++ -I net_c/paddle/include program.cc -ldl && ./a.out  # config.SetModel("net_c")
//
// SetModel takes the folder, or a file in it: model.so, or what Paddle's programs say: for
// net.pdmodel and net.pdiparams it takes net.so, exported with `--name net`, and its own weights.
// All libraries of a folder, or net.so and all net_*.so, are one model for several shapes of its
// inputs: `export ... --input 8,3,224,224 --name net_8 -o net_c` adds one.
//
// What cannot be done is refused by an exception, std::runtime_error. A predictor is used by one
// thread at a time; its clones share the weights and run beside it. C++14 and dlopen are enough.
#ifndef MINIPADDLE_PADDLE_INFERENCE_API_H
#define MINIPADDLE_PADDLE_INFERENCE_API_H

#include "exported_session.h"

namespace paddle_infer {

enum class PlaceType { kUNK = -1, kCPU, kGPU, kXPU, kNPU, kIPU, kCUSTOM };
enum class DataLayout { kUNK = -1, kAny, kNHWC, kNCHW };
enum class PrecisionType { kFloat32, kInt8, kHalf, kBf16 };
using CallbackFunc = void (*)(void *);

inline std::string GetVersion() { return "MiniPaddle: exported libraries, version 1"; }

#define HINT(name) /* no number depends on it */ \
    template <typename... Any> void name(const Any &...) {}
#define REFUSED(name, why) \
    template <typename... Any> void name(const Any &...) { exported::refuse(#name ": " why); }
#define ON_PROCESSOR "an exported library runs on the processor alone: leave the call out"
#define ONNX "ONNX Runtime runs what `export --to onnx` writes"
#define AS_EXPORTED "the numbers are those of the export: quantize or cast the network before it"

struct PassStrategy {
    HINT(DeletePass) HINT(TurnOnDebug)
};

// Which model, and how. Options that could only change the speed are accepted.
class Config {
    std::string model_dir_, prog_file_, params_file_;
    int threads_ = 1;
    bool mkldnn_ = false, ir_optim_ = true, memory_optim_ = false, silent_ = false;
    PassStrategy passes_;

public:
    using Precision = PrecisionType;

    Config() = default;
    explicit Config(const std::string &folder) : model_dir_(folder) {}
    Config(const std::string &program, const std::string &params)
        : prog_file_(program), params_file_(params) {}

    void SetModel(const std::string &folder) { model_dir_ = folder; }
    void SetModel(const std::string &program, const std::string &params) {
        prog_file_ = program;
        params_file_ = params;
    }
    void SetProgFile(const std::string &path) { prog_file_ = path; }
    void SetParamsFile(const std::string &path) { params_file_ = path; }
    const std::string &model_dir() const { return model_dir_; }
    const std::string &prog_file() const { return prog_file_; }
    const std::string &params_file() const { return params_file_; }

    void SetCpuMathLibraryNumThreads(int count) { threads_ = count; }
    int cpu_math_library_num_threads() const { return threads_; }
    void EnableMKLDNN() { mkldnn_ = true; }
    void DisableMKLDNN() { mkldnn_ = false; }
    bool mkldnn_enabled() const { return mkldnn_; }
    void SwitchIrOptim(int on = true) { ir_optim_ = on != 0; }
    bool ir_optim() const { return ir_optim_; }
    void EnableMemoryOptim(bool on = true) { memory_optim_ = on; }
    bool enable_memory_optim() const { return memory_optim_; }
    void DisableGlogInfo() { silent_ = true; }
    bool glog_info_disabled() const { return silent_; }
    bool use_gpu() const { return false; }
    bool is_valid() const { return true; }
    PassStrategy *pass_builder() { return &passes_; }

    HINT(DisableGpu) HINT(SwitchIrDebug) HINT(SwitchUseFeedFetchOps) HINT(SwitchSpecifyInputNames)
    HINT(SetMkldnnCacheCapacity) HINT(SetMKLDNNOp) HINT(SetOptimCacheDir) HINT(DisableFCPadding)
    HINT(EnableNewIR) HINT(EnableNewExecutor) HINT(SetOptimizationLevel) HINT(DeletePass)
    HINT(Exp_DisableMixedPrecisionOps) HINT(DisableONNXRuntime) HINT(PartiallyRelease)
    HINT(EnableCINN)

    REFUSED(EnableUseGpu, ON_PROCESSOR) REFUSED(EnableGpuMultiStream, ON_PROCESSOR)
    REFUSED(EnableXpu, ON_PROCESSOR) REFUSED(EnableCustomDevice, ON_PROCESSOR)
    REFUSED(EnableTensorRtEngine, ON_PROCESSOR) REFUSED(SetTRTDynamicShapeInfo, ON_PROCESSOR)
    REFUSED(EnableTunedTensorRtDynamicShape, ON_PROCESSOR)
    REFUSED(CollectShapeRangeInfo, ON_PROCESSOR)
    REFUSED(EnableMkldnnInt8, AS_EXPORTED) REFUSED(EnableMkldnnQuantizer, AS_EXPORTED)
    REFUSED(EnableMkldnnBfloat16, AS_EXPORTED)
    REFUSED(EnableONNXRuntime, ONNX) REFUSED(EnableORTOptimization, ONNX)
    REFUSED(EnableProfile, "an exported library measures nothing")
    REFUSED(SetModelBuffer, "a library is opened by its path; `export --embed` puts in the weights")

    std::string Summary() const {
        return "model: " + (model_dir_.empty() ? prog_file_ : model_dir_) +
               "\nweights: " + (params_file_.empty() ? "beside the library" : params_file_) +
               "\nruns on: the processor, one thread for each predictor\n";
    }
    exported::Libraries libraries() const {
        return exported::open(model_dir_.empty() ? prog_file_ : model_dir_, params_file_);
    }
};

#undef HINT
#undef REFUSED
#undef ON_PROCESSOR
#undef ONNX
#undef AS_EXPORTED

// An input or output of a predictor.
class Tensor {
    const std::shared_ptr<exported::Session> session;
    const exported::Side side;
    const size_t k;
    const std::string name_;

    friend class Predictor;
    Tensor(std::shared_ptr<exported::Session> of, exported::Side which, size_t index)
        : session(std::move(of)),
          side(which),
          k(index),
          name_(session->model().arrays[side][k].name) {}

    exported::Input &as_input(const char *call) const {
        if (side == exported::OUTPUT)
            exported::refuse(name_ + " is an output, and " + call + " for inputs");
        return session->inputs[k];
    }
    template <typename T> void check(const char *call) const {
        if (!exported::holds<T>(type()))
            exported::refuse(name_ + " is of " + exported::name_of(type()) + "; the elements of " +
                             call + " are of another type");
    }
    const void *values() const {
        const bool is_input = side == exported::INPUT;
        if (is_input ? !session->inputs[k].filled : !session->last)
            exported::refuse(name_ + " has no values: " +
                             (is_input ? "CopyFromCpu gives it some" : "call Run first"));
        return is_input ? session->inputs[k].data
                        : session->arena->at(session->last->model->arrays[side][k].at);
    }
    size_t bytes() const {
        return exported::count(shape()) * size_t(GetNumBytesOfDataType(type()));
    }

public:
    const std::string &name() const { return name_; }
    DataType type() const { return session->model().arrays[side][k].type; }
    PlaceType place() const { return PlaceType::kCPU; }

    std::vector<int> shape() const {
        if (side == exported::INPUT && !session->inputs[k].shaped)
            exported::refuse(name_ + " has no shape: call Reshape first");
        if (side == exported::INPUT) return session->inputs[k].shape;
        if (!session->last && session->libraries.size() > 1)
            exported::refuse(name_ + " has no shape: call Run first");
        return (session->last ? session->last : session->libraries[0].get())->shape(side, k);
    }

    // Give an input a shape, one that was exported.
    void Reshape(const std::vector<int> &shape) {
        exported::Input &x = as_input("Reshape is");
        const auto &all = session->libraries;
        auto wanted = session->shapes();
        wanted[k] = shape;
        const bool known = std::any_of(all.begin(), all.end(), [&](const auto &one) {
            return one->shape(exported::INPUT, k) == shape;
        });
        if (!known) session->refuse_shapes(wanted);
        x.filled = x.filled && x.shape == shape;
        x.shape = shape;
        x.shaped = true;
    }

    // Where to write an input.
    template <typename T> T *mutable_data(PlaceType = PlaceType::kCPU) {
        exported::Input &x = as_input("mutable_data is");
        check<T>("mutable_data");
        x.own.resize(bytes());
        x.data = x.own.data();
        x.filled = true;
        return reinterpret_cast<T *>(x.own.data());
    }
    template <typename T> void CopyFromCpu(const T *data) {
        as_input("CopyFromCpu is");
        check<T>("CopyFromCpu");
        std::memcpy(mutable_data<T>(), data, bytes());
    }
    template <typename T> void CopyToCpu(T *data) const {
        check<T>("CopyToCpu");
        std::memcpy(data, values(), bytes());
    }
    template <typename T> void CopyToCpuAsync(T *data, void *) const { CopyToCpu(data); }
    template <typename T> void CopyToCpuAsync(T *data, CallbackFunc done, void *argument) const {
        CopyToCpu(data);
        done(argument);
    }
    // The address of the values, until the next Run, and the number of elements.
    template <typename T> T *data(PlaceType *place, int *size) const {
        check<T>("data");
        *place = PlaceType::kCPU;
        *size = int(exported::count(shape()));
        return static_cast<T *>(const_cast<void *>(values()));
    }
    // Let runs read an input where it lies, or copy an output there.
    template <typename T>
    void ShareExternalData(const T *data, const std::vector<int> &shape,
                           PlaceType = PlaceType::kCPU, DataLayout = DataLayout::kNCHW) {
        check<T>("ShareExternalData");
        if (side == exported::OUTPUT) {
            session->copies[k] = {const_cast<T *>(data), shape};
            return;
        }
        Reshape(shape);
        session->inputs[k].data = data;
        session->inputs[k].filled = true;
    }
    void SetLoD(const std::vector<std::vector<size_t>> &levels) {
        if (!levels.empty()) exported::refuse("SetLoD: pad rows to one length instead");
    }
    std::vector<std::vector<size_t>> lod() const { return {}; }
};

class Predictor {
    std::shared_ptr<exported::Session> session;

    explicit Predictor(const exported::Libraries &libraries)
        : session(std::make_shared<exported::Session>(libraries)) {}

    std::vector<std::string> names(exported::Side side) const {
        std::vector<std::string> all;
        for (size_t k = 0; k < session->model().counts[side]; k++)
            all.push_back(session->model().arrays[side][k].name);
        return all;
    }
    std::unique_ptr<Tensor> handle(exported::Side side, const std::string &name) const {
        std::string known;
        size_t k = 0;
        for (const std::string &one : names(side)) {
            if (one == name) return std::unique_ptr<Tensor>(new Tensor(session, side, k));
            known += (k++ ? ", " : "") + one;
        }
        exported::refuse("there is no array " + name + "; there are " + known);
    }
    std::map<std::string, std::vector<int64_t>> shapes(exported::Side side) const {
        std::map<std::string, std::vector<int64_t>> all;
        size_t k = 0;
        for (const std::string &name : names(side)) {
            const auto first = session->libraries[0]->shape(side, k);
            std::vector<int64_t> &sizes = all[name] = {first.begin(), first.end()};
            for (const auto &one : session->libraries)
                for (size_t axis = 0; axis < sizes.size(); axis++)
                    if (one->shape(side, k)[axis] != first[axis]) sizes[axis] = -1;
            k++;
        }
        return all;
    }
    std::map<std::string, DataType> types(exported::Side side) const {
        std::map<std::string, DataType> all;
        for (size_t k = 0; k < session->model().counts[side]; k++)
            all[session->model().arrays[side][k].name] = session->model().arrays[side][k].type;
        return all;
    }

public:
    explicit Predictor(const Config &config) : Predictor(config.libraries()) {}

    std::vector<std::string> GetInputNames() const { return names(exported::INPUT); }
    std::vector<std::string> GetOutputNames() const { return names(exported::OUTPUT); }
    std::unique_ptr<Tensor> GetInputHandle(const std::string &name) {
        return handle(exported::INPUT, name);
    }
    std::unique_ptr<Tensor> GetOutputHandle(const std::string &name) {
        return handle(exported::OUTPUT, name);
    }
    // By name; -1 where the libraries differ.
    std::map<std::string, std::vector<int64_t>> GetInputTensorShape() const {
        return shapes(exported::INPUT);
    }
    std::map<std::string, std::vector<int64_t>> GetOutputTensorShape() const {
        return shapes(exported::OUTPUT);
    }
    std::map<std::string, DataType> GetInputTypes() const { return types(exported::INPUT); }
    std::map<std::string, DataType> GetOutputTypes() const { return types(exported::OUTPUT); }

    bool Run() {
        session->run();
        return true;
    }
    // Another predictor of the same weights, with states as in the file; any thread may call it.
    std::unique_ptr<Predictor> Clone(void * = nullptr) const {
        return std::unique_ptr<Predictor>(new Predictor(session->libraries));
    }
    void ClearIntermediateTensor() {}  // they lie in the arena, planned
    // Free the arenas, and so the outputs; the next Run makes what it needs. Returns the bytes. A
    // model whose states change with each run keeps its arena.
    uint64_t TryShrinkMemory() {
        uint64_t bytes = 0;
        if (session->model().changes) return bytes;
        for (auto &arena : session->arenas) {
            const size_t k = size_t(&arena - session->arenas.data());
            if (arena) bytes += session->libraries[k]->model->arena_size;
            arena.reset();
        }
        session->last = nullptr;
        return bytes;
    }
    void ShrinkMemory() { TryShrinkMemory(); }
};

inline std::shared_ptr<Predictor> CreatePredictor(const Config &config) {
    return std::make_shared<Predictor>(config);
}

namespace services {

// A predictor for each of some threads.
class PredictorPool {
    std::vector<std::unique_ptr<Predictor>> all;

public:
    explicit PredictorPool(const Config &config, size_t size = 1) {
        all.push_back(std::make_unique<Predictor>(config));
        while (all.size() < size) all.push_back(all[0]->Clone());
    }
    Predictor *Retrive(size_t k) {
        if (k >= all.size())
            exported::refuse("a pool of " + std::to_string(all.size()) + " has no predictor " +
                             std::to_string(k));
        return all[k].get();
    }
};

}  // namespace services
}  // namespace paddle_infer
#endif
