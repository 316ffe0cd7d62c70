// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/model_toml.h"

namespace tonnage::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStub =
    "[[input]]\nname = \"x\"\ndatatype = \"FP32\"\ndims = [-1, 4]\n[stub]\nmodel = \"echo\"\n";

class Repository : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tonnage_models_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, std::string_view text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  std::vector<RepositoryEntry> scan() const {
    auto entries = scan_repository(root_.string());
    EXPECT_TRUE(entries.is_ok()) << entries.status().to_string();
    return entries ? std::move(entries).value() : std::vector<RepositoryEntry>();
  }

  static Status no_such_model() { return {Code::kNotFound, "no_model", ""}; }

  fs::path root_;
};

TEST_F(Repository, TakesTheHighestNumericVersionOnly) {
  for (const char* version : {"2", "10", "9", "010", "draft", "11.bak"}) {
    write(fs::path("m") / version / "model.pt", version);
  }
  const auto entries = scan();
  ASSERT_EQ(entries.size(), 1U);
  ASSERT_TRUE(entries[0].spec.is_ok()) << entries[0].spec.status().to_string();
  EXPECT_EQ(entries[0].spec->name, "m");
  EXPECT_EQ(entries[0].spec->version, "10");
  EXPECT_EQ(entries[0].spec->route, "trace");
  EXPECT_EQ(entries[0].spec->path, (root_ / "m/10/model.pt").string());
}

constexpr std::string_view kNative =
    "[[input]]\nname = \"x\"\ndatatype = \"FP32\"\ndims = [-1, 4]\n[native]\n";

TEST_F(Repository, FindsTheScriptOfANativeModelInEitherPlace) {
  write("plain/1/inference.py", "");
  write("unpacked/1/code/inference.py", "");
  write("unpacked/1/model.pth", "weights");
  const auto entries = scan();
  ASSERT_EQ(entries.size(), 2U);
  for (const RepositoryEntry& entry : entries) {
    ASSERT_TRUE(entry.spec.is_ok()) << entry.spec.status().to_string();
    EXPECT_EQ(entry.spec->route, "native");
  }
  EXPECT_EQ(entries[0].spec->path, (root_ / "plain/1/inference.py").string());
  EXPECT_EQ(entries[1].spec->path, (root_ / "unpacked/1/code/inference.py").string());
  EXPECT_EQ(entries[1].spec->directory, (root_ / "unpacked/1").string());
}

TEST_F(Repository, RunsNoScriptOfAFolderThatHasAModelFile) {
  write("m/1/model.pt", "");
  write("m/1/inference.py", "");
  EXPECT_EQ(scan().at(0).spec->route, "trace");
}

TEST_F(Repository, TakesTheEntryThatANativeModelNames) {
  write("m/model.toml", std::string(kNative) + "entry = \"net.py:Net\"\n");
  EXPECT_NE(scan().at(0).spec.status().detail().find("holds no net.py"), std::string::npos);
  write("m/net.py", "");
  EXPECT_EQ(scan().at(0).spec->path, (root_ / "m/net.py").string());
}

TEST_F(Repository, WeighsANativeModelByTheLargestFileBesideItsScript) {
  write("m/model.toml", kNative);
  write("m/1/inference.py", std::string(5000, '#'));
  EXPECT_EQ(Bytes(), weight_file_bytes(*scan().at(0).spec));
  write("m/1/weights/part.bin", std::string(3000, 'w'));
  write("m/1/notes.txt", "small");
  EXPECT_EQ(Bytes(3000), weight_file_bytes(*scan().at(0).spec));
}

TEST_F(Repository, TellsNativeModelsApartByTheirModulesToo) {
  write("m/model.toml", kNative);
  write("m/1/inference.py", "import net");
  write("m/1/net.py", "a");
  const auto before = fingerprint(*scan().at(0).spec, "r");
  write("m/1/net.py", "b");
  EXPECT_NE(*before, *fingerprint(*scan().at(0).spec, "r"));
}

TEST_F(Repository, ABrokenModelDoesNotHideTheOthersAndAFolderOfTextsIsNoModel) {
  write("bad/model.toml", "max_lenght = 3");
  write("texts/reviews.jsonl", "");
  write("good/model.toml", kStub);
  write(".hidden/model.toml", "not looked at");
  const auto entries = scan();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].spec.status().reason(), "bad_config");
  EXPECT_TRUE(entries[1].spec.is_ok()) << entries[1].spec.status().to_string();
  EXPECT_EQ(entries[0].name(), "bad") << "it is called as its folder, as the others";
  EXPECT_EQ(entries[1].name(), entries[1].spec->name);
  EXPECT_EQ((RepositoryEntry{"a/b/", no_such_model()}).name(), "b");
}

