// SPDX-License-Identifier: MIT
// A publisher that web pages subscribe to over ws://, and a service that they ask: the page is examples/browser.
//   browser                   demonstrates itself and ends
//   browser PUBLISH ANSWER    serves at two endpoints, for example ws://127.0.0.1:*, until its standard input ends
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include "weft/weft.h"

namespace {

// Three prices that move, as messages of two parts: the name, and the price as text.
weft::Result<void> publish(weft::Socket& publisher, int round) {
  const char* const names[] = {"copper", "nickel", "zinc"};
  for (int i = 0; i < 3; ++i) {
    const double price = 100 + 30 * i + 8 * std::sin(round * 0.05 + i) + 3 * std::sin(round * 0.31 * (i + 1));
    WEFT_TRY(publisher.send(names[i], weft::More::yes));
    WEFT_TRY(publisher.send(std::to_string(price)));
  }
  return {};
}

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  for (char& c : capitals) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return capitals;
}

// Until `context` is gone.
void answer(weft::Socket& service) {
  for (auto request = service.recv(); request; request = service.recv()) {
    if (!service.send(in_capitals(request->text()))) {
      return;
    }
  }
}

weft::Result<void> demonstrate(weft::Context& context, const std::string& published, const std::string& answered) {
  weft::Socket subscriber = WEFT_TRY(context.socket(weft::SocketType::sub));
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::req));
  WEFT_TRY(subscriber.subscribe("zinc"));
  WEFT_TRY(subscriber.connect(published));
  WEFT_TRY(client.connect(answered));
  WEFT_TRY(client.send("a price, please"));
  const weft::Message reply = WEFT_TRY(client.recv());
  const weft::Message name = WEFT_TRY(subscriber.recv());
  const weft::Message price = WEFT_TRY(subscriber.recv());
  std::printf("%s: %s %s\n", std::string(reply.text()).c_str(), std::string(name.text()).c_str(),
              std::string(price.text()).c_str());
  return {};
}

weft::Result<void> run(const std::string& publish_at, const std::string& answer_at, bool serves) {
  weft::Context context;
  weft::Socket publisher = WEFT_TRY(context.socket(weft::SocketType::pub));
  weft::Socket service = WEFT_TRY(context.socket(weft::SocketType::rep));
  const std::string published = WEFT_TRY(publisher.bind(publish_at));
  const std::string answered = WEFT_TRY(service.bind(answer_at));
  std::jthread answering([&service] { answer(service); });
  std::jthread publishing([&publisher](const std::stop_token& stop) {
    for (int round = 0; !stop.stop_requested() && publish(publisher, round); ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  weft::Result<void> result;
  if (serves) {
    std::printf("%s %s\n", published.c_str(), answered.c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  } else {
    result = demonstrate(context, published, answered);
  }
  context.shut_down();  // ends every wait of the two threads
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  const bool serves = count == 3;
  const std::string anywhere = "ws://127.0.0.1:*";
  const auto result = run(serves ? arguments[1] : anywhere, serves ? arguments[2] : anywhere, serves);
  if (!result) {
    std::fprintf(stderr, "browser: %s\n", result.error().message().c_str());
    return 1;
  }
}
