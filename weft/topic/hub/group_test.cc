// SPDX-License-Identifier: MIT
// A hub whose socket the members of a group reach.
#include "weft/sys/files/group.h"

#include <filesystem>
#include <string>

#include "weft/topic/hub/hub.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class GroupHub : public testing::Test {
 protected:
  GroupHub() : directory_(*sys::make_private_directory()) {}
  ~GroupHub() override { std::filesystem::remove_all(directory_); }

  HubOptions hub_options() const {
    HubOptions options;
    options.directory = directory_;
    options.store = directory_ + "/store.topics";
    options.group = std::to_string(sys::own_group());
    options.group_socket = directory_ + "/group/hub.sock";
    return options;
  }

  std::string directory_;
  Context hub_context_;
  Context context_;
};

TEST_F(GroupHub, AHandleNamesTheSocketOfTheGroup) {
  auto hub = Hub::host(hub_context_, hub_options());
  ASSERT_TRUE(hub) << hub.error().message();
  TopicsOptions options;
  options.fleet = "inproc:another-user";
  options.hub = "ipc://" + hub_options().group_socket;
  Topics topics = *Topics::open(context_, options);
  auto orders = topics.stream({.name = "orders", .topics = {"orders.>"}});
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->publish("orders.eu", "first")->sequence, 1u);
  EXPECT_EQ(topics.kept_statistics().hosted, 0u);
}

TEST_F(GroupHub, AGroupWithoutASocketOrAnOpenDirectoryIsRefused) {
  HubOptions options = hub_options();
  options.group_socket.clear();
  EXPECT_EQ(Hub::host(hub_context_, options).error(), Errc::invalid_argument);
  options = hub_options();
  options.group.clear();
  EXPECT_EQ(Hub::host(hub_context_, options).error(), Errc::invalid_argument);
  options = hub_options();
  options.group = "no-such-group-of-weft";
  EXPECT_EQ(Hub::host(hub_context_, options).error(), Errc::not_found);
  options = hub_options();
  options.group_socket = directory_ + "/hub-of-group.sock";  // beside the socket of this user alone, mode 0700
  EXPECT_EQ(Hub::host(hub_context_, options).error(), Errc::invalid_state);
  EXPECT_TRUE(Hub::host(hub_context_, hub_options())) << "after a refusal the lock is free";
}

}  // namespace
}  // namespace weft::topic
