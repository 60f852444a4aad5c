// SPDX-License-Identifier: MIT
// The C++ side of benchmarks/python_ops.py, which builds it, loads it by ctypes and times small
// eager calls in both languages by turns: what a call costs the host, results dropped, the device's
// work not waited for.
#include <dlprim/dlprim.hpp>

#include <string>
#include <vector>

#include <time.h>

namespace {

double now_us(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

class Calls {
  public:
    explicit Calls(const char* device) : context_(device) {
        for (dp::Tensor* tensor : {&a_, &b_, &image_, &weight_, &bias_}) tensor->fill(0.5);
    }

    /// Microseconds a call.
    double time(const std::string& name, int count, clockid_t clock) {
        const double begin = now_us(clock);
        for (int i = 0; i < count; ++i) call(name);
        const double us = now_us(clock) - begin;
        context_.finish();
        return us / count;
    }

  private:
    void call(const std::string& name) {
        if (name == "relu")
            dp::ops::relu(a_);
        else if (name == "add")
            dp::ops::add(a_, b_);
        else if (name == "conv2d")
            dp::ops::call("Convolution2D", convolution_, {image_}, {weight_, bias_});
        else if (name == "conv2d gradient")
            dp::ops::backward("Convolution2D", convolution_, {image_}, {weight_, bias_}, {result_});
        else
            dp::ops::pointwise("y0 = x0 * p0 + x1", {a_, b_}, {0.5});
    }

    const char* const convolution_ =
        R"({"channels_out": 4, "kernel": [3, 3], "stride": 2, "pad": 1})";
    dp::Context context_;
    dp::Tensor a_{context_, dp::Shape{256}}, b_{context_, dp::Shape{256}};
    dp::Tensor image_{context_, dp::Shape{1, 3, 8, 8}}, weight_{context_, dp::Shape{4, 3, 3, 3}},
        bias_{context_, dp::Shape{4}};
    dp::Tensor result_ =
        dp::ops::call("Convolution2D", convolution_, {image_}, {weight_, bias_}).at(0);
};

}  // namespace

extern "C" double time_calls(const char* device, const char* name, int count, int clock) {
    static auto* const calls = new Calls(device);  // never destroyed: drivers may be gone by then
    return calls->time(name, count, static_cast<clockid_t>(clock));
}
