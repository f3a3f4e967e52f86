// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/histogram.h"
#include "bench/server/web_wire.h"
#include "bench/server/wire.h"

namespace bench {

// A fault that makes a measurement worthless: an answer that is lost, doubled, out of order or damaged, or a
// server that is silent, refuses or closes.
class LoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class LoadWire { frames, http, websocket, rpc };

struct LoadOptions {
  std::uint16_t port = 0;
  std::uint32_t connections = 1;
  std::uint32_t size = 64;        // of a body, 16 bytes or more; of HTTP any
  std::uint32_t depth = 1;        // unanswered requests of a connection, in a closed loop
  unsigned patience_ms = 20'000;  // without any progress
  LoadWire wire = LoadWire::frames;
  WebStyle style = WebStyle::plain;
};

struct LoadResult {
  std::uint64_t messages = 0;
  double seconds = 0;  // from before the first request was sent until after the last answer
  Histogram trips;     // from when a request was due until its answer was read
};

// Load: clients of one server, all in the calling thread and on one epoll. The thread polls while there is work
// and sleeps after a millisecond without. Owner: main. Affinity: one thread. Cost: no buffer and no allocation
// per message; a connection keeps the start of a frame that has not arrived whole.
// Invariants:
//   (1) Every answer is checked: header, size, connection, sequence number and checksum. The first bad one
//       throws LoadError.
//   (2) A closed loop sends a request when an answer makes room for it. An open loop sends at its own rate
//       whatever the server does, and times a request from when it was due: a server that stalls is charged for
//       every request that it delayed.
class Load {
 public:
  explicit Load(const LoadOptions& options);
  ~Load();  // resets the connections, so that their ports are free at once
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Opens all connections, some hundreds at a time. Each sends one request, or a greeting for WebStyle::publish of
  // WebSocket. `trips` are from connect to the answer. With WebStyle::close each request opens a connection here and in
  // echo(), and `trips` are to its end.
  void open(LoadResult& result);
  // Sends `count` requests in all. interval_ns 0: a closed loop. Otherwise one is due each interval, each on
  // the next connection.
  void echo(std::uint64_t count, std::uint64_t interval_ns, LoadResult& result);
  // Sends count / connections frames on each connection, which are not answered. Ends when every connection has
  // read that the server has received all.
  void one_way(std::uint64_t count, LoadResult& result);
  // Sends messages on the first connection until they have come `count` times, or a little more often, counted on all
  // connections. At most `depth` of them have not come to all. For WebStyle::publish.
  void publish(std::uint64_t count, LoadResult& result);
  // Ends all connections in order; an answer that still comes is a LoadError.
  void finish();

  // Sets the function that is called now and then between events, with the time in ns.
  void on_turn(std::function<void(std::uint64_t)> turn) { turn_ = std::move(turn); }

 private:
  enum class Mode { opening, closed_loop, open_loop, one_way, publishing, finishing };
  struct Link {
    int fd = -1;
    bool blocked = false;            // until the socket takes more
    bool queued = false;             // in due_links_
    bool greets = false;             // until the answer to the greeting has come; `tail` is the greeting
    bool ends = false;               // the server ends it next
    std::size_t passed = 0;          // of an answer, as the wire counts it
    std::uint64_t sent = 0;          // number of the next frame to send
    std::size_t sent_bytes = 0;      // of that frame
    std::uint64_t allowed = 0;       // frames below this number may be sent
    std::uint64_t answered = 0;      // number of the next answer
    std::uint64_t base = 0;          // number of the first frame of this run
    std::vector<std::uint8_t> part;  // the start of an answer
    std::vector<std::uint8_t> tail;  // bytes to send whole, after all frames
  };

  void begin(Mode mode, std::uint64_t goal, std::uint32_t id);
  void run(LoadResult& result);
  int wait();
  void connect_next();
  void connect(std::size_t number);
  void renew(std::size_t number, std::uint64_t now);
  void note_opened();
  void allow(std::size_t number, std::uint64_t now);
  void allow_due(std::uint64_t now);
  void fill(std::size_t number);
  void pump(std::size_t number);
  void block(std::size_t number, bool blocked);
  void read(std::size_t number);
  void take(std::size_t number, const Header& header, Bytes body, std::uint64_t now);
  Bytes take_web(std::size_t number, Bytes bytes, std::uint64_t now);
  void settle(std::size_t number, std::uint64_t now);
  void settle_published(std::uint64_t message, std::uint64_t now);
  [[nodiscard]] bool says_hello() const { return web_ != nullptr && options_.style == WebStyle::publish; }
  void take_sync(const Link& link, std::size_t number, const Header& header, Bytes body) const;
  [[noreturn]] void complain(std::size_t number, const std::string& what) const;

  const LoadOptions options_;
  const std::unique_ptr<const WebWire> web_;  // none: the frames of wire.h
  const std::size_t frame_;                   // bytes of a request
  int epoll_ = -1;
  std::vector<Link> links_;
  std::vector<std::uint64_t> due_;  // `depth` times per connection: when its unanswered requests were due
  std::vector<std::uint8_t> request_;
  std::uint64_t filling_ = 0;  // hash of the filling that all bodies share
  std::unique_ptr<std::uint8_t[]> input_, output_;
  std::size_t output_link_ = ~std::size_t{0};  // the connection whose frames are in output_; their numbers are below
  std::uint64_t output_first_ = 0, output_end_ = 0;
  std::function<void(std::uint64_t)> turn_;

  Mode mode_ = Mode::opening;
  std::size_t connected_ = 0;
  std::uint64_t goal_ = 0, done_ = 0, tickets_ = 0;
  std::uint64_t start_ns_ = 0, interval_ns_ = 0, next_due_ = 0;
  std::vector<std::size_t> due_links_;
  std::vector<std::uint64_t> arrived_;  // of the published messages under way: on how many connections they have come
  std::uint64_t moved_ = 0, seen_moved_ = 0;  // bytes, in either direction
  std::uint64_t seen_ns_ = 0, turned_ns_ = 0, busy_ns_ = 0;
  LoadResult* result_ = nullptr;
};

std::uint64_t now_ns();

}  // namespace bench
