// An image while exceptions are in flight, in a destructor, with containers around.
#include "tests/image/taker.h"

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static int restored = -1;

struct Taker {
    ~Taker()
    {
        restored = taker_take();
        try {
            throw std::out_of_range("inner");
        } catch (const std::logic_error &e) {
            text = e.what();
        }
    }
    std::string &text;
};

int main()
{
    std::map<std::string, std::vector<double>> map;
    std::string inner, outer;

    for (int i = 0; i < 1000; i++)
        map["key " + std::to_string(i)].assign(100, i);
    auto function = [&map](int i) { return map["key " + std::to_string(i)][99]; };
    std::shared_ptr<int> pointer(new int(5));
    try {
        Taker taker{inner};
        throw std::runtime_error("outer");
    } catch (const std::exception &e) {
        outer = e.what();
    }
    if (inner != "inner" || outer != "outer" || function(777) != 777 || *pointer != 5) {
        std::printf("wrong: %s %s\n", inner.c_str(), outer.c_str());
        return 1;
    }
    std::printf("%s\n", restored ? "restored" : "went on");
    return 0;
}
