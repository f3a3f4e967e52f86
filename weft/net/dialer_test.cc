// SPDX-License-Identifier: MIT
// Properties of single transports: bound endpoints, stale socket files, host names.
#include "weft/net/dialer.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "weft/net/listener.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

using sys::Interest;

std::unique_ptr<Listener> listen_on(const std::string& text, const sys::SocketOptions& options = {}) {
  auto listener = Listener::open(*parse_endpoint(text, true), options);
  EXPECT_TRUE(listener) << listener.error().message();
  return listener ? std::move(listener).value() : nullptr;
}

Error refused_listen(const std::string& text) { return Listener::open(*parse_endpoint(text, true), {}).error(); }

std::string port_of(const Listener& listener) {
  const std::string& text = listener.bound_endpoint();
  return text.substr(text.rfind(':') + 1);
}

Result<Progress> drive(Dialer& dialer, Result<Progress> progress) {
  while (progress && *progress == Progress::pending) {
    sys::PollFd polled{.fd = dialer.fd(), .want = dialer.interest()};
    EXPECT_EQ(*sys::poll_fds({&polled, 1}, std::chrono::seconds(10)), 1u);
    progress = dialer.finish();
  }
  return progress;
}

TEST(Listener, TellsItsExactEndpoint) {
  EXPECT_TRUE(listen_on("tcp://127.0.0.1:*")->bound_endpoint().starts_with("tcp://127.0.0.1:"));
  EXPECT_TRUE(listen_on("tcp://*:*")->bound_endpoint().starts_with("tcp://0.0.0.0:"));
  EXPECT_TRUE(listen_on("tcp://lo:0")->bound_endpoint().starts_with("tcp://127.0.0.1:"));
  EXPECT_NE(port_of(*listen_on("tcp://*:*")), "0");
  const std::string abstract = "ipc://@weft-exact-" + std::to_string(sys::process_id());  // free of other programs
  EXPECT_EQ(listen_on(abstract)->bound_endpoint(), abstract);
  if (const auto ipv6 = Listener::open(*parse_endpoint("tcp://*:*", true), {.ipv6 = true})) {
    EXPECT_TRUE((*ipv6)->bound_endpoint().starts_with("tcp://[::]:"));
  }
}

TEST(Listener, RefusesWhatIsNotHere) {
  EXPECT_EQ(refused_listen("tcp://192.0.2.1:*").code(), Errc::address_unavailable);
  EXPECT_EQ(refused_listen("ipc:///no/such/directory/s").code(), Errc::address_unavailable);
  EXPECT_EQ(refused_listen("inproc://x").code(), Errc::not_supported);
}

TEST(IpcListener, FreshPathHasADirectoryOfItsOwnThatGoes) {
  auto first = listen_on("ipc://*");
  auto second = listen_on("ipc://*");
  EXPECT_NE(first->bound_endpoint(), second->bound_endpoint());
  const std::filesystem::path path(first->bound_endpoint().substr(6));
  EXPECT_TRUE(std::filesystem::is_socket(path));
  first->close();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

class IpcFile : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(sys::remove_directory(directory_)); }

  const std::string directory_ = std::move(sys::make_private_directory()).value();
  const std::string path_ = directory_ + "/s";
  const std::string endpoint_ = "ipc://" + path_;
};

TEST_F(IpcFile, ALeftoverIsReplaced) {
  {
    const auto leftover = sys::open_unix_listener(*sys::SocketAddress::from_path(path_), {});
  }
  ASSERT_TRUE(std::filesystem::is_socket(path_));
  const auto listener = listen_on(endpoint_);
  ASSERT_NE(listener, nullptr);
  Dialer dialer(*parse_endpoint(endpoint_, false), {});
  EXPECT_EQ(*dialer.begin(), Progress::connected);
}

TEST_F(IpcFile, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(refused_listen(endpoint_).code(), Errc::address_in_use);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
  EXPECT_TRUE(sys::remove_file(path_));
}

TEST_F(IpcFile, AnEmptyFileThatKeepsTheNameIsReplaced) {
  {
    const std::ofstream file(path_);
  }
  const auto listener = listen_on(endpoint_);
  ASSERT_NE(listener, nullptr);
  EXPECT_TRUE(std::filesystem::is_socket(path_));
}

