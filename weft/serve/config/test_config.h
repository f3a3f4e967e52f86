// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/config/config.h"
#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::serve::config::test {

// ConfigFileTest: a configuration in a directory of its own.
class ConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!toml_available()) {
      GTEST_SKIP() << "this build has no TOML";
    }
    auto made = sys::make_private_directory();
    ASSERT_TRUE(made);
    directory_ = *made;
    file_ = directory_ + "/server.toml";
  }
  void TearDown() override {
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  // Loads the text, with these variables and no others. Null if it is refused.
  std::unique_ptr<Config> load(const std::string& text, ProgramKeys keys = {},
                               std::vector<std::string> variables = {}) {
    write(text);
    LoadOptions options;
    options.environment = std::move(variables);
    auto config = Config::load(file_, std::move(keys), std::move(options), &problems_);
    EXPECT_EQ(config.has_value(), problems_.empty());
    return config ? *std::move(config) : nullptr;
  }
  // The problems of a text, a line each, without the name of the file.
  std::string refusal(const std::string& text, ProgramKeys keys = {}, std::vector<std::string> variables = {}) {
    EXPECT_EQ(load(text, std::move(keys), std::move(variables)), nullptr);
    return told();
  }
  [[nodiscard]] std::string told() const {
    std::string lines = problems_.text();
    for (std::size_t at = lines.find(file_); at != std::string::npos; at = lines.find(file_)) {
      lines.erase(at, file_.size() + (lines.compare(at + file_.size(), 1, ":") == 0 ? 1 : 0));
    }
    return lines;
  }

  std::string directory_;
  std::string file_;
  Problems problems_;
};

}  // namespace weft::serve::config::test
