// SPDX-License-Identifier: MIT
// The ring's poller alone: refusals, a full ring, lost completions, its one thread.
// poller_conformance_test.cc tests the contract that all pollers share.
#include "weft/sys/linux/uring_poller.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/sys/linux/test_seccomp.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"
#include "weft/sys/test_socket_pair.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

constexpr Duration kForever{-1};
constexpr Duration kAtOnce{0};

class Environment {
 public:
  explicit Environment(const char* value) {
    const char* const before = std::getenv(kName);
    before_ = before == nullptr ? "" : before;
    set(value);
  }
  ~Environment() { set(before_.empty() ? nullptr : before_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static constexpr const char* kName = "WEFT_POLLER";
  static void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(kName);
    } else {
      ::setenv(kName, value, 1);
    }
  }
  std::string before_;
};

TEST(MakePoller, IsEpollUnlessTheEnvironmentOrTheCallerSaysOtherwise) {
  const Environment none(nullptr);
  EXPECT_EQ(make_poller()->choice.kind, PollerKind::epoll);
  EXPECT_EQ(make_poller(PollerKind::epoll)->choice.kind, PollerKind::epoll);
  const bool works = UringPoller::make().has_value();
  const auto ringed = works ? PollerKind::io_uring : PollerKind::epoll;
  EXPECT_EQ(make_poller(PollerKind::io_uring)->choice.kind, ringed);
  {
    const Environment set("io_uring");
    EXPECT_EQ(make_poller()->choice.kind, ringed);
    EXPECT_EQ(make_poller(PollerKind::epoll)->choice.kind, PollerKind::epoll);
  }
  const Environment unknown("kqueue");
  EXPECT_EQ(make_poller()->choice.kind, PollerKind::epoll);
  EXPECT_EQ(make_poller()->choice.refusal, Errc::ok);
}

TEST(MakePoller, FallsBackToEpollAndSaysWhy) {
  const auto made = make_poller(PollerKind::io_uring, []() -> Result<std::unique_ptr<Poller>> {
    return Error(Errc::not_supported, "not today");
  });
  ASSERT_TRUE(made);
  EXPECT_EQ(made->choice.kind, PollerKind::epoll);
  EXPECT_STREQ(made->choice.refusal.text(), "not today");
  std::array<PollEvent, 4> events;
  made->poller->wake();
  EXPECT_EQ(*made->poller->wait(events, kForever), 0u);
}

TEST(MakePoller, FallsBackWhereASandboxForbidsTheRing) {
  for (const int call : test::kUringCalls) {
    bool refused = false;
    MadePoller made;
    std::thread([&] {  // a filter stays with its thread for good
      refused = test::refuse_call(call, EPERM);
      made = std::move(make_poller(PollerKind::io_uring)).value();
    })
        .join();
    if (!refused) {
      GTEST_SKIP() << "this system takes no seccomp filter";
    }
    EXPECT_EQ(made.choice.kind, PollerKind::epoll) << call;
    EXPECT_NE(made.choice.refusal, Errc::ok);
    EXPECT_TRUE(made.choice.refusal.os_errno() == EPERM || made.choice.refusal.os_errno() == ENOSYS);
  }
}

#if defined(WEFT_HAVE_URING)

using test::SocketPair;

// The answers that the tests make the kernel give, once or always.
int refused_with = 0;
unsigned features_taken = 0;
int lose_completions = 0;

int refuse() {
  errno = refused_with;
  return -1;
}

TEST(UringPollerRefusal, EachIsReported) {
  struct Case {
    int error;
    const char* word;
  };
  for (const Case& refusal : {Case{ENOSYS, "no io_uring"}, Case{EPERM, "forbidden"}, Case{EACCES, "forbidden"},
                              Case{EINVAL, "Linux 6.1"}, Case{ENOMEM, "RLIMIT_MEMLOCK"}, Case{EMFILE, "io_uring"}}) {
    refused_with = refusal.error;
    UringCalls calls = UringCalls::kSystem;
    calls.setup = [](unsigned, io_uring_params*) { return refuse(); };
    const auto made = UringPoller::make_with({}, calls);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().os_errno(), refusal.error);
    EXPECT_NE(std::string(made.error().text()).find(refusal.word), std::string::npos) << made.error().text();
  }
}

// With a real ring, which the kernel must permit.
class UringPollerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto made = UringPoller::make(); !made) {
      GTEST_SKIP() << "not here: " << made.error().message();
    }
  }
  void make(Uring::Shape shape, const UringCalls& calls = UringCalls::kSystem) {
    poller_ = std::move(UringPoller::make_with(shape, calls)).value();
  }
  std::vector<PollEvent> wait(Duration timeout, std::size_t capacity = 16) {
    std::vector<PollEvent> events(capacity);
    const auto count = poller_->wait(events, timeout);
    EXPECT_TRUE(count) << count.error().message();
    events.resize(count ? *count : 0);
    return events;
  }
  static void send(const Fd& fd) { EXPECT_EQ(write_some(fd.fd(), as_bytes("x")).bytes, 1u); }

  std::unique_ptr<Poller> poller_;
};

