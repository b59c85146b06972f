// Memory aligned to pages that grows and never shrinks; contents are lost when it grows.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace {

template <class T>
class Buffer {
  public:
    T* reserve(int64_t count) {
        if (count > size_) {
            const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 4095) / 4096 * 4096;
            data_.reset(static_cast<T*>(std::aligned_alloc(4096, bytes)));
            size_ = 0;
            if (!data_) throw std::bad_alloc();
            std::memset(static_cast<void*>(data_.get()), 0, bytes);
            size_ = count;
        }
        return data_.get();
    }
    T* get() const { return data_.get(); }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
    int64_t size_ = 0;
};

}  // namespace
