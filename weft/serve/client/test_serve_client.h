// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client.h"
#include "weft/serve/server/test_client.h"

// For tests of clients: a server that runs script_, and coroutines on core 0.
namespace weft::serve::test {

using HeaderClient = serve::Client<HeaderCodec>;

inline constexpr FrameHeader kOne{1, 0};

template <typename C = HeaderClient>
std::unique_ptr<C> open_client(const std::string& endpoint, ClientOptions options = {},
                               std::shared_ptr<ClientHost> host = nullptr) {
  if (options.reconnect_first == ClientOptions().reconnect_first) {
    options.reconnect_first = std::chrono::milliseconds(2);
    options.reconnect_max = std::chrono::milliseconds(20);
  }
  if (options.connect_timeout == ClientOptions().connect_timeout) {
    options.connect_timeout = kLong;  // a busy machine may need that long
  }
  if (host == nullptr) {
    host = std::make_shared<ClientHost>(*rt::Core::current());
  }
  auto client = C::open(std::move(host), endpoint, std::move(options));
  EXPECT_TRUE(client) << client.error().message();
  return std::move(client).value();
}

[[nodiscard]] inline Instant soon() { return rt::Loop::current()->now() + std::chrono::milliseconds(1); }
[[nodiscard]] inline Instant in_long() { return sys::now() + kLong; }

// Sends the text and returns the text of the response.
template <typename C>
rt::Task<Result<std::string>> ask(C* client, typename C::Header header, std::string text, Instant deadline = kNever) {
  const auto response = co_await client->request(header, as_bytes(text), deadline);
  if (!response) {
    co_return response.error();
  }
  co_return std::string(as_text(response->body()));
}
template <typename C>
rt::Task<void> ask_into(C* client, typename C::Header header, std::string text, Result<std::string>* into,
                        Instant deadline = kNever) {
  *into = co_await ask(client, header, std::move(text), deadline);
}

class ClientFixture : public ServerTest {
 protected:
  // Runs the task on core 0 and waits for its end.
  void run(rt::Task<void> task) {
    auto future = rt::spawn(runtime_->core(0).loop(), std::move(task));
    ASSERT_TRUE(future.wait_until(sys::now() + 2 * kLong));
    const auto ended = future.get();
    EXPECT_TRUE(ended) << ended.error().message();
  }
};

}  // namespace weft::serve::test
