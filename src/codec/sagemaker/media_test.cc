// SPDX-License-Identifier: Apache-2.0
#include "codec/sagemaker/media.h"

#include <gtest/gtest.h>

namespace tonnage::codec::sagemaker {
namespace {

TEST(Media, ContentTypesAreComparedWithoutCaseAndParameters) {
  const struct {
    const char* type;
    BodyForm form;
  } cases[] = {{"", BodyForm::kJson},
               {"application/json", BodyForm::kJson},
               {"application/json; charset=utf-8", BodyForm::kJson},
               {"Application/JSON;charset=\"utf-8\"", BodyForm::kJson},
               {"text/csv; charset=utf-8", BodyForm::kCsv},
               {"TEXT/CSV", BodyForm::kCsv},
               {"text/csv;header=absent", BodyForm::kCsv},
               {" text/csv ;x", BodyForm::kCsv},
               {"application/jsonlines", BodyForm::kJsonLines},
               {"text/plain", BodyForm::kText}};
  for (const auto& c : cases) EXPECT_EQ(c.form, body_form(c.type, true).value()) << c.type;
}

TEST(Media, UnknownContentTypesAre415WithTheList) {
  for (const char* type : {"application/x-npy", "text", "json", "text/csvx", "application/xml", "*/*"}) {
    const Status status = body_form(type, true).status();
    EXPECT_EQ(Code::kUnsupportedMedia, status.code()) << type;
    EXPECT_NE(std::string::npos, status.detail().find("text/plain"));
  }
  const Status no_text = body_form("text/plain", false).status();
  EXPECT_EQ(Code::kUnsupportedMedia, no_text.code());
  EXPECT_NE(std::string::npos, no_text.detail().find("text/csv"));
}

TEST(Media, AcceptIsWeighed) {
  const struct {
    const char* accept;
    BodyForm request;
    BodyForm reply;
  } cases[] = {
      {"", BodyForm::kCsv, BodyForm::kCsv},
      {" ", BodyForm::kJsonLines, BodyForm::kJsonLines},
      {"*/*", BodyForm::kCsv, BodyForm::kCsv},
      {"*/*", BodyForm::kText, BodyForm::kJson},
      {"application/json", BodyForm::kCsv, BodyForm::kJson},
      {"Application/JSON; charset=utf-8", BodyForm::kCsv, BodyForm::kJson},
      {"text/*", BodyForm::kJson, BodyForm::kCsv},
      {"application/*", BodyForm::kCsv, BodyForm::kJson},
      {"text/html, application/xml;q=0.9, */*;q=0.8", BodyForm::kJsonLines, BodyForm::kJsonLines},
      {"text/csv;q=0.5, application/jsonlines;q=0.6", BodyForm::kCsv, BodyForm::kJsonLines},
      {"application/json;q=0, */*", BodyForm::kJson, BodyForm::kJsonLines},
      {"*/*;q=0.1, text/csv;q=0.2", BodyForm::kJson, BodyForm::kCsv},
      {"text/csv;q=high, application/json;q=0.1", BodyForm::kCsv, BodyForm::kJson},
      {"text/csv;header=absent;q=1.0,application/json;q=0.001", BodyForm::kJson, BodyForm::kCsv},
  };
  for (const auto& c : cases) EXPECT_EQ(c.reply, reply_form(c.accept, c.request).value()) << c.accept;
}

TEST(Media, AnAcceptWithNothingWeCanGiveIs406) {
  for (const char* accept :
       {"image/png", "application/x-npy", "*/*;q=0", "application/json;q=0", "text/plain", ";;,,", "q=1"}) {
    EXPECT_EQ(Code::kNotAcceptable, reply_form(accept, BodyForm::kJson).status().code()) << accept;
  }
}

}  // namespace
}  // namespace tonnage::codec::sagemaker