TEST_F(Repository, TheRootMayBeOneModel) {
  write("model.toml", kStub);
  const auto entries = scan();
  ASSERT_EQ(entries.size(), 1U);
  ASSERT_TRUE(entries[0].spec.is_ok());
  EXPECT_EQ(entries[0].spec->name, root_.filename().string());
  EXPECT_EQ(entries[0].spec->version, "1");
}

TEST_F(Repository, AnUnpackedArchiveIsOneModel) {
  write("model.pt", "weights");
  const auto entries = scan();
  ASSERT_EQ(entries.size(), 1U);
  ASSERT_TRUE(entries[0].spec.is_ok());
  EXPECT_EQ(entries[0].spec->route, "trace");
}

TEST_F(Repository, AWrittenRouteWithoutAFileIsNoModel) {
  write("m/model.toml", "route = \"script\"");
  fs::create_directories(root_ / "m/1");
  EXPECT_EQ(scan().at(0).spec.status().reason(), "no_model");
}

TEST_F(Repository, AFolderWithoutAModelFileIsToldWhichFilesThereAre) {
  write("m/1/model.bin", "");
  EXPECT_NE(scan().at(0).spec.status().detail().find("model.pt (\"trace\")"), std::string::npos);
}

TEST_F(Repository, AnOverrideChoosesRouteAndPrecisionAboveModelToml) {
  write("m/model.toml", "route = \"script\"\nprecision = \"bf16\"");
  write("m/1/model.pt", "traced");
  write("m/1/model.script.pt", "scripted");
  const std::string folder = (root_ / "m").string();
  const auto own = load_model_directory(folder);
  ASSERT_TRUE(own.is_ok()) << own.status().to_string();
  EXPECT_EQ(own->path, (root_ / "m/1/model.script.pt").string());
  EXPECT_EQ(own->precision, Precision::kBf16);
  const auto chosen = load_model_directory(folder, {.route = "trace", .precision = Precision::kFp32});
  ASSERT_TRUE(chosen.is_ok()) << chosen.status().to_string();
  EXPECT_EQ(chosen->route, "trace");
  EXPECT_EQ(chosen->path, (root_ / "m/1/model.pt").string());
  EXPECT_EQ(chosen->precision, Precision::kFp32);
}

TEST_F(Repository, ACompiledModelHasAFilePerPrecision) {
  write("m/1/model.pt", "traced");
  write("m/1/model.bf16.pt2", "compiled");
  const std::string folder = (root_ / "m").string();
  const auto chosen = load_model_directory(folder, {.route = "aoti", .precision = Precision::kBf16});
  ASSERT_TRUE(chosen.is_ok()) << chosen.status().to_string();
  EXPECT_EQ(chosen->path, (root_ / "m/1/model.bf16.pt2").string());
  const Status status = load_model_directory(folder, {.route = "aoti"}).status();
  EXPECT_NE(status.detail().find("no model.pt2, the file of route \"aoti\" in fp32"), std::string::npos)
      << status.detail();
}

TEST_F(Repository, AScriptedModelMayAlsoBeCalledModelPt) {
  write("m/model.toml", "route = \"script\"");
  write("m/1/model.pt", "scripted");
  EXPECT_EQ(scan().at(0).spec->path, (root_ / "m/1/model.pt").string());
}

TEST_F(Repository, ARouteWhoseFileIsMissingIsToldWhichRoutesThereAre) {
  write("m/1/model.script.pt", "scripted");
  const Status status = load_model_directory((root_ / "m").string(), {.route = "trace"}).status();
  EXPECT_EQ(status.reason(), "no_model");
  EXPECT_NE(
      status.detail().find("no model.pt, the file of route \"trace\" in fp32; it holds files of: \"script\""),
      std::string::npos)
      << status.detail();
}

TEST_F(Repository, ARouteThatRunsOnTheHostAloneHasNoDevice) {
  write("m/model.toml", "device = \"cuda:0\"\n");
  write("m/1/model.onnx", "x");
  const Status status = load_model_directory((root_ / "m").string()).status();
  EXPECT_EQ(status.reason(), "bad_config");
  EXPECT_NE(status.detail().find("route \"onnx\" runs on the cpu, 'device' is \"cuda:0\"; allowed with a "
                                 "device: \"trace\", \"script\", \"stub\""),
            std::string::npos)
      << status.detail();
}

