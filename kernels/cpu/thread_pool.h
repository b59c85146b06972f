// The threads of one engine. All run the same function; barriers and counters inside it split the work, so a whole
// step costs one wake-up. A thread that waits spins for 50 us and then sleeps, so an idle engine costs nothing.
//
// At a barrier it offers its core to others for 2 ms before it sleeps: to wake takes longer than most operations (130 us
// were seen in a virtual machine), so that the others would sleep at the next barrier for want of the one that wakes, and
// so on by turns. Nor does it pause while it spins: a hypervisor may take the core of one that does.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

class ThreadPool {
  public:
    explicit ThreadPool(int size) : size_(size < 1 ? 1 : size) {
        for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { work(i); });
    }

    ~ThreadPool() {
        stopping_ = true;
        advance(epoch_);
        for (auto& thread : threads_) thread.join();
    }

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return size_; }

    // Ends the sleep of threads that wait for work; they look out for it 50 us more.
    void wake() {
        if (sleepers_.load() == 0) return;
        alarms_.fetch_add(1);
        const std::lock_guard<std::mutex> lock(mutex_);
        wake_.notify_all();
    }

    // Runs function(thread index) on all threads, the caller being thread 0; returns when all have.
    void run(const std::function<void(int)>& function) {
        function_ = &function;
        advance(epoch_);
        call(0);
        barrier();
    }

    // Waits until all threads are here; what they wrote before is visible after.
    void barrier() {
        if (size_ == 1) return;
        const uint32_t phase = phase_.load();
        if (arrived_.fetch_add(1) + 1 == size_) {
            arrived_.store(0);
            advance(phase_);
        } else {
            wait_while(phase_, phase, std::chrono::milliseconds(2));
        }
    }

  private:
    void work(int index) {
        uint32_t seen = 0;
        while (true) {
            wait_while(epoch_, seen);
            ++seen;
            if (stopping_) return;
            call(index);
            barrier();
        }
    }

    void call(int index) {
        const FloatMode mode;
        (*function_)(index);
    }

    void advance(std::atomic<uint32_t>& counter) {
        counter.fetch_add(1);
        if (sleepers_.load() > 0) {
            const std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
    }

    void wait_while(const std::atomic<uint32_t>& counter, uint32_t value, std::chrono::microseconds offering = {}) {
        using Clock = std::chrono::steady_clock;
        while (true) {
            const auto start = Clock::now();
            while (Clock::now() - start < std::chrono::microseconds(50))
                for (int i = 0; i < 64; ++i)
                    if (counter.load() != value) return;
            while (Clock::now() - start < offering) {
                std::this_thread::yield();
                if (counter.load() != value) return;
            }
            std::unique_lock<std::mutex> lock(mutex_);
            const uint32_t alarms = alarms_.load();
            sleepers_.fetch_add(1);
            wake_.wait(lock, [&] { return counter.load() != value || alarms_.load() != alarms; });
            sleepers_.fetch_sub(1);
        }
    }

    const int size_;
    std::vector<std::thread> threads_;
    const std::function<void(int)>* function_ = nullptr;
    std::atomic<bool> stopping_{false};
    alignas(64) std::atomic<uint32_t> epoch_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
    std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> alarms_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
};

}  // namespace
