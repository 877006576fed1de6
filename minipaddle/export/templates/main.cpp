// The same from C++: an object that owns an instance.
//
//     ./example_cpp             inputs of 0; prints the first number of each output
#include <cstdio>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>

#include "$name.h"

class Model {
    struct Aligned {
        void operator()(char *p) const { ::operator delete(p, std::align_val_t{${NAME}_ALIGNMENT}); }
    };
    using Memory = std::unique_ptr<char, Aligned>;
    static Memory memory(size_t size) {
        return Memory(static_cast<char *>(::operator new(size, std::align_val_t{${NAME}_ALIGNMENT})));
    }
    static void check(int error) {
        if (error) throw std::runtime_error(${name}_error(error));
    }
    Memory arena = memory(${NAME}_ARENA_SIZE)$weights_member;

public:
    Model() {
$weights_cpp        check(${name}_init(arena.get(), ${NAME}_ARENA_SIZE, $weights_get, ${NAME}_WEIGHTS_SIZE));
    }
    void run() { check(${name}_run(arena.get())); }
$members};

int main() {
    try {
        Model model;
        model.run();
$first_numbers    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