TEST_F(UringPollerTest, IsRefusedWhenFeaturesOrLaterCallsAre) {
  UringCalls calls = UringCalls::kSystem;
  calls.setup = [](unsigned entries, io_uring_params* params) {
    const int ring = UringCalls::kSystem.setup(entries, params);
    params->features &= ~features_taken;
    return ring;
  };
  for (const unsigned feature : {IORING_FEAT_NODROP, IORING_FEAT_EXT_ARG, IORING_FEAT_SINGLE_MMAP}) {
    features_taken = feature;
    EXPECT_EQ(UringPoller::make_with({}, calls).error().code(), Errc::not_supported);
  }
  refused_with = EPERM;
  calls = UringCalls::kSystem;
  calls.enter = [](int, unsigned, unsigned, unsigned, const void*, std::size_t) { return refuse(); };
  EXPECT_EQ(UringPoller::make_with({}, calls).error().os_errno(), EPERM);
  calls = UringCalls::kSystem;
  calls.configure = [](int, unsigned, void*, unsigned) { return refuse(); };
  EXPECT_EQ(UringPoller::make_with({}, calls).error().os_errno(), EPERM);
  calls.configure = [](int ring, unsigned operation, void* argument, unsigned count) {  // supports nothing
    return operation == IORING_REGISTER_PROBE ? 0 : UringCalls::kSystem.configure(ring, operation, argument, count);
  };
  EXPECT_EQ(UringPoller::make_with({}, calls).error().code(), Errc::not_supported);
}

// Many more descriptors than the ring has room for, in both directions.
TEST_F(UringPollerTest, AFullRingLosesNothing) {
  constexpr std::size_t kPairs = 100;
  for (const bool edge : {false, true}) {
    make({.submissions = 4, .completions = 8});
    const std::vector<SocketPair> pairs(kPairs);
    for (std::size_t i = 0; i < kPairs; ++i) {
      ASSERT_TRUE(poller_->add(pairs[i].near.fd(), Interest::readable, edge, i));
    }
    EXPECT_TRUE(wait(kAtOnce).empty());
    for (int round = 0; round < 3; ++round) {
      for (const SocketPair& pair : pairs) {
        send(pair.far);
      }
      std::vector<bool> seen(kPairs, false);
      for (std::size_t left = kPairs; left != 0;) {
        for (const PollEvent& event : wait(kForever, 3)) {
          left -= seen[event.tag] ? 0 : 1;
          seen[event.tag] = true;
        }
      }
      for (const SocketPair& pair : pairs) {
        std::array<std::uint8_t, 8> bytes{};
        EXPECT_EQ(read_some(pair.near.fd(), bytes).bytes, 1u);
      }
      while (!wait(kAtOnce).empty()) {  // events that were reported before the read
      }
    }
    for (const SocketPair& pair : pairs) {
      send(pair.far);
      ASSERT_TRUE(poller_->remove(pair.near.fd()));
    }
    EXPECT_TRUE(wait(kAtOnce).empty());
  }
}

TEST_F(UringPollerTest, ManyModificationsBetweenTwoWaitsAreOne) {
  make({.submissions = 4, .completions = 8});
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, true, 0));
  EXPECT_TRUE(wait(kAtOnce).empty());
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::readable, true, i));
    if (i % 3 == 0) {
      EXPECT_TRUE(wait(kAtOnce).empty());
    }
  }
  send(pair.far);
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, 100u);
  EXPECT_TRUE(wait(kAtOnce).empty());
}

TEST_F(UringPollerTest, AsksAnewWhenTheKernelLostCompletions) {
  UringCalls calls = UringCalls::kSystem;
  calls.enter = [](int ring, unsigned submit, unsigned least, unsigned flags, const void* argument, std::size_t size) {
    const int result = UringCalls::kSystem.enter(ring, submit, lose_completions > 0 ? 0 : least, flags, argument, size);
    if (lose_completions > 0) {
      --lose_completions;
      errno = EBADR;
      return -1;
    }
    return result;
  };
  make({}, calls);
  const SocketPair level;
  const SocketPair edge;
  ASSERT_TRUE(poller_->add(level.near.fd(), Interest::readable, false, 1));
  ASSERT_TRUE(poller_->add(edge.near.fd(), Interest::readable, true, 2));
  EXPECT_TRUE(wait(kAtOnce).empty());
  send(level.far);
  send(edge.far);
  lose_completions = 1;
  std::array<int, 3> seen{};
  while (seen[1] == 0 || seen[2] == 0) {
    for (const PollEvent& event : wait(kForever)) {
      ++seen[event.tag];
    }
  }
  std::array<std::uint8_t, 8> bytes{};
  EXPECT_EQ(read_some(level.near.fd(), bytes).bytes, 1u);
  while (!wait(kAtOnce).empty()) {  // events that were reported before the read
  }
  poller_->wake();
  EXPECT_TRUE(wait(kForever).empty());
  ASSERT_TRUE(poller_->remove(level.near.fd()));
  ASSERT_TRUE(poller_->remove(edge.near.fd()));
}

TEST_F(UringPollerTest, BelongsToTheThreadThatWaitsFirst) {
  make({});
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 7));  // the poller has no owner yet
  send(pair.far);
  std::thread([&] { EXPECT_EQ(wait(kForever).at(0).tag, 7u); }).join();
  std::array<PollEvent, 4> events;
  EXPECT_EQ(poller_->wait(events, kAtOnce).error().code(), Errc::invalid_state);
  poller_->wake();
  EXPECT_TRUE(poller_->remove(pair.near.fd()));
}

TEST_F(UringPollerTest, AnAbsentDescriptorFailsOnce) {
  make({});
  SocketPair pair;
  const int number = pair.near.fd();
  ASSERT_TRUE(poller_->add(number, Interest::readable, false, 3));
  pair.near.close();  // against the rules
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].failed);
  EXPECT_TRUE(wait(kAtOnce).empty());
  EXPECT_TRUE(poller_->remove(number));
}

#endif

}  // namespace
}  // namespace weft::sys
