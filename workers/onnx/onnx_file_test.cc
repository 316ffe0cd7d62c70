// SPDX-License-Identifier: Apache-2.0
#include "onnx/onnx_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "onnx/protobuf_fields.h"

namespace tonnage::onnx_worker {
namespace {

namespace fs = std::filesystem;

const std::string kModels = TONNAGE_ONNX_TEST_MODELS;

std::string contents(const std::string& name) {
  std::ifstream in(kModels + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}
std::string why(const Result<OnnxFile>& result) {
  return result.is_ok() ? "accepted" : std::string(result.status().reason());
}

class OnnxFileFolder : public testing::Test {
 protected:
  OnnxFileFolder()
      : folder_(fs::temp_directory_path() / ("tonnage-onnx-file-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "model");
  }
  ~OnnxFileFolder() override { fs::remove_all(folder_); }
  std::string copy(const std::string& name) {
    write(folder_ / "model" / "model.onnx", contents(name));
    return folder_ / "model" / "model.onnx";
  }
  fs::path folder_;
};

TEST(OnnxFile, TellsTheOperatorSetsThatItAsksFor) {
  const auto file = read_onnx(as_bytes(contents("unknown_operator.onnx")));
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  EXPECT_EQ(18U, file->opsets.at(""));
  EXPECT_EQ(1U, file->opsets.at("com.example"));
  EXPECT_TRUE(file->external.empty());
}

TEST(OnnxFile, KnowsAFileThatWasCutOffAtAnyByte) {
  const std::string whole = contents("scores.onnx");
  ASSERT_TRUE(read_onnx(as_bytes(whole)).is_ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = read_onnx(as_bytes(std::string_view(whole).substr(0, size)));
    // Behind the graph comes what a file may lack.
    EXPECT_TRUE(size >= 4200 || why(cut) == "bad_model_file") << size;
  }
  const auto half = read_onnx(as_bytes(std::string_view(whole).substr(0, whole.size() / 2)));
  EXPECT_NE(std::string::npos, half.status().detail().find("cut off")) << half.status().detail();
}

TEST(OnnxFile, SurvivesEveryFlippedByte) {
  const std::string whole = contents("weights_outside.onnx");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    (void)why(read_onnx(as_bytes(changed)));
  }
}

TEST(OnnxFile, CallsAnotherKindOfFileNoModel) {
  for (const std::string text : {"not a model at all", "PK\x03\x04 an archive", "{}", "\x08"}) {
    const auto file = read_onnx(as_bytes(text));
    EXPECT_EQ("bad_model_file", why(file)) << text;
    EXPECT_NE(std::string::npos, file.status().detail().find("no ONNX model")) << file.status().detail();
  }
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>(value | 0x80U);
  return bytes + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) { return varint(field << 3U) + varint(value); }
std::string block(unsigned field, const std::string& content) {
  return varint((field << 3U) | 2U) + varint(content.size()) + content;
}
// A model around a GraphProto.
std::string model_of(const std::string& graph) { return number(1, 8) + block(7, graph); }
// A TensorProto whose data lies in a file.
std::string stored_in(const std::string& location) {
  return block(8, "w") + number(14, 1) + block(13, block(1, "location") + block(2, location));
}

TEST(OnnxFile, FindsExternalWeightsWhereverATensorMayBe) {
  const std::string w = stored_in("w.bin");
  const auto node = [](const std::string& attribute) { return block(1, block(5, attribute)); };
  const std::pair<const char*, std::string> cases[] = {
      {"an initializer", model_of(block(5, w))},
      {"a sparse initializer's values", model_of(block(15, block(1, w)))},
      {"a sparse initializer's indices", model_of(block(15, block(2, w)))},
      {"a constant", model_of(node(block(5, w)))},
      {"one of a list", model_of(node(block(10, w)))},
      {"a sparse constant", model_of(node(block(22, block(1, w))))},
      {"a branch", model_of(node(block(6, block(5, w))))},
      {"one of several branches", model_of(node(block(11, block(5, w))))},
      {"a loop in a branch", model_of(node(block(6, node(block(6, block(5, w))))))},
      {"a function", model_of("") + block(25, block(7, block(5, block(5, w))))},
      {"a function's default", model_of("") + block(25, block(11, block(5, w)))}};
  for (const auto& [where, model] : cases) {
    const auto file = read_onnx(as_bytes(model));
    ASSERT_TRUE(file.is_ok()) << where << ": " << file.status().to_string();
    ASSERT_EQ(1U, file->external.size()) << where;
    EXPECT_EQ("w.bin", file->external[0].location) << where;
  }
}

TEST(OnnxFile, RefusesAGraphThatItCannotWalkToItsEnd) {
  const std::string group = varint((9U << 3U) | 3U) + varint((9U << 3U) | 4U);  // which others would skip
  EXPECT_EQ("bad_model_file", why(read_onnx(as_bytes(model_of(group + block(5, stored_in("w.bin")))))));
  EXPECT_EQ("bad_model_file", why(read_onnx(as_bytes(model_of(block(5, group + stored_in("w.bin")))))));
  std::string deep = block(5, stored_in("w.bin"));
  for (int i = 0; i < 60; ++i) deep = block(1, block(5, block(6, deep)));
  const auto file = read_onnx(as_bytes(model_of(deep)));
  EXPECT_EQ("bad_model_file", why(file));
  EXPECT_NE(std::string::npos, file.status().detail().find("too deep")) << file.status().detail();
}

TEST_F(OnnxFileFolder, ReadsNoWeightsOfABranchFromOutsideTheFolder) {
  write(folder_ / "weights.bin", std::string(32, '\0'));
  const std::string branch = block(6, block(5, stored_in("../weights.bin")));
  write(folder_ / "model" / "model.onnx", model_of(block(1, block(5, branch))));
  EXPECT_EQ("external_data", why(inspect_onnx(folder_ / "model" / "model.onnx")));
}

TEST_F(OnnxFileFolder, SaysThatAFileIsMissingOrEmpty) {
  const auto missing = inspect_onnx(folder_ / "nothing.onnx");
  EXPECT_EQ("bad_model_file", why(missing));
  EXPECT_NE(std::string::npos, missing.status().detail().find("nothing.onnx"));
  write(folder_ / "empty.onnx", "");
  EXPECT_NE(std::string::npos, inspect_onnx(folder_ / "empty.onnx").status().detail().find("empty"));
  EXPECT_EQ("bad_model_file", why(inspect_onnx(folder_)));
}

TEST_F(OnnxFileFolder, CountsTheFilesOfExternalWeights) {
  const std::string model = copy("weights_beside.onnx");
  write(folder_ / "model" / "weights.bin", std::string(32, '\0'));
  const auto file = inspect_onnx(model);
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  ASSERT_EQ(1U, file->external.size());
  EXPECT_EQ("w", file->external[0].name);
  EXPECT_EQ(Bytes(fs::file_size(model) + 32), file->size);
}

TEST_F(OnnxFileFolder, ReadsNoWeightsFromOutsideTheFolder) {
  write(folder_ / "weights.bin", std::string(32, '\0'));  // it exists, one folder up
  const auto outside = inspect_onnx(copy("weights_outside.onnx"));
  EXPECT_EQ("external_data", why(outside));
  EXPECT_NE(std::string::npos, outside.status().detail().find("'../weights.bin'"))
      << outside.status().detail();
  const std::string model = copy("weights_beside.onnx");
  EXPECT_EQ("external_data", why(inspect_onnx(model))) << "no such file";
  fs::create_symlink(folder_ / "weights.bin", folder_ / "model" / "weights.bin");
  EXPECT_EQ("external_data", why(inspect_onnx(model))) << "a link that leads outside";
}

}  // namespace
}  // namespace tonnage::onnx_worker
