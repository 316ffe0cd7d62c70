// SPDX-License-Identifier: Apache-2.0
// CPU nanoseconds per decode and encode of the bodies that `bench overhead` sends, single thread, and of a
// large JSON body. Median of five rounds each; the last line is one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "codec/elements.h"
#include "codec/v2/v2.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace {

using namespace tonnage;
using tensor::DataType;

model::ModelSpec echo_spec(std::int64_t columns) {
  return testkit::model_spec("echo", {testkit::tensor_spec("x", DataType::kFp32, {-1, columns})},
                             {testkit::tensor_spec("y", DataType::kFp32, {-1, columns})});
}

std::vector<float> sample(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.125F + static_cast<float>(i) * 1.37F;
  return values;
}

std::string json_request(std::size_t count) {
  std::string data;
  const std::vector<float> values = sample(count);
  codec::append_flat(data, DataType::kFp32, std::as_bytes(std::span(values)));
  return fmt::format(
      R"({{"id":"r-000001","inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","data":[{}]}}]}})", count,
      data);
}

template <typename Fn>
double nanoseconds(int times, Fn fn) {
  std::array<double, 5> rounds{};
  for (double& round : rounds) {
    const std::clock_t begin = std::clock();  // CPU time: neighbours on the machine count less
    for (int i = 0; i < times; ++i) fn();
    round = static_cast<double>(std::clock() - begin) * 1e9 / CLOCKS_PER_SEC / times;
  }
  std::ranges::sort(rounds);
  return rounds[2];
}

struct Figure {
  std::string name;
  double value;
};
std::vector<Figure> figures;

void print(const std::string& name, std::size_t bytes, double ns) {
  fmt::print("{:<24} {:>9} bytes {:>12.0f} ns\n", name, bytes, ns);
  figures.push_back({name, ns});
}

void bench_json(const std::string& name, std::size_t columns, int times) {
  const model::ModelSpec spec = echo_spec(static_cast<std::int64_t>(columns));
  std::string body = json_request(columns);
  const request::Request request;
  request::Answer answer;
  answer.outputs.push_back(
      testkit::output_tensor("y", DataType::kFp32, {1, static_cast<std::int64_t>(columns)}, sample(columns)));
  print(name + "_decode", body.size(),
        nanoseconds(times, [&] { (void)codec::v2::decode_infer(spec, body, std::nullopt).value(); }));
  std::size_t size = 0;
  const double ns = nanoseconds(
      times, [&] { size = codec::v2::encode_infer(spec, request, answer, {}).value().body.size(); });
  print(name + "_encode", size, ns);
}

void bench_binary(const std::string& name, std::size_t columns, int times) {
  const model::ModelSpec spec = echo_spec(static_cast<std::int64_t>(columns));
  const std::vector<float> values = sample(columns);
  const std::string json =
      fmt::format(R"({{"inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","parameters":)"
                  R"({{"binary_data_size":{}}}}}],"parameters":{{"binary_data_output":true}}}})",
                  columns, columns * sizeof(float));
  std::string body = json + std::string(as_text(std::as_bytes(std::span(values))));
  request::Answer answer;
  answer.outputs.push_back(
      testkit::output_tensor("y", DataType::kFp32, {1, static_cast<std::int64_t>(columns)}, values));
  codec::ReplyFormat format;
  format.binary_by_default = true;
  print(name + "_decode", body.size(),
        nanoseconds(times, [&] { (void)codec::v2::decode_infer(spec, body, json.size()).value(); }));
  std::size_t size = 0;
  const double ns = nanoseconds(
      times, [&] { size = codec::v2::encode_infer(spec, {}, answer, format).value().body.size(); });
  print(name + "_encode", size, ns);
}

}  // namespace

int main() {
  bench_json("json_343", 36, 20'000);
  bench_binary("binary_4k", 1024, 50'000);
  bench_json("json_1m", 130'000, 5);
  std::string last = R"({"name":"codec")";
  for (const Figure& figure : figures) last += fmt::format(R"(,"{}_ns":{:.0f})", figure.name, figure.value);
  fmt::print("{}}}\n", last);
}
