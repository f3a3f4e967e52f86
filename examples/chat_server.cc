// SPDX-License-Identifier: MIT
// A chat with rooms: lines of text, every core of the machine, no lock. `chat_server --help` explains the commands.
// Without an argument the program chats with itself, and ends.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "weft/net/dialer.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"
#include "weft/serve/server/stop_signals.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

using namespace weft;
using namespace std::chrono_literals;

namespace {

using Session = serve::SessionOf<serve::DelimiterCodec>;

constexpr const char* kHelp =
    "usage: chat_server [ENDPOINT]\n"
    "  ENDPOINT   where to listen, until Ctrl-C: tcp://*:7000, ipc:///tmp/chat. Without one: a demonstration.\n"
    "Talk to it by `nc localhost 7000`, in lines:\n"
    "  /name NAME         what others call you\n"
    "  /join ROOM         1 to 8 letters; leaves the room that you are in\n"
    "  /in SECONDS TEXT   says it later\n"
    "  /quit              leaves when all is delivered\n"
    "  anything else      is said in your room\n";
constexpr std::size_t kLineMax = 1000;

// Member: the chat's own data of a session.
struct Member {
  std::string name = "somebody";
  std::string room;  // empty: none
};

// A room is the group whose number is its name.
serve::GroupId group_of(std::string_view room) {
  std::uint64_t id = 0;
  std::memcpy(&id, room.data(), std::min(room.size(), sizeof id));
  return serve::GroupId{id};
}

// Chat: one for each core. Its sessions are on this core; the members of a room are on any core.
class Chat {
 public:
  explicit Chat(serve::Server& server) : server_(server) {}

  void on_open(Session& session) {
    session.set_context(new Member());
    tell(session, "* welcome; /join a room");
  }
  void on_frame(Session& session, const serve::BodyFrame& line) {
    std::string_view text = as_text(line.body);
    if (text.ends_with('\r')) {
      text.remove_suffix(1);
    }
    const auto command = text.substr(0, text.find(' '));
    const auto rest = text.substr(std::min(text.size(), command.size() + 1));
    if (command == "/name" && !rest.empty() && rest.size() <= 30) {
      member(session).name = rest;
    } else if (command == "/join" && !rest.empty() && rest.size() <= sizeof(serve::GroupId)) {
      join(session, rest);
    } else if (command == "/in") {
      unsigned seconds = 0;
      (void)std::from_chars(rest.data(), rest.data() + rest.size(), seconds);
      const auto wait = std::chrono::seconds(std::min(seconds, 3600u));
      const auto what = rest.substr(std::min(rest.size(), rest.find(' ') + 1));
      if (!session.spawn(say_later(session, wait, std::string(what)))) {
        tell(session, "* one thing after the other");
      }
    } else if (command == "/quit") {
      session.close();
    } else if (text.starts_with('/')) {
      tell(session, "* what?");
    } else {
      say(session, text);
    }
  }
  void on_close(Session& session, const Error& /*why*/) {
    const std::unique_ptr<Member> gone(&member(session));
    announce(gone->room, "* " + gone->name + " left");
  }

 private:
  static Member& member(Session& session) { return *static_cast<Member*>(session.context()); }
  static void tell(Session& session, std::string_view text) { (void)session.send({}, as_bytes(text)); }

  // A full lane, or a member that does not read, loses lines, so that no core waits for the slowest member.
  void announce(const std::string& room, const std::string& text) {
    const auto frame = serve::SharedFrame::encode(serve::DelimiterCodec(), {}, as_bytes(text));
    if (!room.empty() && frame) {
      (void)server_.publish(group_of(room), *frame);
    }
  }
  void say(Session& session, std::string_view text) {
    const Member& who = member(session);
    if (who.room.empty()) {
      return tell(session, "* nobody hears you; /join a room");
    }
    announce(who.room, who.name + ": " + std::string(text));
  }
  void join(Session& session, std::string_view room) {
    Member& who = member(session);
    if (!who.room.empty()) {
      session.leave(group_of(who.room));
      announce(who.room, "* " + who.name + " left");
      who.room.clear();
    }
    if (session.join(group_of(room))) {
      who.room = room;
      announce(who.room, "* " + who.name + " came to " + who.room);
    }
  }
  // The session owns this task: when the session closes, the sleep ends with an error; the session outlives the task.
  rt::Task<> say_later(Session& session, Duration wait, std::string text) {
    const auto slept = co_await rt::sleep(wait);
    if (slept) {
      say(session, text);
    }
  }

