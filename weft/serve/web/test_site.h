// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "weft/base/endian.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web/test_websocket.h"
#include <gtest/gtest.h>

// For tests: a server with a site, and the requests and replies of its clients.
namespace weft::serve::web::test {

using serve::test::Client;
using serve::test::kLong;

// --- HTTP ---

inline const std::string kHost = " HTTP/1.1\r\nHost: x\r\n";

inline std::string get(const std::string& path) { return "GET " + path + kHost + "\r\n"; }
inline std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + kHost + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

struct Reply {
  int status = 0;
  std::string head;  // without the line of its date
  std::string body;
};

// Reads one answer, and a body only if one is due.
inline Reply read_reply(Client& client, bool with_body = true) {
  Reply reply;
  while (!reply.head.ends_with("\r\n\r\n")) {
    const std::string byte = client.read(1);
    if (byte.empty()) {
      return {};
    }
    reply.head += byte;
  }
  EXPECT_TRUE(reply.head.starts_with("HTTP/1.1 ")) << reply.head;
  reply.status = std::atoi(reply.head.c_str() + 9);
  const std::size_t length = reply.head.find("Content-Length: ");
  if (with_body && length != std::string::npos) {
    reply.body = client.read(std::strtoul(reply.head.c_str() + length + 16, nullptr, 10));
  }
  const std::size_t date = reply.head.find("Date: ");
  if (date != std::string::npos) {
    reply.head.erase(date, reply.head.find("\r\n", date) + 2 - date);
  }
  return reply;
}

// Reads chunks to their end; "!" at the end of the content: the stream ended before.
inline std::string read_chunked(Client& client) {
  std::string content;
  for (;;) {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = client.read(1);
      if (byte.empty()) {
        return content + "!";
      }
      line += byte;
    }
    const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
    const std::string chunk = client.read(size + 2);
    if (chunk.size() < size + 2) {
      return content + "!";
    }
    content += chunk.substr(0, size);
    if (size == 0) {
      return content;
    }
  }
}

class SiteTest : public serve::test::ServerTest {
 protected:
  std::string listen_web(const HttpLimits& limits = {}, const ListenerOptions& options = {}) {
    if (server_ == nullptr) {
      make_server();
    }
    site_ = std::make_unique<Site>(std::move(router_), limits);
    auto bound = server_->listen<HttpCodec>("tcp://127.0.0.1:0", options, site_->services(), site_->codec());
    EXPECT_TRUE(bound) << bound.error().message();
    return *bound;
  }
  // Waits until the site's counters fulfil the condition: a core counts after its peers have received the result.
  template <typename Condition>
  void until_counted(Condition condition) {
    for (const Instant limit = sys::now() + kLong; !condition(site_->counts()) && sys::now() < limit;) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(condition(site_->counts()));
  }

  Router router_;
  std::unique_ptr<Site> site_;
};

// --- WebSocket ---

inline std::string request_of(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" + fields + "\r\n";
}

inline std::string read_head(Client& client) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = client.read(1);
    if (byte.empty()) {
      break;
    }
    head += byte;
  }
  return head;
}
inline int status_of_head(const std::string& head) { return head.size() < 12 ? 0 : std::stoi(head.substr(9, 3)); }

// Reads one frame of the server, with its header.
inline std::string read_frame(Client& client) {
  std::string frame = client.read(2);
  if (frame.size() < 2) {
    return frame;
  }
  std::size_t size = static_cast<unsigned char>(frame[1]);
  if (size >= 126) {
    const std::string more = client.read(size == 126 ? 2 : 8);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(more.data());
    size = more.size() == 2 ? load_big_endian<std::uint16_t>(bytes) : load_big_endian<std::uint64_t>(bytes);
    frame += more;
  }
  return frame + client.read(size);
}

struct Echo {
  void on_message(WebSocketSession& session, const Message& message) { (void)session.send(message.kind, message.body); }
};

class WebSocketTest : public SiteTest {
 protected:
  std::string listen_echo(WebSocketOptions options = {}) {
    EXPECT_TRUE(router_.websocket("/echo", [] { return Echo(); }, std::move(options)));
    return listen_web();
  }
  static void upgrade(Client& client, const std::string& path = "/echo", const std::string& fields = "") {
    client.write(request_of(path, fields));
    EXPECT_EQ(status_of_head(read_head(client)), 101);
  }
};

}  // namespace weft::serve::web::test
