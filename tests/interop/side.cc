// SPDX-License-Identifier: MIT
#include "tests/interop/side.h"

#include <exception>
#include <mutex>
#include <sstream>
#include <thread>

namespace weft::interop {

namespace {
// So high that no queue reaches it, although credit comes back only once in half a mark: a publisher must not drop
// here.
constexpr int kMark = 100'000;

enum Style { kWhole, kCopy, kPoll, kStyles };  // the ways to send and to receive

// Fails when a wait ended by its time-out although a message was there: a wake-up was lost.
class Prompt {
 public:
  explicit Prompt(const char* what) : what_(what) {}
  void check() const {
    need(std::chrono::steady_clock::now() - start_ < kPatience / 2, std::string(what_) + " came to its end very late");
  }

 private:
  const char* what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
}  // namespace

Socket Side::open(SocketType type) {
  Socket socket = need(context_.socket(type), "socket");
  need(socket.set(option::send_timeout, kPatience), "send_timeout");
  need(socket.set(option::receive_timeout, kPatience), "receive_timeout");
  need(socket.set(option::send_high_water_mark, kMark), "send_high_water_mark");
  need(socket.set(option::receive_high_water_mark, kMark), "receive_high_water_mark");
  for (const std::string& text : job_.options) {
    const std::size_t equals = text.find('=');
    need(equals != std::string::npos, "option " + text + " has no value");
    need(socket.set(text.substr(0, equals), text.substr(equals + 1)), text);
  }
  need(socket.watch_events(), "watch_events");
  return socket;
}

void Side::join(std::vector<Socket*> sockets) {
  if (job_.bind) {
    std::string line = "at";
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      const std::string& first = job_.endpoints.front();
      const bool fresh = i == 0 || first.find("tcp://") != std::string::npos;
      const std::string made = fresh ? first : first + "-" + std::to_string(i);
      const std::string& endpoint = i < job_.endpoints.size() ? job_.endpoints[i] : made;
      line += " " + need(sockets[i]->bind(endpoint), "bind " + endpoint);
    }
    link_.send(line);
    return;
  }
  std::string line;
  need(link_.wait_line("at", kPatience, &line), "no endpoint to connect to: " + link_.reason());
  std::istringstream words(line);
  for (std::string endpoint; words >> endpoint;) {
    for (Socket* socket : sockets) {
      need(socket->connect(endpoint), "connect " + endpoint);
    }
  }
}

void Side::send_part(Socket& socket, Message part, More more, int style) {
  if (style == kWhole) {
    need(socket.send(std::move(part), more), "send");
    return;
  }
  if (style == kCopy) {
    need(socket.send(part.bytes(), more), "send");
    return;
  }
  for (;;) {
    const auto result = socket.try_send(std::move(part), more);
    if (result || !(result.error() == Errc::would_block)) {
      need(result, "try_send");
      return;
    }
    PollItem item{&socket, -1, false, true};
    need(need(poll({&item, 1}, kPatience), "poll") == 1, "poll for output timed out");
  }
}

void Side::send(Socket& socket, const MessageId& id, std::string_view topic, std::string_view routing_id) {
  const int style = job_.plain ? kWhole : static_cast<int>(id.sequence % kStyles);
  if (!routing_id.empty()) {
    need(socket.send(routing_id, More::yes), "send routing id");
  }
  std::vector<Message> parts = make_message(job_.shape, id, topic);
  const Prompt prompt("a send");
  if (style == kWhole) {
    need(socket.send_all(parts), "send_all");
  } else {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      send_part(socket, std::move(parts[i]), i + 1 < parts.size() ? More::yes : More::no, style);
    }
  }
  prompt.check();
  ++sent_;
  ++given_;
}

void Side::send_text(Socket& socket, std::string_view text) {
  need(socket.send(text), "send");
  const bool subscribes = socket.type() == SocketType::xsub && (text.front() == '\0' || text.front() == '\1');
  given_ += subscribes ? 0 : 1;
}

Message Side::receive_part(Socket& socket, int style) {
  if (style == kWhole) {
    return need(socket.recv(), "recv");
  }
  if (style == kCopy) {
    std::vector<std::uint8_t> room(job_.shape.size + 512);
    const Received received = need(socket.recv_into(room), "recv_into");
    need(!received.truncated && received.size <= room.size(), "a part of " + std::to_string(received.size) + " bytes");
    Message copy = need(Message::copy_of(Bytes(room).first(received.size)), "copy_of");
    copy.set_more(received.more);
    return copy;
  }
  for (;;) {
    auto message = socket.try_recv();
    if (message || !(message.error() == Errc::would_block)) {
      return need(std::move(message), "try_recv");
    }
    PollItem item{&socket, -1, true, false};
    need(need(poll({&item, 1}, kPatience), "poll") == 1, "poll for input timed out");
  }
}

std::vector<Message> Side::receive(Socket& socket) {
  const int style = job_.plain ? kWhole : static_cast<int>(received_ % kStyles);
  const Prompt prompt("a receive");
  std::vector<Message> parts;
  do {
    parts.push_back(receive_part(socket, style));
  } while (parts.back().more());
  prompt.check();
  ++taken_;
  return parts;
}

void Side::expect(Socket& socket, const MessageId& id) {
  const std::string wrong = check_message(job_.shape, id, {}, receive(socket));
  need(wrong.empty(), wrong);
  ++received_;
}

void Side::begin_round(Socket& socket, int round, int peers) {
  for (int gone = 0; round > 0 && gone < peers;) {
    const MonitorEvent event = need(socket.next_event(kPatience), "waiting for the peer to go");
    gone += event.kind == EventKind::disconnected ? 1 : 0;
    if (gone == peers) {
      link_.send("lost");
    }
  }
}

namespace {
std::string describe(const Statistics& sum, long given, long taken) {
  std::ostringstream text;
  text << "the counters do not balance: given " << given << ", taken " << taken << "; sent " << sum.sent
       << ", queued out " << sum.queued_out << ", arrived " << sum.arrived << ", queued in " << sum.queued_in
       << ", dropped";
  const std::vector<std::uint64_t> values = sync::read_counters(sum);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (kSocketTable.rows[i].metric == "messages_dropped_total") {
      text << ' ' << kSocketTable.rows[i].label_value << ' ' << values[i];
    }
  }
  return text.str();
}
}  // namespace

void Side::check_balance(const std::vector<Socket*>& sockets) {
  const SocketType type = sockets.front()->type();
  const bool publishes = type == SocketType::pub || type == SocketType::xpub;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    Statistics sum;
    for (Socket* socket : sockets) {
      const Statistics one = need(socket->statistics(), "statistics");
      sync::add_counters(sum, one);
      sum.dropped += one.dropped;
    }
    const auto out = static_cast<long>(sum.sent + sum.queued_out);
    const auto in = static_cast<long>(sum.dropped + sum.queued_in) + taken_ - static_cast<long>(sum.arrived);
    handed_ = static_cast<long>(sum.sent);
    arrived_ = static_cast<long>(sum.arrived);
    if ((publishes ? sum.dropped == 0 && in == 0 : out + in == given_) && sum.queued_out == 0) {
      balanced_ = true;
      return;
    }
    need(std::chrono::steady_clock::now() < deadline, describe(sum, given_, taken_));
    std::this_thread::yield();
  }
}

void Side::wait_line(const std::string& word) {
  need(link_.wait_line(word, kPatience), "no line `" + word + "`: " + link_.reason());
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const Failure&) {
        const std::lock_guard lock(mutex);
        first = first == nullptr ? std::current_exception() : first;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

}  // namespace weft::interop