TEST_F(IpcFile, CloseLeavesAnotherListenersFileAlone) {
  const auto first = listen_on(endpoint_);
  ASSERT_TRUE(sys::remove_file(path_));  // the file is removed, and another listener binds there
  const auto second = listen_on(endpoint_);
  first->close();
  EXPECT_TRUE(std::filesystem::is_socket(path_));
}

TEST_F(IpcFile, OfManyBindersOfOneLeftoverExactlyOneWins) {
  for (int round = 0; round < 20; ++round) {
    {
      const auto leftover = sys::open_unix_listener(*sys::SocketAddress::from_path(path_), {});
    }
    std::vector<std::future<Result<std::unique_ptr<Listener>>>> binders;
    for (int i = 0; i < 4; ++i) {
      binders.push_back(
          std::async(std::launch::async, [this] { return Listener::open(*parse_endpoint(endpoint_, true), {}); }));
    }
    int winners = 0;
    std::vector<std::unique_ptr<Listener>> listeners;
    for (auto& binder : binders) {
      auto listener = binder.get();
      if (listener) {
        ++winners;
        listeners.push_back(std::move(listener).value());
      } else {
        EXPECT_EQ(listener.error().code(), Errc::address_in_use) << listener.error().message();
      }
    }
    EXPECT_EQ(winners, 1);
  }
}

TEST_F(IpcFile, ARelativePathIsRemovedAfterTheWorkingDirectoryChanged) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const auto listener = listen_on("ipc://s");
  std::filesystem::current_path(before);
  EXPECT_EQ(listener->bound_endpoint(), "ipc://s");
  listener->close();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(Dialer, ConnectsFromItsSourceAddress) {
  const auto listener = listen_on("tcp://127.0.0.1:*");
  Dialer dialer(*parse_endpoint("tcp://127.0.0.3:0;127.0.0.1:" + port_of(*listener), false), {});
  ASSERT_EQ(*drive(dialer, dialer.begin()), Progress::connected);
  sys::PollFd polled{.fd = listener->fd(), .want = Interest::readable};  // the dialer's end may be connected first
  ASSERT_EQ(*sys::poll_fds({&polled, 1}, std::chrono::seconds(10)), 1u);
  EXPECT_TRUE((*listener->try_accept())->peer_address().starts_with("127.0.0.3:"));
}

// The monitor's event of an attempt under way comes from there.
TEST(Dialer, AConnectionUnderWayIsPendingHoweverSoonItIsMade) {
  const auto listener = listen_on("tcp://127.0.0.1:*");
  Dialer dialer(*parse_endpoint("tcp://127.0.0.1:" + port_of(*listener), false), {});
  const auto begun = dialer.begin();
  EXPECT_EQ(*begun, Progress::pending);
  EXPECT_EQ(*drive(dialer, begun), Progress::connected);
}

TEST(Dialer, InprocIsNotDialled) {
  Dialer dialer(*parse_endpoint("inproc://x", false), {});
  EXPECT_EQ(dialer.begin().error().code(), Errc::not_supported);
}

struct Signal {
  std::promise<void> promise;
  std::function<void()> function() {
    return [this] { promise.set_value(); };
  }
  void wait() { promise.get_future().wait(); }
};

TEST(Dialer, ResolvesANameAndTriesEveryAddress) {
  const auto dead = std::make_unique<std::string>(port_of(*listen_on("tcp://127.0.0.1:*")));  // closed again at once
  const auto listener = listen_on("tcp://127.0.0.1:*");
  int lookups = 0;
  Resolver resolver([&](const std::string& host, std::uint16_t port, bool) -> Result<Resolver::Addresses> {
    EXPECT_EQ(host, "service.example");
    ++lookups;
    return Resolver::Addresses{
        *sys::SocketAddress::parse_numeric("127.0.0.1", static_cast<std::uint16_t>(std::stoi(*dead))),
        *sys::SocketAddress::parse_numeric("127.0.0.1", port)};
  });
  Dialer dialer(*parse_endpoint("tcp://service.example:" + port_of(*listener), false), {}, &resolver);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    Signal resolved;
    dialer.on_resolved(resolved.function());
    ASSERT_EQ(*dialer.begin(), Progress::resolving);
    EXPECT_EQ(dialer.fd(), -1);
    resolved.wait();
    const auto progress = drive(dialer, dialer.finish());
    ASSERT_TRUE(progress) << progress.error().message();
    EXPECT_EQ(*progress, Progress::connected);
    EXPECT_EQ(dialer.take_stream()->peer_address(), "127.0.0.1:" + port_of(*listener));
    EXPECT_EQ(lookups, attempt);  // each attempt looks the name up
  }
}

