// What test_cpp.py runs: each command does one thing with a model and prints what it sees.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <thread>

#include "paddle_inference_api.h"

using namespace paddle_infer;
using Words = std::vector<std::string>;

std::vector<int> numbers(const std::string &text) {
    std::vector<int> all;
    std::istringstream stream(text);
    for (std::string one; std::getline(stream, one, ',');) all.push_back(std::stoi(one));
    return all;
}

Config config(const Words &words) {  // MODEL, or PROGRAM and PARAMS ("-": only the former)
    Config one;
    if (words.at(1) == "-") one.SetModel(words.at(0));
    else one.SetModel(words.at(0), words.at(1));
    return one;
}

size_t count(const std::vector<int> &shape) {
    size_t n = 1;
    for (int size : shape) n *= size_t(size);
    return n;
}

template <typename T> void fill(Tensor &x, int scale) {  // ..., 3, 4, -2, -1, ... times the scale
    std::vector<T> values(count(x.shape()));
    for (size_t k = 0; k < values.size(); k++) values[k] = T((int(k % 7) - 2) * scale);
    x.CopyFromCpu(values.data());
}

void fill(Tensor &x, int scale = 1) {
    if (x.type() == FLOAT32) fill<float>(x, scale);
    else if (x.type() == INT64) fill<int64_t>(x, scale);
    else fill<int8_t>(x, scale);
}

template <typename T> void print(const Tensor &y) {
    PlaceType place;
    int size;
    const T *const values = y.data<T>(&place, &size);
    std::vector<T> copy(static_cast<size_t>(size));
    y.CopyToCpu(copy.data());
    for (int k = 0; k < size; k++) {
        if (values[k] != copy[size_t(k)]) throw std::logic_error("data and CopyToCpu differ");
        std::printf(" %.9g", double(values[k]));
    }
    std::printf("\n");
}

void print(Predictor &predictor) {
    for (const std::string &name : predictor.GetOutputNames()) {
        const auto y = predictor.GetOutputHandle(name);
        std::printf("%s", name.c_str());
        if (y->type() == FLOAT32) print<float>(*y);
        else if (y->type() == FLOAT64) print<double>(*y);
        else if (y->type() == INT64) print<int64_t>(*y);
        else print<uint8_t>(*y);
    }
}

void print_shapes(const char *what, const std::map<std::string, std::vector<int64_t>> &shapes) {
    for (const auto &one : shapes) {
        std::printf("%s %s:", what, one.first.c_str());
        for (int64_t size : one.second) std::printf(" %d", int(size));
        std::printf("\n");
    }
}

void describe(const Words &words) {
    auto predictor = CreatePredictor(config(words));
    print_shapes("input", predictor->GetInputTensorShape());
    print_shapes("output", predictor->GetOutputTensorShape());
    for (const auto &one : predictor->GetInputTypes())
        std::printf("type %s: %d, of %d\n", one.first.c_str(), int(one.second),
                    GetNumBytesOfDataType(one.second));
    std::cout << config(words).Summary();
}

void run(const Words &words) {  // after the model, the shapes of all inputs, for each run
    auto predictor = CreatePredictor(config(words));
    for (size_t k = 2; k < words.size();) {
        for (const std::string &name : predictor->GetInputNames()) {
            const auto x = predictor->GetInputHandle(name);
            x->Reshape(numbers(words.at(k++)));
            fill(*x);
        }
        if (!predictor->Run()) throw std::logic_error("Run is false");
        print(*predictor);
    }
}

void times(const Words &words) {  // a run, another, a shrink, a third, a clone
    auto predictor = CreatePredictor(config(words));
    const auto y = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
    fill(*predictor->GetInputHandle(predictor->GetInputNames()[0]));
    for (int k = 0; k < 3; k++) {
        predictor->Run();
        print(*predictor);
        predictor->ClearIntermediateTensor();
        if (k == 1) std::printf("freed %d\n", predictor->TryShrinkMemory() > 0);
    }
    const auto clone = predictor->Clone();
    fill(*clone->GetInputHandle(clone->GetInputNames()[0]));
    clone->Run();
    print(*clone);
}

void threads(const Words &words) {  // two clones at once: each computes for its own input
    auto predictor = CreatePredictor(config(words));
    std::vector<std::unique_ptr<Predictor>> clones(2);
    std::vector<std::thread> all;
    for (int id = 0; id < 2; id++)
        all.emplace_back([&, id] {
            clones[size_t(id)] = predictor->Clone();
            Predictor &own = *clones[size_t(id)];
            const auto x = own.GetInputHandle(own.GetInputNames()[0]);
            const auto y = own.GetOutputHandle(own.GetOutputNames()[0]);
            std::vector<float> first, values;
            for (int k = 0; k < 30; k++) {
                fill(*x, id + 1);
                own.Run();
                values.resize(count(y->shape()));
                y->CopyToCpu(values.data());
                if (k == 0) first = values;
                if (values != first) std::printf("another thread's numbers\n");
            }
        });
    for (std::thread &one : all) one.join();
    predictor.reset();
    for (const auto &clone : clones) print(*clone);
}

