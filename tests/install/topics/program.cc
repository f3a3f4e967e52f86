// SPDX-License-Identifier: MIT
// `program kept|not_supported DIRECTORY`: publishes and subscribes between two handles of a local fleet, then keeps
// messages in a stream. The second word is the expected result of a stream that is to survive power loss.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

weft::Instant soon() { return weft::sys::now() + 20s; }

weft::Result<void> expect(bool so, weft::StaticText what) {
  return so ? weft::Result<void>() : weft::Error(weft::Errc::invalid_state, what);
}

weft::Result<void> publish_and_subscribe(weft::Topics& one, weft::Topics& other) {
  weft::Subscription all = WEFT_TRY(other.subscribe("room.*"));
  weft::Publisher publisher = WEFT_TRY(one.publisher("room.tea"));
  (void)WEFT_TRY(publisher.wait_subscribers(1, soon()));
  WEFT_TRY(publisher.publish("the kettle boils"));
  const weft::TopicMessage message = WEFT_TRY(all.next_until(soon()));
  return expect(message.topic() == "room.tea" && message.text() == "the kettle boils", "another message came");
}

weft::Result<void> keep(weft::Topics& one, weft::Topics& other) {
  const weft::StreamOptions orders = {.name = "orders", .topics = {"orders.>"}};
  weft::Stream stream = WEFT_TRY(one.stream(orders));
  for (int i = 1; i <= 100; ++i) {
    const weft::Published kept = WEFT_TRY(stream.publish("orders.eu", std::to_string(i)));
    WEFT_TRY(expect(kept.sequence == static_cast<std::uint64_t>(i), "another sequence"));
  }
  weft::Stream same = WEFT_TRY(other.stream(orders));
  WEFT_TRY(expect(same.survives() == weft::Survives::power, "survives less"));
  weft::Reader reader = WEFT_TRY(same.read());
  for (int i = 1; i <= 100; ++i) {
    const weft::KeptMessage message = WEFT_TRY(reader.next_until(soon()));
    WEFT_TRY(expect(message.text() == std::to_string(i), "another message is kept"));
  }
  return {};
}

weft::Result<void> run(bool kept, const char* directory) {
  weft::Context context;
  weft::TopicsOptions options;
  options.runtime_directory = directory;
  weft::Topics one = WEFT_TRY(weft::Topics::open(context, options));
  weft::Topics other = WEFT_TRY(weft::Topics::open(context, options));
  WEFT_TRY(publish_and_subscribe(one, other));
  const weft::Result<void> outcome = keep(one, other);
  if (kept) {
    return outcome;
  }
  std::printf("kept topics: %s\n", outcome ? "kept" : outcome.error().message().c_str());
  return expect(!outcome && outcome.error() == weft::Errc::not_supported, "a build without a store keeps topics");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    return 2;
  }
  if (const auto result = run(std::strcmp(arguments[1], "kept") == 0, arguments[2]); !result) {
    std::fprintf(stderr, "program: %s\n", result.error().message().c_str());
    return 1;
  }
}
