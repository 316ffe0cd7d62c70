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