// DeadAddress: takes no connection and refuses none: its queue is full, and the kernel drops the packets of the next.
class DeadAddress {
 public:
  explicit DeadAddress(const char* host = "127.0.0.9") {
    sys::SocketOptions narrow;
    narrow.backlog = 0;
    listener_ = std::move(sys::open_tcp_listener(*sys::SocketAddress::parse_numeric(host, 0), narrow)).value();
    address_ = sys::local_address(listener_.fd()).value();
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(std::move(sys::open_tcp_connection(address_, nullptr, {})).value());
    }
  }
  [[nodiscard]] const sys::SocketAddress& address() const noexcept { return address_; }

 private:
  sys::Fd listener_;
  sys::SocketAddress address_;
  std::vector<sys::Connecting> fillers_;
};

// A dialer for a name with these addresses, after its look-up.
class NamedDialer {
 public:
  explicit NamedDialer(const Resolver::Addresses& addresses, Duration delay = Dialer::kAttemptDelay)
      : resolver_(
            [addresses](const std::string&, std::uint16_t, bool) -> Result<Resolver::Addresses> { return addresses; }),
        dialer_(*parse_endpoint("tcp://service.example:5555", false), {}, &resolver_) {
    dialer_.set_attempt_delay(delay);
    Signal resolved;
    dialer_.on_resolved(resolved.function());
    EXPECT_TRUE(dialer_.begin());
    resolved.wait();
  }
  [[nodiscard]] Dialer& operator*() noexcept { return dialer_; }
  [[nodiscard]] Dialer* operator->() noexcept { return &dialer_; }

 private:
  Resolver resolver_;
  Dialer dialer_;
};

sys::SocketAddress address_of(const Listener& listener) { return sys::local_address(listener.fd()).value(); }

TEST(Dialer, ADeadAddressDoesNotHoldUpTheNextOne) {
  const DeadAddress dead;
  const auto listener = listen_on("tcp://127.0.0.1:*");
  NamedDialer dialer({dead.address(), dead.address(), address_of(*listener)}, std::chrono::milliseconds(1));
  auto progress = dialer->finish();
  ASSERT_EQ(*progress, Progress::pending);
  EXPECT_EQ(dialer->tried(), 1u);
  EXPECT_EQ(*dialer->tried_address(), dead.address());
  progress = drive(*dialer, progress);
  ASSERT_TRUE(progress) << progress.error().message();
  EXPECT_EQ(*progress, Progress::connected);
  EXPECT_EQ(*dialer->tried_address(), address_of(*listener));
  const auto stream = dialer->take_stream();
  EXPECT_EQ(stream->peer_address(), address_of(*listener).to_text());
  EXPECT_EQ(dialer->fd(), -1);
}

TEST(Dialer, TheNextAddressIsNotTriedBeforeItsTime) {
  const auto listener = listen_on("tcp://127.0.0.1:*");
  const DeadAddress dead;
  NamedDialer dialer({address_of(*listener), dead.address()}, std::chrono::hours(1));
  const auto progress = drive(*dialer, dialer->finish());
  ASSERT_TRUE(progress);
  EXPECT_EQ(*progress, Progress::connected);
  EXPECT_EQ(dialer->tried(), 1u);
}

TEST(Dialer, AnAddressThatRefusesMakesRoomForTheNextAtOnce) {
  const DeadAddress dead;
  const auto listener = listen_on("tcp://127.0.0.1:*");
  const auto gone = address_of(*listen_on("tcp://127.0.0.1:*"));
  NamedDialer dialer({gone, gone, address_of(*listener)}, std::chrono::hours(1));
  const auto progress = drive(*dialer, dialer->finish());
  ASSERT_TRUE(progress) << progress.error().message();
  EXPECT_EQ(*progress, Progress::connected);
}

