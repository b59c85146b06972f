// How the threads of an engine divide an operation: each has a run of units of its own, in order, so that memory is read
// in long streams; one that is done takes over what others have left. Operations are numbered from 0 in each call.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "thread_pool.h"

namespace {

class Workers {
  public:
    Workers(int num_threads, int64_t num_operations)
        : pool_(num_threads), counters_(static_cast<size_t>(num_operations * pool_.size())) {}

    int size() const { return pool_.size(); }
    void wake() { pool_.wake(); }
    void barrier() { pool_.barrier(); }

    // Runs work(thread) on all threads with every operation's units undone.
    template <class Work>
    void run(Work work) {
        for (auto& counter : counters_) counter.taken.store(0, std::memory_order_relaxed);
        pool_.run(work);
    }

    // Calls work(first, last) for runs of up to `grain` units until none are left; every thread calls it.
    template <class Work>
    void share(int thread, int64_t operation, int64_t total, int64_t grain, Work work) {
        for (int i = 0; i < size(); ++i) {
            const int owner = (thread + i) % size();
            const int64_t begin = total * owner / size(), end = total * (owner + 1) / size();
            auto& taken = counters_[static_cast<size_t>(operation * size() + owner)].taken;
            while (true) {
                const int64_t first = begin + taken.fetch_add(grain);
                if (first >= end) break;
                work(first, std::min(first + grain, end));
            }
        }
    }

    // Calls work(i) for this thread's part of `total`.
    template <class Work>
    void split(int thread, int64_t total, Work work) const {
        for (int64_t i = total * thread / size(); i < total * (thread + 1) / size(); ++i) work(i);
    }

  private:
    struct alignas(64) Counter {
        std::atomic<int64_t> taken{0};
    };
    ThreadPool pool_;
    std::vector<Counter> counters_;
};

}  // namespace
