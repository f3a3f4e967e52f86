// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/process_fleets.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// RecordingMember: keeps the calls of ProcessFleets, as texts. One of them may fail.
class RecordingMember final : public ProcessFleets::Member {
 public:
  explicit RecordingMember(std::uint64_t instance, bool inner = false)
      : instance_(instance), inner_(inner), endpoint_("inproc://" + std::to_string(instance)) {}

  [[nodiscard]] std::uint64_t instance() const noexcept override { return instance_; }
  [[nodiscard]] const std::string& inproc_endpoint() const noexcept override { return endpoint_; }
  [[nodiscard]] bool has_inner() const noexcept override { return inner_; }
  [[nodiscard]] Result<void> link_inproc(std::uint64_t /*instance*/, const std::string& endpoint, bool inner) override {
    calls.push_back("link " + endpoint + (inner ? " inner" : ""));
    return link_fails ? Result<void>(Errc::resource_exhausted) : Result<void>();
  }
  [[nodiscard]] Result<void> handle_peer_opened(std::uint64_t /*instance*/, const std::string& endpoint,
                                                bool inner) override {
    calls.push_back("opened " + endpoint + (inner ? " inner" : ""));
    return {};
  }
  void handle_peer_closed(std::uint64_t /*instance*/, const std::string& endpoint) noexcept override {
    calls.push_back("closed " + endpoint);
  }
  void handle_joined() noexcept override { calls.emplace_back("joined"); }

  std::vector<std::string> calls;
  bool link_fails = false;

 private:
  const std::uint64_t instance_;
  const bool inner_;
  const std::string endpoint_;
};

using Recorded = std::vector<std::string>;

TEST(ProcessFleets, TheMembersOfOneKeyAreLinkedInBothDirections) {
  ProcessFleets fleets;
  RecordingMember first(1);
  RecordingMember second(2, true);
  ASSERT_TRUE(fleets.join(first, nullptr, "local"));
  EXPECT_EQ(first.calls, Recorded());  // nothing to send to
  ASSERT_TRUE(fleets.join(second, nullptr, "local"));
  EXPECT_EQ(first.calls, Recorded({"opened inproc://2 inner"}));
  EXPECT_EQ(second.calls, Recorded({"link inproc://1", "joined"}));
}

TEST(ProcessFleets, AMemberOfAnotherFleetIsNotLinked) {
  ProcessFleets fleets;
  RecordingMember first(1);
  RecordingMember other(2);
  ASSERT_TRUE(fleets.join(first, nullptr, "local"));
  ASSERT_TRUE(fleets.join(other, nullptr, "local:other"));
  ASSERT_TRUE(fleets.link_all(other));
  EXPECT_EQ(first.calls, Recorded());
  EXPECT_EQ(other.calls, Recorded());
}

TEST(ProcessFleets, TheOthersAreToldOnceOfAMemberThatLeaves) {
  ProcessFleets fleets;
  RecordingMember first(1);
  RecordingMember second(2);
  ASSERT_TRUE(fleets.join(first, nullptr, "local"));
  ASSERT_TRUE(fleets.join(second, nullptr, "local"));
  first.calls.clear();
  fleets.leave(second, nullptr, "local");
  fleets.leave(second, nullptr, "local");
  EXPECT_EQ(first.calls, Recorded({"closed inproc://2"}));
}

TEST(ProcessFleets, AMemberWhoseLinkFailedLinksAgain) {
  ProcessFleets fleets;
  RecordingMember first(1);
  RecordingMember second(2);
  ASSERT_TRUE(fleets.join(first, nullptr, "local"));
  second.link_fails = true;
  EXPECT_EQ(fleets.join(second, nullptr, "local").error(), Errc::resource_exhausted);
  EXPECT_EQ(first.calls, Recorded());  // it does not know a member that is not linked
  second.link_fails = false;
  second.calls.clear();
  ASSERT_TRUE(fleets.link_all(second));
  EXPECT_EQ(second.calls, Recorded({"link inproc://1"}));
}

TEST(ProcessFleets, AMemberThatDidNotJoinHasNoOthers) {
  ProcessFleets fleets;
  RecordingMember first(1);
  RecordingMember stranger(2);
  ASSERT_TRUE(fleets.join(first, nullptr, "local"));
  ASSERT_TRUE(fleets.link_all(stranger));
  fleets.leave(stranger, nullptr, "local");
  EXPECT_EQ(first.calls, Recorded());
  EXPECT_EQ(stranger.calls, Recorded());
}

}  // namespace
}  // namespace weft::topic