TEST(Dialer, TriesTheFamiliesInTurns) {
  const auto listener = Listener::open(*parse_endpoint("tcp://[::1]:*", true), {.ipv6 = true});
  if (!listener) {
    GTEST_SKIP() << "no IPv6 here";
  }
  const DeadAddress dead;
  NamedDialer dialer({dead.address(), dead.address(), dead.address(), address_of(**listener)},
                     std::chrono::milliseconds(1));
  const auto progress = drive(*dialer, dialer->finish());
  ASSERT_TRUE(progress) << progress.error().message();
  EXPECT_EQ(*progress, Progress::connected);
  EXPECT_LE(dialer->tried(), 3u);  // the second; a slow machine begins the third besides
}

TEST(Dialer, OfManyDeadAddressesItGivesUpTheOldest) {
  const DeadAddress dead;
  const auto listener = listen_on("tcp://127.0.0.1:*");
  Resolver::Addresses addresses(3 * Dialer::kAtOnceMax, dead.address());
  addresses.push_back(address_of(*listener));
  NamedDialer dialer(addresses, Duration(0));
  const auto progress = drive(*dialer, dialer->finish());
  ASSERT_TRUE(progress) << progress.error().message();
  EXPECT_EQ(*progress, Progress::connected);
}

TEST(Dialer, FailsWithTheLastReasonWhenEveryAddressFails) {
  const std::string dead = port_of(*listen_on("tcp://127.0.0.1:*"));
  Resolver resolver([](const std::string&, std::uint16_t port, bool) -> Result<Resolver::Addresses> {
    return Resolver::Addresses(3, *sys::SocketAddress::parse_numeric("127.0.0.1", port));
  });
  Signal resolved;
  Dialer dialer(*parse_endpoint("tcp://service.example:" + dead, false), {}, &resolver);
  dialer.on_resolved(resolved.function());
  ASSERT_TRUE(dialer.begin());
  resolved.wait();
  const Error error = drive(dialer, dialer.finish()).error();
  EXPECT_EQ(error.code(), Errc::connection_failed);
  EXPECT_EQ(error.os_errno(), ECONNREFUSED);
}

TEST(Dialer, ReportsAnUnresolvedName) {
  Resolver resolver([](const std::string&, std::uint16_t, bool) -> Result<Resolver::Addresses> {
    return Error(Errc::name_unresolved);
  });
  Signal resolved;
  Dialer dialer(*parse_endpoint("tcp://nowhere.example:1", false), {}, &resolver);
  dialer.on_resolved(resolved.function());
  ASSERT_EQ(*dialer.begin(), Progress::resolving);
  resolved.wait();
  EXPECT_EQ(dialer.finish().error().code(), Errc::name_unresolved);
  EXPECT_EQ(dialer.finish().error().code(), Errc::invalid_state);
}

TEST(Dialer, CancelDuringALookupSilencesIt) {
  std::promise<void> gate;
  std::shared_future<void> open(gate.get_future());
  std::atomic<int> calls{0};
  {
    Resolver resolver([&](const std::string&, std::uint16_t, bool) -> Result<Resolver::Addresses> {
      open.wait();
      return Error(Errc::name_unresolved);
    });
    Dialer dialer(*parse_endpoint("tcp://slow.example:1", false), {}, &resolver);
    dialer.on_resolved([&] { calls.fetch_add(1); });
    ASSERT_EQ(*dialer.begin(), Progress::resolving);
    EXPECT_EQ(*dialer.finish(), Progress::resolving);  // too early
    dialer.cancel();
    EXPECT_EQ(dialer.finish().error().code(), Errc::invalid_state);
    gate.set_value();
  }
  EXPECT_EQ(calls.load(), 0);
}

TEST(Dialer, UsesTheSharedResolver) {
  const auto listener = listen_on("tcp://127.0.0.1:*");
  Signal resolved;
  Dialer dialer(*parse_endpoint("tcp://localhost:" + port_of(*listener), false), {});
  dialer.on_resolved(resolved.function());
  ASSERT_EQ(*dialer.begin(), Progress::resolving);
  resolved.wait();
  EXPECT_EQ(*drive(dialer, dialer.finish()), Progress::connected);
}

}  // namespace
}  // namespace weft::net
