// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <gtest/gtest.h>

namespace tonnage::config {
namespace {

TEST(Environment, FindsVariablesAndPrefixes) {
  const Environment environment({{"SAGEMAKER_BATCH", "true"}, {"TONNAGE_MEMORY", "1GiB"}});
  EXPECT_EQ(environment.get("TONNAGE_MEMORY"), "1GiB");
  EXPECT_FALSE(environment.get("TONNAGE_MEM").has_value());
  EXPECT_TRUE(environment.has_prefix("SAGEMAKER_"));
  EXPECT_FALSE(environment.has_prefix("TRITON_"));
}

TEST(Environment, ReadsThisProcess) { EXPECT_TRUE(Environment::of_process().get("PATH").has_value()); }

TEST(Environment, NamesTheVariableOfAFlag) { EXPECT_EQ(variable_name("http-port"), "TONNAGE_HTTP_PORT"); }

}  // namespace
}  // namespace tonnage::config
