// SPDX-License-Identifier: MIT
// Host names whose look-up is slow. This program answers them itself.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "weft/sys/address.h"
#include "weft/sys/socket.h"

namespace weft::conformance {
namespace {

// FakeNames: names of this program only. Affinity: any thread.
class FakeNames {
 public:
  struct Name {
    std::vector<std::string> addresses;
    std::shared_future<void> open;  // the look-up waits for it, if it is valid
    int lookups = 0;
  };

  static FakeNames& instance() {
    static FakeNames names;
    return names;
  }
  void put(const std::string& host, Name name) {
    const std::lock_guard lock(mutex_);
    names_[host] = std::move(name);
  }
  [[nodiscard]] int lookups(const std::string& host) {
    const std::lock_guard lock(mutex_);
    return names_[host].lookups;
  }
  // Empty: the system resolves it.
  [[nodiscard]] std::vector<std::string> look_up(const std::string& host) {
    std::unique_lock lock(mutex_);
    const auto found = names_.find(host);
    if (found == names_.end()) {
      return {};
    }
    ++found->second.lookups;
    const Name name = found->second;
    lock.unlock();
    if (name.open.valid()) {
      name.open.wait();
    }
    return name.addresses;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Name> names_;
};

}  // namespace
}  // namespace weft::conformance

// In place of the system's. The system's freeaddrinfo() frees the lists made here: each element was its own list.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto kOfSystem = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::vector<std::string> addresses =
      host == nullptr ? std::vector<std::string>() : weft::conformance::FakeNames::instance().look_up(host);
  if (addresses.empty()) {
    return kOfSystem(host, service, hints, list);
  }
  for (addrinfo** end = list; const std::string& address : addresses) {
    if (const int code = kOfSystem(address.c_str(), service, hints, end); code != 0) {
      return code;
    }
    end = &(*end)->ai_next;
  }
  return 0;
}

namespace weft::conformance {
namespace {

class Names : public testing::Test {
 protected:
  static Socket make(Context& context, SocketType type) {
    Socket socket = std::move(context.socket(type)).value();
    EXPECT_TRUE(socket.set(option::receive_timeout, 20s));
    EXPECT_TRUE(socket.set(option::linger, 0ms));
    EXPECT_TRUE(socket.set(option::reconnect_interval, 1ms));
    return socket;
  }
  // The endpoint of the socket at another host.
  static std::string at(const std::string& host, const std::string& endpoint) {
    return "tcp://" + host + endpoint.substr(endpoint.rfind(':'));
  }

  Context context_;
  Socket pull_ = make(context_, SocketType::pull);
  Socket push_ = make(context_, SocketType::push);
  std::string endpoint_ = pull_.bind("tcp://127.0.0.1:*").value();
};

TEST_F(Names, TheTimeForConnectingDoesNotCountTheLookUp) {
  std::promise<void> gate;
  FakeNames::instance().put("slow.weft.test", {{"127.0.0.1"}, gate.get_future().share()});
  ASSERT_TRUE(push_.set(option::connect_timeout, 200ms));
  ASSERT_TRUE(push_.watch_events());
  ASSERT_TRUE(push_.connect(at("slow.weft.test", endpoint_)));
  EXPECT_EQ(push_.next_event(300ms).error(), Errc::timed_out) << "the attempt ended with its look-up under way";
  EXPECT_EQ(FakeNames::instance().lookups("slow.weft.test"), 1);
  gate.set_value();
  ASSERT_TRUE(push_.send("hello"));
  EXPECT_EQ(pull_.recv()->text(), "hello");
}

// The first address takes no connection and refuses none: its queue is full, and the kernel drops the packets.
TEST_F(Names, ADeadAddressOfANameDoesNotHideALivingOne) {
  sys::SocketOptions narrow;
  narrow.backlog = 0;
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)));
  const auto address = sys::SocketAddress::parse_numeric("127.0.0.9", port).value();
  const auto dead = sys::open_tcp_listener(address, narrow);
  ASSERT_TRUE(dead);
  std::vector<sys::Connecting> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(std::move(sys::open_tcp_connection(address, nullptr, {})).value());
  }
  FakeNames::instance().put("two.weft.test", {{"127.0.0.9", "127.0.0.1"}, {}});
  for (const Duration timeout : {Duration(200ms), Duration(0)}) {
    Socket push = make(context_, SocketType::push);
    ASSERT_TRUE(push.set(option::connect_timeout, timeout));
    ASSERT_TRUE(push.watch_events());
    ASSERT_TRUE(push.connect(at("two.weft.test", endpoint_)));
    ASSERT_TRUE(push.send("hello"));
    EXPECT_EQ(pull_.recv()->text(), "hello");
    std::vector<std::string> told;
    for (auto event = push.next_event(20s); event; event = push.next_event(20s)) {
      EXPECT_EQ(event->endpoint, at("two.weft.test", endpoint_));
      told.push_back(std::string(event_name(event->kind)) + ' ' + event->address);
      if (event->kind == EventKind::connected) {
        break;
      }
    }
    ASSERT_GE(told.size(), 2u);
    EXPECT_EQ(told.front(), "connect delayed " + at("127.0.0.9", endpoint_));
    EXPECT_EQ(told.back(), "connected " + at("127.0.0.1", endpoint_));
  }
}

TEST_F(Names, AGoodNameDoesNotWaitForManyThatHang) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::vector<Socket> others;
  for (int i = 0; i < 20; ++i) {
    const std::string host = "hangs" + std::to_string(i) + ".weft.test";
    FakeNames::instance().put(host, {{"127.0.0.1"}, open});
    others.push_back(make(context_, SocketType::push));
    ASSERT_TRUE(others.back().connect(at(host, endpoint_)));
  }
  FakeNames::instance().put("good.weft.test", {{"127.0.0.1"}, {}});
  ASSERT_TRUE(push_.connect(at("good.weft.test", endpoint_)));
  ASSERT_TRUE(push_.send("hello"));
  EXPECT_EQ(pull_.recv()->text(), "hello");
  gate.set_value();
}

}  // namespace
}  // namespace weft::conformance
