// SPDX-License-Identifier: MIT
// The load generator beside web servers that end each connection, or that send each message to all.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/server/host.h"
#include "bench/server/load.h"
#include "bench/server/load_cell.h"
#include <gtest/gtest.h>

namespace bench {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

void send_whole(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}
void send_text(int fd, const std::string& text) {
  send_whole(fd, Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}
// Reads a head; empty: the stream has ended before.
std::string read_web_head(int fd) {
  std::string head;
  for (char byte = 0; !head.ends_with("\r\n\r\n"); head += byte) {
    if (recv(fd, &byte, 1, 0) != 1) {
      return {};
    }
  }
  return head;
}

// Runs `serve` with each connection, one after the other, or with `together` of them at a time.
class WebServer {
 public:
  WebServer(std::size_t together, std::function<void(const std::vector<int>&)> serve)
      : listener_(listen_on(port_, false)), thread_([this, together, serve = std::move(serve)] {
          for (std::vector<int> fds; accept_one(fds);) {
            if (fds.size() == together) {
              serve(fds);
              end(fds);
            }
          }
        }) {}
  ~WebServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  bool accept_one(std::vector<int>& fds) const {
    pollfd ready{listener_, POLLIN, 0};
    poll(&ready, 1, -1);
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      end(fds);
      return false;
    }
    fds.push_back(fd);
    return true;
  }
  static void end(std::vector<int>& fds) {
    for (const int fd : fds) {
      close(fd);
    }
    fds.clear();
  }

  std::uint16_t port_ = 0;
  const int listener_;
  std::thread thread_;
};

// --- a connection for each request ---

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde";

// The complaint about a server; "": none. `answer` gets a connection whose request was read, and its number.
std::string verdict_on_closing(const std::function<void(int fd, int number)>& answer, unsigned patience_ms = 20'000) {
  int connections = 0;
  const WebServer server(1, [&](const std::vector<int>& fds) {
    const std::string head = read_web_head(fds[0]);
    EXPECT_TRUE(head.empty() || head.find("\r\nConnection: close\r\n") != std::string::npos) << head;
    if (!head.empty()) {
      answer(fds[0], connections++);
    }
  });
  const auto result = std::make_unique<LoadResult>();
  try {
    Load load({server.port(), 3, 5, 1, patience_ms, LoadWire::http, WebStyle::close});
    load.open(*result);
    EXPECT_EQ(result->messages, 3U);
    load.echo(20, 0, *result);
    EXPECT_EQ(result->messages, 20U);
    EXPECT_EQ(result->trips.total(), 20U);
    load.finish();
  } catch (const LoadError& error) {
    return error.what();
  }
  EXPECT_EQ(connections, 23);
  return "";
}

TEST(LoadThatCloses, HasAConnectionForEachRequest) {
  EXPECT_EQ(verdict_on_closing([](int fd, int) { send_text(fd, kHello); }), "");
}

TEST(LoadThatCloses, FindsMoreThanOneAnswer) {
  const std::string verdict = verdict_on_closing([](int fd, int) { send_text(fd, kHello + kHello); });
  EXPECT_NE(verdict.find("to nothing"), std::string::npos) << verdict;
}

TEST(LoadThatCloses, FindsAnAnswerThatIsCut) {
  const std::string verdict = verdict_on_closing(
      [](int fd, int number) { send_text(fd, kHello.substr(0, kHello.size() - (number == 9 ? 1 : 0))); });
  EXPECT_NE(verdict.find("closed"), std::string::npos) << verdict;
}

TEST(LoadThatCloses, FindsAServerThatDoesNotClose) {
  const std::string verdict = verdict_on_closing(
      [](int fd, int number) {
        send_text(fd, kHello);
        char byte = 0;
        while (number == 9 && recv(fd, &byte, 1, 0) > 0) {  // until the generator gives up
        }
      },
      50);
  EXPECT_NE(verdict.find("no progress"), std::string::npos) << verdict;
}

// --- a message for all ---

constexpr std::uint32_t kSize = 64;
constexpr std::size_t kAll = 3;

// Reads a message of the generator; returns it as a server's. Empty: a close, or the end.
Bytes8 read_message(int fd) {
  Bytes8 frame(2 + 4 + kSize);
  if (recv(fd, frame.data(), 2, MSG_WAITALL) != 2 || frame[0] != 0x82 ||
      recv(fd, frame.data() + 2, frame.size() - 2, MSG_WAITALL) != static_cast<ssize_t>(frame.size() - 2)) {
    return {};
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    frame[6 + i] ^= frame[2 + i % 4];
  }
  frame[1] &= 0x7f;
  frame.erase(frame.begin() + 2, frame.begin() + 6);
  return frame;
}

// How often message `number` goes to the connection.
using Copies = std::function<int(int number, std::size_t connection)>;

std::string verdict_on_publishing(const Copies& copies, unsigned patience_ms = 20'000) {
  const WebServer server(kAll, [&](const std::vector<int>& fds) {
    for (const int fd : fds) {
      EXPECT_TRUE(read_web_head(fd).starts_with("GET /publish "));
      send_text(fd, "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + std::string(kWebSocketAccept) +
                        "\r\n\r\n");
    }
    int number = 0;
    for (Bytes8 message = read_message(fds[0]); !message.empty(); message = read_message(fds[0]), ++number) {
      for (std::size_t i = 0; i < fds.size(); ++i) {
        for (int copy = copies(number, i); copy > 0; --copy) {
          send_whole(fds[i], message);
        }
      }
    }
  });
  const auto result = std::make_unique<LoadResult>();
  try {
    Load load({server.port(), kAll, kSize, 2, patience_ms, LoadWire::websocket, WebStyle::publish});
    load.open(*result);
    EXPECT_EQ(result->messages, kAll);
    for (int i = 0; i < 2; ++i) {
      load.publish(kAll * 20 - 1, *result);
      EXPECT_EQ(result->messages, kAll * 20);
      EXPECT_EQ(result->trips.total(), kAll * 20);
    }
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(LoadThatPublishes, CountsEachMessageOnEachConnection) {
  EXPECT_EQ(verdict_on_publishing([](int, std::size_t) { return 1; }), "");
}

TEST(LoadThatPublishes, FindsAMessageThatOneConnectionDoesNotGet) {
  const std::string verdict =
      verdict_on_publishing([](int number, std::size_t i) { return number == 9 && i == 1 ? 0 : 1; }, 50);
  EXPECT_TRUE(verdict.find("lost") != std::string::npos || verdict.find("no progress") != std::string::npos) << verdict;
}

TEST(LoadThatPublishes, FindsAMessageThatComesTwice) {
  const std::string verdict =
      verdict_on_publishing([](int number, std::size_t i) { return number == 9 && i == 2 ? 2 : 1; });
  EXPECT_TRUE(verdict.find("twice") != std::string::npos || verdict.find("to nothing") != std::string::npos) << verdict;
}

TEST(LoadCell, HasAStyleThatFitsItsPattern) {
  EXPECT_EQ(parse_load_cell("http/5/x16/close").style, WebStyle::close);
  EXPECT_EQ(parse_load_cell("http/1024/x16/depth4/file").style, WebStyle::file);
  EXPECT_EQ(parse_load_cell("websocket/64/x1000/publish").style, WebStyle::publish);
  for (const char* name :
       {"http/5/x16/depth4/close", "http/5/x16/publish", "websocket/64/x1/close", "echo/64/x1/file"}) {
    EXPECT_THROW(parse_load_cell(name), LoadError) << name;
  }
}

}  // namespace
}  // namespace bench
