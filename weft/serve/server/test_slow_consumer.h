// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/endian.h"
#include "weft/serve/server/test_client.h"

// For tests of write queues: a peer that does not read, and a service that still sends.
namespace weft::serve::test {

struct SlowConsumerRun {
  static constexpr std::size_t kBudget = 256 * 1024;
  static constexpr std::size_t kBody = 8000;

  std::vector<std::uint32_t> numbers;  // numbers of the frames that the client got, in order
  bool whole = false;                  // true: the bytes hold whole frames only
};

// Sends numbered frames, in one turn, to a client that reads when all are sent, and waits for the end of its
// session. `connect` makes the client: it gets ListenerOptions and returns a pointer to a Client.
template <typename Connect>
SlowConsumerRun run_slow_consumer(Script& script, Signal& closed, ListenerOptions options, SlowConsumer policy,
                                  std::uint32_t frames, Connect connect) {
  using Run = SlowConsumerRun;
  constexpr std::size_t kFrame = HeaderCodec::kHeaderSize + Run::kBody;
  options.limits.slow_consumer = policy;
  options.limits.write_budget = Run::kBudget;
  options.limits.close_timeout = kLong;  // the client may need that long to read
  Signal sent;
  script.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    const std::string body(Run::kBody, 'c');
    for (std::uint32_t i = 0; i < frames; ++i) {
      (void)session.send({i, 0}, as_bytes(body));
      EXPECT_LE(session.queued(), Run::kBudget + kFrame);
    }
    session.close();
    sent.give();
  };
  const auto client = connect(options);
  client->send(1, "");
  EXPECT_TRUE(sent.take());
  Run run;
  const std::string bytes = client->read_to_end();
  for (std::size_t at = 0; at + kFrame <= bytes.size(); at += kFrame) {
    run.numbers.push_back(load_big_endian<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()) + at + 2));
    EXPECT_EQ(bytes[at + HeaderCodec::kHeaderSize], 'c');
  }
  run.whole = bytes.size() % kFrame == 0;
  client->close();
  EXPECT_TRUE(closed.take());
  EXPECT_TRUE(std::is_sorted(run.numbers.begin(), run.numbers.end()));
  return run;
}

}  // namespace weft::serve::test
