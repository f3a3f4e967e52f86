// SPDX-License-Identifier: MIT
// One process of a chain, for hand_over_test.py: `hand_over_side PATH ENDPOINT`. It takes the listener of the process
// before, or opens it, and gives it to the next one. Before each step that the script may end by a kill it prints the
// step and waits for a line of input.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "weft/rt/core/runtime.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/hand_over/hand_over.h"
#include "weft/serve/hand_over/taken_listeners.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

struct Lines {
  void on_frame(serve::SessionOf<serve::DelimiterCodec>& session, const serve::DelimiterCodec::Frame& frame) {
    (void)session.send({}, frame.body);
  }
};

void step(const char* name) {
  std::printf("%s\n", name);
  std::fflush(stdout);
  while (true) {
    const int c = std::getchar();
    if (c == '\n') {
      return;
    }
    if (c == EOF) {
      std::_Exit(0);
    }
  }
}

Result<void> run(const char* path, const char* endpoint) {
  rt::RuntimeOptions options;
  options.cores = 2;
  const auto runtime = WEFT_TRY(rt::Runtime::start(options));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  step("starts");
  auto taken = WEFT_TRY(serve::TakenListeners::take(path, sys::now() + 60s));
  step("has taken");
  std::string bound;
  if (taken.sockets().empty()) {
    bound = WEFT_TRY(server->listen<serve::DelimiterCodec>(endpoint, {}, [] { return Lines(); }));
  }
  for (const serve::TakenListener& one : taken.listeners()) {
    serve::ListenerOptions listener;
    listener.name = one.name;
    listener.adopt_fds = one.descriptors;
    bound = WEFT_TRY(server->listen<serve::DelimiterCodec>("tcp://*:*", listener, [] { return Lines(); }));
  }
  step("listens");
  WEFT_TRY(taken.confirm(sys::now() + 60s));
  std::atomic<bool> given{false};
  serve::HandOverOptions how;
  how.on_taken = [&given] {
    given.store(true);
    given.notify_all();
  };
  const auto hand_over = WEFT_TRY(serve::HandOver::open(*server, path, how));
  std::printf("serves %s\n", bound.c_str());
  std::fflush(stdout);
  given.wait(false);
  for (const Instant end = sys::now() + 60s; server->sessions() != 0 && sys::now() < end;) {
    std::this_thread::sleep_for(1ms);
  }
  return server->stop(sys::now() + 10s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: hand_over_side PATH ENDPOINT\n", stderr);
    return 2;
  }
  if (const auto result = run(argv[1], argv[2]); !result) {
    std::fprintf(stderr, "hand_over_side: %s\n", result.error().message().c_str());
    return 1;
  }
  std::puts("ended");
}
