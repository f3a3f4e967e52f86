// SPDX-License-Identifier: MIT
// A handle and the hub that it hosts, on a disk that is slow, full, broken or another program's.
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "weft/rt/task/task_scope.h"
#include "weft/store/test_vfs.h"
#include "weft/sys/path.h"
#include "weft/topic/async_stream.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/kept/test_link.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class HubDiskTest : public testing::Test {
 protected:
  HubDiskTest() : directory_(*sys::make_private_directory()) {
    options_.directory = directory_;
    options_.store = directory_ + "/store.db";
    options_.vfs = disk_.name();
    options_.quiet = Duration::zero();
  }
  ~HubDiskTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::unique_ptr<TestLink> link(bool async = false) {
    return std::make_unique<TestLink>(
        context_, Hub::endpoint(directory_),
        [this](const std::string&) -> Result<Hosting> {
          std::shared_ptr<Hub> hub = WEFT_TRY(Hub::begin(context_, options_));
          const Hub* const raw = hub.get();
          return Hosting{std::move(hub), [raw] { return raw->ended(); }, {}};
        },
        Names{}, async);
  }

  store::TestDisk disk_;
  HubOptions options_;
  std::string directory_;
  Context context_;
};

rt::Task<Result<void>> declare_and_publish(std::shared_ptr<HubLink> link) {
  const StreamOptions options{.name = "s"};
  WEFT_CO_TRY(AsyncStream stream, co_await AsyncStream::declare(link, options));
  WEFT_CO_TRY(const Published published, co_await stream.publish("a", "x"));
  EXPECT_EQ(published.sequence, 1u);
  co_return Result<void>();
}

TEST_F(HubDiskTest, ASlowDiskHoldsUpNoTurnOfTheLoopThatHosts) {
  std::promise<void> opening;
  std::promise<void> release;
  disk_.set_on_open([&, released = release.get_future().share(), told = false]() mutable {
    if (!told) {
      told = true;
      opening.set_value();
    }
    released.wait();
  });
  const auto handle = link(true);
  auto done = rt::spawn(handle->loop(), declare_and_publish(handle->link()));
  opening.get_future().wait();  // the loop hosts, and its hub waits for the disk
  for (int turn = 0; turn < 100; ++turn) {
    std::promise<void> ran;
    handle->loop().post([&ran] { ran.set_value(); });
    ASSERT_EQ(ran.get_future().wait_for(20s), std::future_status::ready) << "the disk holds up the loop";
  }
  EXPECT_EQ(handle->link()->statistics().connections, 0u);
  release.set_value();
  const auto result = done.get();
  EXPECT_TRUE(result) << result.error().text();
}

TEST_F(HubDiskTest, AFileThatIsNoStoreIsToldToTheCallAndTriedAnewByTheNextOne) {
  auto file = std::make_shared<store::TestDisk::File>();
  file->live.assign(8192, 'x');
  disk_.files()[options_.store] = file;
  const auto handle = link();
  const auto declared = Stream::declare(handle->link(), {.name = "s"});
  EXPECT_EQ(declared.error(), Errc::corrupt) << declared.error().text();
  EXPECT_EQ(Stream::declare(handle->link(), {.name = "s"}).error(), Errc::corrupt);
  handle->loop().stop();  // no hub is at the disk meanwhile
  disk_.files().clear();
  const auto other = link();
  EXPECT_EQ(other->stream({.name = "s"}).publish("a", "x")->sequence, 1u);
}

TEST_F(HubDiskTest, AFullDiskRefusesAndTheHubGoesOnWhenThereIsRoom) {
  const auto handle = link();
  Stream s = handle->stream({.name = "s"});
  ASSERT_TRUE(s.publish("a", std::string(1000, 'x')));
  disk_.set_room(disk_.bytes());
  const std::string body(100'000, 'y');
  EXPECT_EQ(s.publish("a", body, {.id = "full"}).error(), Errc::resource_exhausted);
  EXPECT_EQ(s.newest("a")->body().size(), 1000u) << "reading goes on";
  disk_.set_room(~std::uint64_t{0});
  const auto again = s.publish("a", body, {.id = "full"});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->sequence, 2u);
  EXPECT_FALSE(again->duplicate);
  EXPECT_EQ(handle->link()->statistics().hosted, 1u);
}

TEST_F(HubDiskTest, AHubThatLostItsDiskIsHostedAnewByTheSameHandle) {
  const auto handle = link();
  Stream s = handle->stream({.name = "s"});
  Reader reader = *s.read();
  std::uint64_t count = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) {
      const std::string text = std::to_string(count++);
      ASSERT_TRUE(s.publish("a", text, {.id = text}));
    }
    disk_.fail_sync(1);  // and none after it: the handle hosts anew at once
    const std::string text = std::to_string(count++);
    const std::uint64_t resent = handle->link()->statistics().resent;
    const auto failed = s.publish("a", text, {.id = text});
    // The hub answers, and ends. If its answer does not leave in time, the handle asks the next hub.
    EXPECT_TRUE(failed.error() == Errc::outcome_unknown || handle->link()->statistics().resent != resent)
        << failed.error().text();
    const auto again = s.publish("a", text, {.id = text});  // its id shows whether the message is there
    ASSERT_TRUE(again) << again.error().text();
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << message.error().text();
    EXPECT_EQ(message->text(), std::to_string(i));
    EXPECT_EQ(message->sequence(), i + 1);
  }
  EXPECT_EQ(handle->link()->statistics().hosted, 4u);
}

}  // namespace
}  // namespace weft::topic