  serve::Server& server_;
};

serve::ListenerOptions options() {
  serve::ListenerOptions options;
  options.limits.write_budget = 64 * 1024;                          // a slow reader
  options.limits.slow_consumer = serve::SlowConsumer::drop_oldest;  // misses the oldest lines
  options.limits.handshake_timeout = -1s;                           // a client may only listen
  options.limits.idle_timeout = 1h;
  options.limits.message_rate = {.per_second = 20, .burst = 40};
  return options;
}

// --- the demonstration: two clients, on two cores ---

class Client {
 public:
  static Result<Client> connect(const std::string& endpoint) {
    net::Dialer dialer(WEFT_TRY(net::parse_endpoint(endpoint, false)), {});
    for (auto progress = WEFT_TRY(dialer.begin()); progress != net::Progress::connected;) {
      WEFT_TRY(wait(dialer.fd(), sys::Interest::writable));
      progress = WEFT_TRY(dialer.finish());
    }
    return Client(dialer.take_stream());
  }
  void say(std::string_view line) {
    const std::string bytes = std::string(line) + '\n';
    const Bytes from = as_bytes(bytes);
    (void)stream_->write({&from, 1});
  }
  // The next line must be this one.
  Result<void> expect(std::string_view line) {
    while (input_.find('\n') == std::string::npos) {
      WEFT_TRY(wait(stream_->fd(), sys::Interest::readable));
      std::uint8_t bytes[4096];
      MutableBytes into(bytes);
      const sys::IoResult read = stream_->read({&into, 1});
      if (read.status != sys::IoResult::Status::done && read.status != sys::IoResult::Status::would_block) {
        return Error(Errc::connection_closed, "the chat is over");
      }
      input_.append(as_text(Bytes(bytes).first(read.bytes)));
    }
    const std::string got = input_.substr(0, input_.find('\n'));
    input_.erase(0, got.size() + 1);
    std::printf("%s\n", got.c_str());
    return got == line ? Result<void>() : Error(Errc::protocol_error, "that is not what was said");
  }

 private:
  explicit Client(std::unique_ptr<net::ByteStream> stream) : stream_(std::move(stream)) {}
  static Result<void> wait(int fd, sys::Interest interest) {
    sys::PollFd polled{.fd = fd, .want = interest};
    if (WEFT_TRY(sys::poll_fds({&polled, 1}, 30s)) == 0) {
      return Errc::timed_out;
    }
    return {};
  }

  std::unique_ptr<net::ByteStream> stream_;
  std::string input_;
};

Result<void> demonstrate(const std::string& endpoint) {
  Client ann = WEFT_TRY(Client::connect(endpoint));
  WEFT_TRY(ann.expect("* welcome; /join a room"));
  ann.say("/name ann\n/join tea");
  WEFT_TRY(ann.expect("* ann came to tea"));
  Client bob = WEFT_TRY(Client::connect(endpoint));
  WEFT_TRY(bob.expect("* welcome; /join a room"));
  bob.say("is anybody here?");
  WEFT_TRY(bob.expect("* nobody hears you; /join a room"));
  bob.say("/name bob\n/join tea");
  WEFT_TRY(ann.expect("* bob came to tea"));
  WEFT_TRY(bob.expect("* bob came to tea"));
  ann.say("hello");
  WEFT_TRY(bob.expect("ann: hello"));
  WEFT_TRY(ann.expect("ann: hello"));
  bob.say("/in 0 the kettle boils");
  WEFT_TRY(ann.expect("bob: the kettle boils"));
  bob.say("/in 3600 not in this life\n/quit");  // closing the session ends the wait
  WEFT_TRY(ann.expect("* bob left"));
  return {};
}

Result<void> run(const char* endpoint) {
  serve::StopSignals signals;  // before the threads start
  rt::RuntimeOptions cores;
  cores.cores = endpoint != nullptr ? 0 : 2;
  const auto runtime = WEFT_TRY(rt::Runtime::start(cores));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions how = options();
  how.accept = endpoint != nullptr ? serve::AcceptMode::automatic : serve::AcceptMode::hand_off;  // one core each
  const std::string bound = WEFT_TRY(server->listen<serve::DelimiterCodec>(
      endpoint != nullptr ? endpoint : "tcp://127.0.0.1:0", how, [&server] { return Chat(*server); },
      serve::DelimiterCodec(kLineMax)));
  std::printf("chatting at %s\n", bound.c_str());
  if (endpoint != nullptr) {
    return signals.run(*server, {.drain = 5s});  // delivers the queued lines
  }
  const auto outcome = demonstrate(bound);
  const auto stopped = server->stop(sys::now() + 5s);
  return outcome ? stopped : outcome;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view argument = count > 1 ? arguments[1] : "";
  if (argument == "--help" || argument == "-h" || count > 2) {
    std::fputs(kHelp, stdout);
    return count > 2 ? 2 : 0;
  }
  if (const auto result = run(count > 1 ? arguments[1] : nullptr); !result) {
    std::fprintf(stderr, "chat_server: %s\n", result.error().message().c_str());
    return 1;
  }
}
