// SPDX-License-Identifier: MIT
#include "tools/weft/link.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "tools/weft/keys.h"
#include "weft/base/filter.h"
#include "weft/msg/poll.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

constexpr Duration kLook = std::chrono::milliseconds(5);         // between two looks at counts that nothing signals
constexpr Duration kEventLook = std::chrono::milliseconds(100);  // --verbose: a connection's events wake no poll
constexpr double kDeliveryTimeout = 10;                          // seconds

void set_curve(Socket& socket, const LinkOptions& options) {
  if (!options.curve_server && options.curve_server_key.empty()) {
    if (!options.curve_key.empty()) {
      throw Usage("--curve-key belongs to --curve-server or --curve-server-key");
    }
    return;
  }
  if (options.curve_server && !options.curve_server_key.empty()) {
    throw Usage("one end is the server of CURVE, the other one has the server's key");
  }
  if (options.curve_server && options.curve_key.empty()) {
    throw Usage("--curve-server needs --curve-key FILE; `weft keygen --out FILE` makes one");
  }
  const KeyPair pair = options.curve_key.empty() ? make_key_pair() : read_key_pair(options.curve_key);
  need(socket.set(option::curve_public_key, decode_key(pair.public_key)), "the public key");
  need(socket.set(option::curve_secret_key, decode_key(pair.secret_key)), "the secret key");
  if (options.curve_server) {
    need(socket.set(option::curve_server, true), "--curve-server");
  } else {
    need(socket.set(option::curve_server_key, decode_key(read_public_key(options.curve_server_key))),
         "--curve-server-key");
  }
}

}  // namespace

void configure(Socket& socket, const LinkOptions& options) {
  set_curve(socket, options);
  need(socket.set(option::tls_certificate, options.tls_certificate), "--tls-cert");
  need(socket.set(option::tls_key, options.tls_key), "--tls-key");
  need(socket.set(option::tls_authorities, options.tls_authorities), "--tls-ca");
  need(socket.set(option::tls_server_name, options.tls_name), "--tls-name");
  need(socket.set(option::tls_verify, !options.tls_insecure), "--tls-insecure");
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw Usage("--set takes NAME=VALUE, not " + printable(setting));
    }
    if (const auto set = socket.set(setting.substr(0, equals), setting.substr(equals + 1)); !set) {
      throw Usage("--set " + printable(setting) + ": " + set.error().message());
    }
  }
}

Link::Link(Console& console, SocketType type, const LinkOptions& options)
    : console_(console), options_(options), socket_(need(context_.socket(type), "a socket")) {
  if (options.bind.empty() && options.connect.empty()) {
    throw Usage("an endpoint is missing: --bind ENDPOINT or --connect ENDPOINT");
  }
  need(socket_.watch_events(), "events");
  configure(socket_, options);
}

Link::~Link() {
  // deliver() waited for the queue; the last bytes may still be on their way to the kernel.
  (void)socket_.set(option::linger, delivered_ ? std::chrono::seconds(1) : std::chrono::seconds(0));
}

void Link::open() {
  for (const std::string& endpoint : options_.bind) {
    const std::string bound = need(socket_.bind(endpoint), "bind " + endpoint);
    if (bound != endpoint || options_.verbose) {
      console_.note("bound to " + bound);
    }
  }
  for (const std::string& endpoint : options_.connect) {
    need(socket_.connect(endpoint), "connect " + endpoint);
  }
}

Instant Link::deadline() const { return deadline_after(sys::now(), seconds(options_.timeout)); }

void Link::read_events() {
  while (const auto event = socket_.next_event(Duration(0))) {
    const bool failed = event->kind == EventKind::connect_failed || event->kind == EventKind::handshake_failed ||
                        event->kind == EventKind::bind_failed || event->kind == EventKind::disconnected;
    std::string text = std::string(event_name(event->kind)) + " " + event->endpoint;
    if (event->reason != Errc::ok) {
      text += ": " + event->reason.message();
    }
    if (failed) {
      last_problem_ = text;
    } else if (event->kind == EventKind::handshake_succeeded) {
      last_problem_.clear();
    }
    if (options_.verbose) {
      console_.note(text);
    }
  }
}

void Link::fail(const std::string& what) {
  read_events();
  throw Failure(what + (last_problem_.empty() ? "" : "; last: " + last_problem_));
}

// The error names an option of the socket. `whole`: nothing of the message was sent, so the messages before it can go.
void Link::refuse(const std::string& what, const Error& error, bool whole) {
  std::string text = what + ": " + error.message();
  const Options options = need(socket_.options(), "options");
  const std::pair<std::string_view, std::int64_t> bounds[] = {
      {option::max_send_size.name, options.max_send_size},
      {option::message_parts_max.name, options.message_parts_max},
      {option::subscriptions_max.name, options.subscriptions_max}};
  for (const auto& [name, value] : bounds) {
    if (text.find(name) != std::string::npos) {
      text += "; " + std::string(name) + " is " + std::to_string(value) + ", and --set " + std::string(name) +
              "=NUMBER changes it";
    }
  }
  if (whole) {
    try {
      deliver();
    } catch (const Failure& failure) {
      text += std::string("; ") + failure.what();
    }
  }
  throw Failure(text);
}

