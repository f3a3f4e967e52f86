// SPDX-License-Identifier: MIT
// A server that one TOML file configures: `configured_server server.toml` serves until SIGTERM, and reads the file
// again after a SIGHUP. Without an argument it demonstrates itself: it answers requests without a break while its file
// changes three times, once to a wrong one.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "child.h"
#include "weft/logging/log.h"
#include "weft/rt/core/core_task.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/config/config.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/server.h"
#include "weft/serve/server/stop_signals.h"
#include "weft/serve/session/record_log.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace config = serve::config;
using Codec = serve::NumberedCodec;

// [keys]
struct Keys {
  config::ProgramKeys all;
  config::ProgramKey<std::string> greeting =
      all.text("greeting", "hello", "The answer to each request", config::Change::at_run_time);
  config::ProgramKey<std::int64_t> repeats = all.integer("repeats", 1, {1, 10}, "How often an answer has the greeting");
};
// [keys]

// [service]
struct Greeter {
  const Keys* keys;
  config::Config* configuration;

  void on_frame(serve::SessionOf<Codec>& session, const Codec::Frame& frame) {
    const auto now = configuration->current();  // this frame's: it never changes
    std::string answer;
    for (std::int64_t i = 0; i < now->get(keys->repeats); ++i) {
      answer += now->get(keys->greeting);
    }
    (void)session.send(frame.header, as_bytes(answer));
  }
};
// [service]

unsigned long long generation_of(const config::Config& configuration) { return configuration.current()->generation(); }

// [reload]
void reload(config::Config& configuration) {
  config::Problems problems;
  if (const auto done = configuration.reload(&problems); !done) {
    std::fprintf(stderr, "%s", problems.text().c_str());
    std::printf("configuration %llu stays\n", generation_of(configuration));
    return;
  }
  std::printf("configuration %llu\n", generation_of(configuration));
}
// [reload]

// [run]
Result<void> serve_file(const std::string& file) {
  const Keys keys;
  config::Problems problems;
  const auto loaded = config::Config::load(file, keys.all, {}, &problems);
  if (!loaded) {
    std::fprintf(stderr, "%s", problems.text().c_str());  // a line for each, with its place in the file
    return loaded.error();
  }
  config::Config& configuration = **loaded;
  serve::StopSignals signals([&] { reload(configuration); });  // before the first thread

  const auto start = configuration.current();
  const auto log = WEFT_TRY(logging::Log::make(start->log));
  configuration.govern(*log);
  serve::ServerOptions options = start->server;
  options.log = WEFT_TRY(serve::log_records(*log));
  const auto runtime = WEFT_TRY(rt::Runtime::start(start->runtime));
  const auto server = WEFT_TRY(serve::Server::make(*runtime, options));
  configuration.govern(*server);
  for (const config::ListenerSettings& listener : start->listeners) {
    const std::string bound = WEFT_TRY(
        server->listen<Codec>(listener.endpoint, listener.options, [&] { return Greeter{&keys, &configuration}; }));
    std::printf("%s\n", bound.c_str());
  }
  std::unique_ptr<serve::Admin> admin;
  if (!start->admin.endpoint.empty()) {
    serve::AdminOptions admin_options = start->admin;
    admin_options.servers = {{"greeter", server.get()}};
    admin = WEFT_TRY(serve::Admin::make(*runtime, admin_options));
    admin->add("greeter", *log);
  }
  return signals.run(*server, start->stop);  // SIGHUP reloads, SIGTERM and SIGINT stop
}
// [run]

// --- the demonstration: this program with a file, and a client that asks it without a break ---

struct Answers {
  std::atomic<int> hello{0}, welcome{0}, others{0};
  std::atomic<bool> stop{false};
};

rt::Task<Result<void>> ask_on(std::string endpoint, Answers* answers) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::Client<Codec>::open(host, endpoint, {}));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 30s));
  while (!answers->stop) {
    WEFT_CO_TRY(const auto reply, co_await client->request({1, 0}, {}, sys::now() + 30s));
    const std::string_view text = as_text(reply.body());
    ++(text == "hello" ? answers->hello : text == "welcome" ? answers->welcome : answers->others);
  }
  co_return Result<void>();
}

// Replaces the file as a whole: the server reads the old text or the new one.
void write(const std::string& file, const std::string& text) {
  std::ofstream(file + ".new") << text;
  std::filesystem::rename(file + ".new", file);
}

Result<void> until_more_than(const std::atomic<int>& count, int number) {
  for (const Instant limit = sys::now() + 30s; count <= number; std::this_thread::sleep_for(1ms)) {
    if (sys::now() > limit) {
      return Error(Errc::timed_out, "an answer did not come");
    }
  }
  return {};
}

Result<void> expect_line(Child& server, std::string_view wanted) {
  const std::string line = server.line();
  std::printf("%s\n", line.c_str());
  return line == wanted ? Result<void>() : Error(Errc::protocol_error, "another line was expected");
}

Result<void> change_the_file(Child& server, const std::string& file, const std::string& text, Answers& answers) {
  WEFT_TRY(until_more_than(answers.hello, 100));
  write(file, text + "[app]\ngreeting = \"welcome\"\n");
  server.signal(SIGHUP);
  WEFT_TRY(expect_line(server, "configuration 2"));
  WEFT_TRY(until_more_than(answers.welcome, 100));

  write(file, text + "[app]\ngreetings = \"hello\"\n");  // a wrong name: nothing changes
  server.signal(SIGHUP);
  WEFT_TRY(expect_line(server, "configuration 2 stays"));
  WEFT_TRY(until_more_than(answers.welcome, answers.welcome + 100));

  const int before = answers.hello;
  write(file, text);
  server.signal(SIGHUP);
  WEFT_TRY(expect_line(server, "configuration 3"));
  return until_more_than(answers.hello, before + 100);
}

Result<void> demonstrate(const std::string& folder) {
  const std::string file = folder + "/server.toml";
  const std::string text = "[server]\ncores = 1\n\n[[listener]]\nendpoint = \"tcp://127.0.0.1:0\"\n\n";
  write(file, text);
  Child server = WEFT_TRY(Child::start({file}));
  const std::string endpoint = server.line();

  rt::RuntimeOptions one;
  one.cores = 1;
  Answers answers;
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  auto asking = WEFT_TRY(rt::spawn(runtime->core(0), ask_on(endpoint, &answers)));
  const auto changed = change_the_file(server, file, text, answers);
  answers.stop = true;
  const auto asked = asking.get();
  server.signal(SIGTERM);
  const bool ended = server.wait();
  WEFT_TRY(changed);
  WEFT_TRY(asked);  // no request failed
  if (!ended || answers.others != 0) {
    return Error(Errc::protocol_error, "the server did not end well, or gave another answer");
  }
  std::printf("%d times hello, %d times welcome\n", answers.hello.load(), answers.welcome.load());
  return {};
}

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (!config::toml_available()) {
    std::printf("this build of Weft reads no TOML\n");
    return 0;
  }
  char folder[] = "/tmp/weft-configured-XXXXXX";
  const auto result = count > 1                      ? serve_file(arguments[1])
                      : ::mkdtemp(folder) != nullptr ? demonstrate(folder)
                                                     : Result<void>(Error(Errc::system, "make a directory", errno));
  if (count == 1) {
    std::filesystem::remove_all(folder);
  }
  if (!result) {
    std::fprintf(stderr, "configured_server: %s\n", result.error().message().c_str());
    return 1;
  }
}
