// SPDX-License-Identifier: MIT
// Two handles of one process: a message from one reaches the other.
#include <chrono>
#include <cstdio>
#include <string>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

weft::Result<void> run() {
  weft::Context context;
  weft::Topics one = WEFT_TRY(weft::Topics::open(context, {.fleet = "inproc:prices"}));
  weft::Topics other = WEFT_TRY(weft::Topics::open(context, {.fleet = "inproc:prices"}));
  weft::Subscription prices = WEFT_TRY(other.subscribe("px.*"));
  weft::Publisher apple = WEFT_TRY(one.publisher("px.AAPL"));
  WEFT_TRY(apple.wait_subscribers(1, weft::sys::now() + std::chrono::seconds(20)));
  WEFT_TRY(apple.publish("188.20"));
  const weft::TopicMessage message = WEFT_TRY(prices.next());
  std::printf("%s %s\n", std::string(message.topic()).c_str(), std::string(message.text()).c_str());
  return message.text() == "188.20" ? weft::Result<void>() : weft::Error(weft::Errc::other, "another message came");
}

}  // namespace

int main() {
  const weft::Result<void> done = run();
  if (!done) {
    std::fprintf(stderr, "program: %s\n", done.error().message().c_str());
  }
  return done ? 0 : 1;
}
