/* C++ with exceptions around MPI: exceptions [ROUNDS|FILE], or until rank 0 finds FILE. Messages
 * are exchanged while an exception is handled, kept, thrown again, and by destructors while one
 * unwinds; and objects of threads, of the heap and static ones. */
#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace
{

int rank, ranks, unwound;
thread_local std::map<int, std::string> notes{{-1, "from the beginning"}};

[[noreturn]] void bad(const std::string &what, int round)
{
    std::cerr << "FAIL rank " << rank << ", round " << round << ": " << what << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 99);
    std::terminate();
}

/* Around the ring: what the left neighbour has. */
std::vector<int> exchange(const std::vector<int> &mine)
{
    std::vector<int> theirs(mine.size());
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    MPI_Sendrecv(mine.data(), static_cast<int>(mine.size()), MPI_INT, right, 0, theirs.data(),
                 static_cast<int>(theirs.size()), MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return theirs;
}

struct failure : std::runtime_error {
    failure(const std::string &what, std::vector<int> words)
        : std::runtime_error(what), data(std::move(words))
    {
    }
    std::vector<int> data;
};

/* Its end is a message, also while an exception goes past. */
struct guard {
    explicit guard(int now) : round(now)
    {
    }
    ~guard()
    {
        int sum = 0, one = 1;

        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != ranks || std::uncaught_exceptions() != 1)
            bad("a destructor while an exception unwinds", round);
        unwound++;
    }
    int round;
};

void descend(int depth, int round)
{
    std::vector<int> words(static_cast<std::size_t>(1 + round % 500));

    if (depth > 0) {
        guard last(round);
        descend(depth - 1, round);
        return;
    }
    std::iota(words.begin(), words.end(), rank + round);
    throw failure("round " + std::to_string(round), exchange(words));
}

void check(const failure &caught, int round)
{
    int left = (rank + ranks - 1) % ranks;

    if (caught.what() != "round " + std::to_string(round))
        bad(std::string("another exception: ") + caught.what(), round);
    for (std::size_t i = 0; i < caught.data.size(); i++)
        if (caught.data[i] != left + round + static_cast<int>(i))
            bad("an exception with other data", round);
}

/* Keeps it while it is handled, and throws it again when messages have gone. */
void keep_and_rethrow(int round)
{
    std::exception_ptr kept;

    try {
        descend(3, round);
    } catch (...) {
        kept = std::current_exception();
        exchange({round});
    }
    exchange({round});
    try {
        std::rethrow_exception(kept);
    } catch (const failure &again) {
        exchange({round});
        check(again, round);
    }
}

void one_round(int round)
{
    notes[round % 100] = "of round " + std::to_string(round);
    keep_and_rethrow(round);
    if (notes.at(-1) != "from the beginning" ||
        notes.at(round % 100) != "of round " + std::to_string(round))
        bad("an object of the thread has changed", round);
}

/* All ranks alike. */
bool is_over(const std::string &until, int round)
{
    int over = rank == 0 && access(until.c_str(), F_OK) == 0;

    if (until[0] != '/')
        return round == std::stoi(until);
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return over != 0;
}

} // namespace

int main(int argc, char **argv)
{
    std::string until = argc > 1 ? argv[1] : "300";
    int rounds = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (!is_over(until, rounds))
        one_round(rounds++);
    if (unwound != 3 * rounds)
        bad("destructors that did not run", rounds);
    if (rank == 0)
        std::cout << "ok exceptions" << std::endl;
    MPI_Finalize();
}
