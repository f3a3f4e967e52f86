// SPDX-License-Identifier: MIT
// The generator of datagrams beside servers that lie: any wrong answer must end the measurement.
#include "bench/server/udp_load.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace bench {
namespace {

using Datagram = std::vector<std::uint8_t>;
// The answers to the data with a number.
using AnswerData = std::function<std::vector<Datagram>(const Datagram& question, std::uint64_t number)>;

// Opens a session for each client, and answers its data in a thread of its own.
class UdpServer {
 public:
  explicit UdpServer(AnswerData answer) : answer_(std::move(answer)), fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~UdpServer() {
    ends_ = true;
    thread_.join();
    close(fd_);
  }
  UdpServer(const UdpServer&) = delete;
  UdpServer& operator=(const UdpServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t strangers() const { return strangers_; }

 private:
  void run() {
    std::array<std::uint8_t, 2048> room{};
    while (!ends_) {
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, 10) != 1) {
        continue;
      }
      sockaddr_in from{};
      socklen_t from_size = sizeof from;
      const ssize_t size = recvfrom(fd_, room.data(), room.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_size);
      Datagram question(room.begin(), room.begin() + std::max<ssize_t>(size, 0));
      if (from.sin_addr.s_addr != htonl(INADDR_LOOPBACK)) {
        ++strangers_;
        continue;
      }
      std::vector<Datagram> answers;
      if (question[0] == kUdpHello || question[0] == kUdpOpen) {
        question[0] = question[0] == kUdpHello ? kUdpChallenge : kUdpOpened;
        answers = {question};
      } else if (question[0] == kUdpData) {
        answers = answer_(question, number_++);
      }
      for (const Datagram& answer : answers) {
        (void)sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), from_size);
      }
    }
  }

  const AnswerData answer_;
  const int fd_;
  std::uint16_t port_ = 0;
  std::uint64_t number_ = 0;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> strangers_{0};
  std::thread thread_;
};

constexpr std::uint64_t kUdpLie = 5;  // the number of the datagram that gets a wrong answer

// The generator's complaint; "": none.
std::string verdict_on_udp(const AnswerData& answer, unsigned patience_ms = 20'000) {
  const UdpServer server(answer);
  const auto result = std::make_unique<LoadResult>();
  try {
    UdpLoad load({server.port(), 1, 64, 4, patience_ms});
    load.open(*result);
    load.echo(20, *result);
    EXPECT_EQ(result->trips.total(), 20U);
    load.finish();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

std::string verdict_on_udp_lie(const std::function<std::vector<Datagram>(Datagram)>& lie, unsigned patience_ms) {
  return verdict_on_udp(
      [&](const Datagram& question, std::uint64_t number) {
        return number == kUdpLie ? lie(question) : std::vector<Datagram>{question};
      },
      patience_ms);
}

TEST(UdpLoad, BelievesAServerThatAnswersEverything) {
  EXPECT_EQ(verdict_on_udp([](const Datagram& question, std::uint64_t) { return std::vector<Datagram>{question}; }),
            "");
}

TEST(UdpLoad, FindsALostAnswer) {
  const std::string verdict = verdict_on_udp_lie([](const Datagram&) { return std::vector<Datagram>{}; }, 20'000);
  EXPECT_NE(verdict.find("lost"), std::string::npos) << verdict;
}

TEST(UdpLoad, FindsAnAnswerThatComesTwice) {
  const std::string verdict =
      verdict_on_udp_lie([](const Datagram& one) { return std::vector<Datagram>{one, one}; }, 20'000);
  EXPECT_NE(verdict.find("twice"), std::string::npos) << verdict;
}

TEST(UdpLoad, FindsADamagedAnswerAndAForeignCookie) {
  for (const std::size_t at : {std::size_t{1}, kUdpHeader + 20}) {
    const std::string verdict = verdict_on_udp_lie(
        [at](Datagram one) {
          one[at] ^= 1;
          return std::vector<Datagram>{one};
        },
        20'000);
    EXPECT_NE(verdict.find(at == 1 ? "wrong header" : "damaged"), std::string::npos) << verdict;
  }
}

TEST(UdpLoad, GivesUpOnASilentServer) {
  const std::string verdict =
      verdict_on_udp([](const Datagram&, std::uint64_t) { return std::vector<Datagram>{}; }, 50);
  EXPECT_NE(verdict.find("no progress"), std::string::npos) << verdict;
}

TEST(UdpFlood, ComesFromAnotherAddressAtItsRate) {
  const UdpServer server([](const Datagram& question, std::uint64_t) { return std::vector<Datagram>{question}; });
  UdpFlood flood(server.port());
  flood.tick(1);
  EXPECT_EQ(flood.sent(), 0U);
  flood.tick(1 + 1'000'000'000 / UdpFlood::kPerSecond * 10);
  EXPECT_EQ(flood.sent(), 10U);
  for (int i = 0; i < 10; ++i) {
    flood.tick(1'000'000'000);
  }
  EXPECT_EQ(flood.sent(), UdpFlood::kWindow) << "no answer came";
  while (server.strangers() < 10) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace bench