// Before the first part: a message that is refused at a later one would take the messages before it along.
void Link::check_bounds(const Parts& parts) {
  if (!bounds_) {
    bounds_ = need(socket_.options(), "options");
  }
  const auto large = [this](const std::string& part) {
    return bounds_->max_send_size >= 0 && part.size() > static_cast<std::uint64_t>(bounds_->max_send_size);
  };
  if (std::any_of(parts.begin(), parts.end(), large)) {
    refuse("send", Error(Errc::message_too_large, "a part has more bytes than the option max_send_size permits"), true);
  }
  if (parts.size() > 1 && bounds_->message_parts_max != 0 &&
      parts.size() > static_cast<std::size_t>(bounds_->message_parts_max)) {
    refuse("send", Error(Errc::message_too_large, "a message has more parts than the option message_parts_max permits"),
           true);
  }
}

void Link::subscribe(const std::string& topic, bool glob) {
  const std::string what = "subscribe " + printable(topic);
  const auto subscribed = glob ? socket_.subscribe(need(Filter::glob(topic), what)) : socket_.subscribe(topic);
  if (!subscribed) {
    refuse(what, subscribed.error(), false);
  }
}

void Link::wait(bool input, bool output, Instant deadline, const char* what) {
  for (;;) {
    throw_if_stopped();
    if (options_.verbose) {
      read_events();
    }
    const Instant now = sys::now();
    Duration left = time_left(deadline, now);
    if (options_.verbose && (left < Duration(0) || left > kEventLook)) {
      left = kEventLook;
    }
    std::array<PollItem, 2> items;
    items[0].socket = &socket_;
    items[0].want_input = input;
    items[0].want_output = output;
    items[1].fd = stop_fd();
    items[1].want_input = true;
    const auto ready = poll(items, left);
    if (!ready && ready.error() != Errc::interrupted) {
      throw Failure(ready.error().message());
    }
    throw_if_stopped();
    if (items[0].input || items[0].output) {
      return;
    }
    if (sys::now() >= deadline) {
      fail(what);
    }
  }
}

void Link::send(const Parts& parts) {
  check_bounds(parts);
  const Instant end = deadline();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const More more = i + 1 < parts.size() ? More::yes : More::no;
    for (;;) {
      // Only a message's first part has to wait for a peer with room.
      const auto sent = i == 0 ? socket_.try_send(parts[i], more) : socket_.send(parts[i], more);
      if (sent) {
        break;
      }
      if (sent.error() == Errc::would_block) {
        wait(false, true, end, "no peer took the message in time");
      } else if (sent.error() == Errc::message_too_large) {
        refuse("send", sent.error(), i == 0);
      } else if (sent.error() != Errc::interrupted) {
        fail("send: " + sent.error().message());
      }
      throw_if_stopped();
    }
  }
}

bool Link::try_receive(Parts& parts) {
  parts.clear();
  auto first = socket_.try_recv();
  if (!first) {
    if (first.error() == Errc::would_block) {
      return false;
    }
    throw Failure("receive: " + first.error().message());
  }
  parts.push_back(first->to_string());
  for (bool more = first->more(); more;) {
    const auto next = socket_.recv();  // a message arrives whole
    if (next) {
      parts.push_back(next->to_string());
      more = next->more();
    } else if (next.error() != Errc::interrupted) {
      throw Failure("receive: " + next.error().message());
    }
  }
  return true;
}

Parts Link::receive() {
  Parts parts;
  const Instant end = deadline();
  while (!try_receive(parts)) {
    wait(true, false, end, "no message came in time");
  }
  return parts;
}

void Link::wait_for_peers(std::size_t count) {
  const Instant end = deadline();
  while (need(socket_.statistics(), "statistics").peers < count) {
    if (sys::now() >= end) {
      fail("peers did not come in time");
    }
    read_events();
    sleep_until(sys::now() + kLook);
  }
}

void Link::deliver() {
  const Instant end = deadline_after(sys::now(), seconds(options_.timeout < 0 ? kDeliveryTimeout : options_.timeout));
  for (;;) {
    const std::uint64_t left = need(socket_.statistics(), "statistics").queued_out;
    if (left == 0) {
      delivered_ = true;
      return;
    }
    if (sys::now() >= end) {
      fail(std::to_string(left) + (left == 1 ? " message was" : " messages were") + " not delivered in time");
    }
    read_events();
    sleep_until(sys::now() + kLook);
  }
}

}  // namespace weft::cli