void share(const Words &words) {  // the user's memory for the input and for the output
    services::PredictorPool pool(config(words), 2);
    Predictor &predictor = *pool.Retrive(1);
    std::vector<float> in(count(numbers(words.at(2))), 1.0f), out(count(numbers(words.at(3))), -1.0f);
    predictor.GetInputHandle("input")->ShareExternalData(in.data(), numbers(words.at(2)));
    predictor.GetOutputHandle("output_0")->ShareExternalData(out.data(), numbers(words.at(3)));
    for (float scale : {1.0f, 2.0f}) {
        std::fill(in.begin(), in.end(), scale);
        predictor.Run();
        for (float y : out) std::printf(" %.9g", double(y));
        std::printf("\n");
    }
}

template <typename F> void attempt(const char *what, F mistake) {
    try {
        mistake();
        std::printf("%s: no error\n", what);
    } catch (const std::runtime_error &error) {
        std::printf("%s: %s\n", what, error.what());
    }
}

void mistakes(const Words &words) {
    Config one = config(words);
    Predictor predictor(one);
    const auto x = predictor.GetInputHandle("input"), y = predictor.GetOutputHandle("output_0");
    float value[1000] = {};
    attempt("not run", [&] { y->CopyToCpu(value); });
    attempt("not filled", [&] { predictor.Run(); });
    attempt("not shaped", [&] { x->CopyFromCpu(value); });
    attempt("shape", [&] { x->Reshape({2, 1, 8, 8}); });
    x->Reshape({1, 1, 8, 8});
    attempt("not read", [&] { x->CopyToCpu(value); });
    attempt("double", [&] { x->CopyFromCpu(std::vector<double>(64).data()); });
    attempt("integer", [&] { x->CopyFromCpu(std::vector<int>(64).data()); });
    attempt("output's shape", [&] { y->Reshape({1, 10}); });
    attempt("output's values", [&] { y->CopyFromCpu(value); });
    attempt("name", [&] { predictor.GetInputHandle("y"); });
    attempt("lod", [&] { x->SetLoD({{0, 1}}); });
    attempt("pool", [&] { services::PredictorPool(one, 2).Retrive(2); });
    attempt("gpu", [&] { one.EnableUseGpu(100, 0); });
    attempt("tensorrt", [&] { one.EnableTensorRtEngine(1 << 20, 1, 3, PrecisionType::kHalf); });
    attempt("int8", [&] { one.EnableMkldnnInt8(); });
    fill(*x);
    predictor.Run();
    attempt("run", [&] { y->CopyToCpu(value); });
    attempt("int64", [&] { y->CopyToCpu(std::vector<int64_t>(10).data()); });
    x->Reshape({3, 1, 8, 8});
    attempt("old values", [&] { predictor.Run(); });
    y->ShareExternalData(value, {1, 10});
    fill(*x);
    attempt("shared", [&] { predictor.Run(); });
    predictor.TryShrinkMemory();
    attempt("shrunk", [&] { y->CopyToCpu(value); });
    attempt("no model", [] { CreatePredictor(Config()); });
}

void accept(const Words &words) {  // every option that changes no number
    Config one = config(words);
    one.DisableGpu();
    one.EnableMKLDNN();
    one.SetMkldnnCacheCapacity(10);
    one.DisableMKLDNN();
    one.SetCpuMathLibraryNumThreads(4);
    one.SwitchUseFeedFetchOps(false);
    one.SwitchSpecifyInputNames(true);
    one.SwitchIrOptim(false);
    one.EnableMemoryOptim();
    one.DisableGlogInfo();
    one.pass_builder()->DeletePass("a_pass");
    one.EnableNewIR(true);
    const bool kept = one.cpu_math_library_num_threads() == 4 && !one.mkldnn_enabled() &&
                      !one.ir_optim() && one.enable_memory_optim() && one.glog_info_disabled();
    std::printf("%d %d %zu\n", kept, one.use_gpu(), CreatePredictor(one)->GetInputNames().size());
}

int main(int argc, char **argv) {
    const std::map<std::string, void (*)(const Words &)> commands = {
        {"describe", describe}, {"run", run},     {"times", times},      {"threads", threads},
        {"share", share},       {"accept", accept}, {"mistakes", mistakes}};
    const Words words(argv + 1, argv + argc);
    try {
        commands.at(words.at(0))(Words(words.begin() + 1, words.end()));
    } catch (const std::runtime_error &error) {
        std::printf("error: %s\n", error.what());
        return 1;
    }
    return 0;
}
