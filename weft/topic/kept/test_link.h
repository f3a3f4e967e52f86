// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "weft/msg/context.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/path.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/test_hub.h"
#include "weft/topic/stream.h"
#include <gtest/gtest.h>

namespace weft::topic {

// TestLink: a link with a loop of its own, as a handle has them.
class TestLink {
 public:
  using Host = std::function<Result<Hosting>(const std::string& store)>;

  TestLink(Context& context, const std::string& endpoint, Host host = {}, Names names = {}, bool async = false) {
    static std::atomic<int> next{0};
    loop_ = *rt::Loop::make("topics");
    link_ = std::make_shared<HubLink>(
        *loop_, LinkSettings{.endpoint = endpoint,
                             .id = "test" + std::to_string(next++),
                             .names = std::move(names),
                             .make_socket = [&context] { return context.socket(SocketType::dealer); },
                             .host = std::move(host),
                             .async = async});
    EXPECT_TRUE(loop_->start(nullptr));
  }
  TestLink(const TestLink&) = delete;
  TestLink& operator=(const TestLink&) = delete;
  ~TestLink() { close(); }
  void close() {
    loop_->stop();
    link_->close();
  }

  [[nodiscard]] const std::shared_ptr<HubLink>& link() const { return link_; }
  [[nodiscard]] rt::Loop& loop() { return *loop_; }
  HubLink* operator->() { return link_.get(); }
  Stream stream(const StreamOptions& options) {
    auto stream = Stream::declare(link_, options);
    EXPECT_TRUE(stream) << stream.error().message();
    return *std::move(stream);
  }

 private:
  std::unique_ptr<rt::Loop> loop_;
  std::shared_ptr<HubLink> link_;
};

// KeptTest: a directory with the endpoint of a hub.
class KeptTest : public testing::Test {
 protected:
  KeptTest() : directory_(*sys::make_private_directory()), endpoint_("ipc://" + directory_ + "/hub.sock") {}
  ~KeptTest() override { std::filesystem::remove_all(directory_); }

  Context context_;
  FakeStore store_;
  std::string directory_;
  std::string endpoint_;
};

}  // namespace weft::topic