TEST_F(Repository, ARouteWithoutThePrecisionIsToldSo) {
  write("m/model.toml", kStub);
  const Status status =
      load_model_directory((root_ / "m").string(), {.route = "", .precision = Precision::kBf16}).status();
  EXPECT_EQ(status.reason(), "bad_config");
  EXPECT_NE(status.detail().find("route \"stub\" has no precision \"bf16\""), std::string::npos)
      << status.detail();
}

TEST_F(Repository, HeldOutRowsBesideTheModelGoToTheWorkerWithTheirThreshold) {
  write("m/1/model.pt", "");
  EXPECT_FALSE(to_load_doc(*scan().at(0).spec).options.contains("held_out"));
  write("m/1/held_out.json", "{}");
  write("m/model.toml", "parity_min_cosine = 0.99\nfreeze = true\nprecision = \"bf16\"");
  const auto options = to_load_doc(*scan().at(0).spec).options;
  EXPECT_EQ(options.at("held_out"), (root_ / "m/1/held_out.json").string());
  EXPECT_EQ(options.at("parity_min_cosine"), "0.99");
  EXPECT_EQ(options.at("freeze"), "true");
  EXPECT_EQ(options.at("precision"), "bf16");
}

TEST_F(Repository, AStubMustNameItsInputs) {
  write("m/model.toml", "[stub]\nmodel = \"echo\"\n");
  EXPECT_EQ(scan().at(0).spec.status().reason(), "bad_config");
}

TEST_F(Repository, AMissingVocabularyIsNamed) {
  write("m/1/model.pt", "");
  write("m/model.toml", "[tokenizer]\nkind = \"wordpiece\"\nvocab = \"vocab.txt\"\n");
  const Status status = scan().at(0).spec.status();
  EXPECT_EQ(status.reason(), "bad_config");
  EXPECT_NE(status.detail().find((root_ / "m/vocab.txt").string()), std::string::npos) << status.detail();
}

TEST_F(Repository, NothingThereIsNoModel) {
  EXPECT_EQ(scan_repository(root_.string()).status().reason(), "no_model");
  EXPECT_EQ(scan_repository((root_ / "absent").string()).status().reason(), "no_model");
}

class Fingerprint : public Repository {
 protected:
  ModelSpec loaded(std::string_view weights) const {
    write("m/1/model.pt", weights);
    return *load_model_directory((root_ / "m").string());
  }
};

TEST_F(Fingerprint, ChangesWithWhatDecidesCost) {
  const ModelSpec spec = loaded("weights");
  const std::string first = *fingerprint(spec, "libtorch 2.13.0");
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(*fingerprint(spec, "libtorch 2.13.0"), first);
  EXPECT_NE(*fingerprint(spec, "libtorch 2.14.0"), first);

  ModelSpec other = spec;
  other.threads = 7;
  EXPECT_NE(*fingerprint(other, "libtorch 2.13.0"), first);
  other = spec;
  other.precision = Precision::kBf16;
  EXPECT_NE(*fingerprint(other, "libtorch 2.13.0"), first);
  other = spec;
  other.freeze = true;
  EXPECT_NE(*fingerprint(other, "libtorch 2.13.0"), first);
  EXPECT_NE(*fingerprint(loaded("weightt"), "libtorch 2.13.0"), first);
}

TEST_F(Fingerprint, StaysWhenTheModelIsRenamedOrItsLabelsChange) {
  const ModelSpec spec = loaded("weights");
  ModelSpec other = spec;
  other.name = "renamed";
  other.labels = {"a"};
  other.deadline = seconds(1);
  EXPECT_EQ(*fingerprint(other, "r"), *fingerprint(spec, "r"));
}

TEST_F(Fingerprint, SeesOneChangedByteAnywhereInALargeFile) {
  std::string weights(3 * 1024 * 1024 + 5, 'w');
  const std::string first = *fingerprint(loaded(weights), "r");
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1} << 20, std::size_t{777777}, weights.size() - 1}) {
    std::string changed = weights;
    changed[at] = 'x';
    EXPECT_NE(*fingerprint(loaded(changed), "r"), first) << at;
  }
  EXPECT_NE(*fingerprint(loaded(weights + "w"), "r"), first);
}

TEST_F(Fingerprint, AFileThatVanishedIsAnError) {
  ModelSpec spec = loaded("weights");
  fs::remove(spec.path);
  EXPECT_EQ(fingerprint(spec, "r").status().reason(), "no_model");
}

}  // namespace
}  // namespace tonnage::model
