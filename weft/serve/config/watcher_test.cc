// SPDX-License-Identifier: MIT
#include "weft/serve/config/watcher.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "weft/rt/loop/test_signal.h"
#include "weft/serve/config/test_config.h"

namespace weft::serve::config {
namespace {

class ConfigWatcherTest : public test::ConfigFileTest {
 protected:
  static std::string text(int sessions_max) {
    return "[server]\nsessions_max = " + std::to_string(sessions_max) + "\n";
  }
  void replace(const std::string& text) const {
    std::ofstream(file_ + ".new") << text;
    std::filesystem::rename(file_ + ".new", file_);
  }
  // Waits for reports until one leaves this bound in use.
  void until_bound_is(const Config& config, std::size_t bound) {
    while (config.current()->server.sessions_max != bound) {
      ASSERT_TRUE(reported_.take());
    }
  }

  rt::test::Signal reported_;
};

TEST_F(ConfigWatcherTest, AChangedFileIsReloadedAndAWrongOneIsReported) {
  const auto config = load(text(1));
  ASSERT_NE(config, nullptr) << told();
  write(text(2));  // before the watcher starts
  std::atomic<int> refused{0};
  auto watcher = ConfigWatcher::start(*config, [&](const Result<void>& result, const Problems& problems) {
    refused += !result && !problems.empty() ? 1 : 0;
    reported_.give();
    throw std::runtime_error("dropped");
  });
  ASSERT_TRUE(watcher) << watcher.error().message();
  until_bound_is(*config, 2);
  replace(text(3));
  until_bound_is(*config, 3);
  replace("[server]\nsessions_max = \"many\"\n");
  while (refused == 0) {
    ASSERT_TRUE(reported_.take());
  }
  EXPECT_EQ(config->current()->server.sessions_max, 3u);
  write(text(4));
  until_bound_is(*config, 4);
  watcher->reset();
  replace(text(5));
  EXPECT_EQ(config->current()->server.sessions_max, 4u);
}

TEST_F(ConfigWatcherTest, TheProgramMayReloadBesideTheWatcher) {
  const auto config = load(text(1));
  ASSERT_NE(config, nullptr) << told();
  const auto watcher = ConfigWatcher::start(*config, [&](const Result<void>&, const Problems&) { reported_.give(); });
  ASSERT_TRUE(watcher);
  for (int i = 2; i < 30; ++i) {
    replace(text(i));
    EXPECT_TRUE(config->reload());
    EXPECT_EQ(config->current()->server.sessions_max, static_cast<std::size_t>(i));
  }
}

}  // namespace
}  // namespace weft::serve::config
