// SPDX-License-Identifier: MIT
// Market data: a publisher that never waits, a recorder that misses nothing, and a display that is slow and so gets the
// newest price only. The prices that the display skips are counted.
#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <thread>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

constexpr int kPrices = 2000;  // of each symbol
const std::string kLast = "#" + std::to_string(kPrices);

// One part each, "AAPL 188.20 #17": the topic is the beginning, and `conflate` keeps messages of one part.
Result<void> publish(Socket& publisher) {
  for (int i = 1; i <= kPrices; ++i) {
    for (const char* symbol : {"AAPL", "MSFT"}) {
      const std::string price = std::to_string(188 + i % 7) + "." + std::to_string(10 + i % 90);
      WEFT_TRY(publisher.send(symbol + (" " + price + " #" + std::to_string(i))));
    }
  }
  return {};
}

// Wants every price: its queue has room for all of them.
Result<int> record(Context& context, const std::string& endpoint) {
  Socket socket = WEFT_TRY(context.socket(SocketType::sub));
  WEFT_TRY(socket.set(option::receive_high_water_mark, 2 * kPrices));
  WEFT_TRY(socket.subscribe(""));
  WEFT_TRY(socket.connect(endpoint));
  int recorded = 0;
  for (; recorded < 2 * kPrices; ++recorded) {
    WEFT_TRY(socket.recv(10s));
  }
  return recorded;
}

// Wants the newest price when it has time to draw it.
Result<int> display(Context& context, const std::string& endpoint) {
  Socket socket = WEFT_TRY(context.socket(SocketType::sub));
  WEFT_TRY(socket.set(option::conflate, true));
  WEFT_TRY(socket.subscribe("AAPL "));
  WEFT_TRY(socket.connect(endpoint));
  int drawn = 0;
  for (std::string newest; !newest.ends_with(kLast); ++drawn) {
    newest = WEFT_TRY(socket.recv(10s)).to_string();
    std::this_thread::sleep_for(1ms);  // draws
  }
  const Statistics counts = WEFT_TRY(socket.statistics());
  std::printf("the display drew %d prices and skipped %llu\n", drawn,
              static_cast<unsigned long long>(counts.dropped_conflated));
  return drawn;
}

Result<void> run() {
  Context context;
  Socket publisher = WEFT_TRY(context.socket(SocketType::xpub));
  WEFT_TRY(publisher.set(option::send_high_water_mark, 2 * kPrices));  // for a reader that stops for a moment
  const std::string endpoint = WEFT_TRY(publisher.bind("tcp://127.0.0.1:*"));
  auto recorded = std::async(std::launch::async, [&] { return record(context, endpoint); });
  auto drawn = std::async(std::launch::async, [&] { return display(context, endpoint); });
  for (int i = 0; i < 2; ++i) {
    WEFT_TRY(publisher.recv(10s));  // a subscription: the publisher begins when both readers are there
  }
  WEFT_TRY(publish(publisher));
  const int all = WEFT_TRY(recorded.get());
  const int some = WEFT_TRY(drawn.get());
  const Statistics counts = WEFT_TRY(publisher.statistics());
  std::printf("the recorder got %d of %d prices; the publisher dropped %llu\n", all, 2 * kPrices,
              static_cast<unsigned long long>(counts.dropped_full));
  return some <= kPrices ? Result<void>() : Error(Errc::other, "the display drew a price twice");
}

int main() {
  if (const auto result = run(); !result) {
    std::fprintf(stderr, "market_data: %s\n", result.error().message().c_str());
    return 1;
  }
}
