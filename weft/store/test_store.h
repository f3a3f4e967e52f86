// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/store/store.h"
#include "weft/store/test_vfs.h"
#include <gtest/gtest.h>

namespace weft::store {

inline constexpr WallTime kDay(std::chrono::seconds(1'700'000'000));
[[nodiscard]] inline Now at(Duration since) { return {kDay + since, Instant(std::chrono::hours(1)) + since}; }

// StoreOnDisk: a store on a test disk, and calls that must succeed.
class StoreOnDisk : public testing::Test {
 protected:
  void SetUp() override { open(Duration::zero()); }
  void open(Duration since) {
    store_.reset();
    auto opened = Store::open({"store.db", disk_.name()}, at(since));
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = *std::move(opened);
  }
  StoredStream& declare(const StreamSettings& settings, std::string_view name = "s") {
    auto stream = store_->declare(name, settings, false, at(Duration::zero()));
    EXPECT_TRUE(stream) << stream.error().message();
    return **stream;
  }
  // The sequence; 0 if it was refused.
  std::uint64_t append(StoredStream& stream, const NewMessage& message, Duration since = std::chrono::seconds(1),
                       const Expect& expect = {}) {
    const auto appended = store_->append(stream, message, expect, at(since));
    EXPECT_TRUE(appended) << appended.error().message();
    EXPECT_EQ(store_->commit(at(since)).of(stream), Errc::ok);
    return appended ? appended->sequence : 0;
  }

  static std::vector<std::string> live_topics(StoredStream& stream, std::size_t rows = 100) {
    std::vector<std::string> all;
    TopicPage page;
    do {
      page = *stream.topics_after(page.after, rows, kDay);
      for (const TopicPage::Entry& entry : page.topics) {
        all.push_back(entry.topic);
      }
    } while (page.more);
    return all;
  }

  TestDisk disk_;
  std::unique_ptr<Store> store_;
};

}  // namespace weft::store
