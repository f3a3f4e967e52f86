// SPDX-License-Identifier: MIT
#include "bench/server/load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "bench/server/rpc/rpc_wire.h"

namespace bench {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kOpening = 512;  // connections that are opened at the same time; a backlog has room for them
constexpr std::uint64_t kAwakeNs = 1'000'000;  // without an event, the thread polls for so long before it sleeps
constexpr std::uint64_t kTurnNs = 200'000;
constexpr std::size_t kHeadRoom = 8192;  // for the head of an answer of HTTP

std::string reason(int error) { return std::generic_category().message(error); }

std::unique_ptr<const WebWire> web_wire_of(const LoadOptions& options) {
  switch (options.wire) {
    case LoadWire::http: return make_http_wire(options.size, options.style);
    case LoadWire::websocket: return make_websocket_wire(options.size, options.style);
    case LoadWire::rpc: return make_rpc_wire(options.size);
    case LoadWire::frames: break;
  }
  return nullptr;
}

}  // namespace

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

Load::Load(const LoadOptions& options)
    : options_(options),
      web_(web_wire_of(options)),
      frame_(web_ == nullptr ? kHeaderSize + options.size : web_->request_size()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      links_(options.connections),
      due_(std::size_t{options.connections} * options.depth),
      request_(kHeaderSize + std::max<std::size_t>(options.size, kBodyMin)),
      input_(
          std::make_unique_for_overwrite<std::uint8_t[]>(kBlock + kHeadRoom + 2 * (frame_ + StreamCheck::kSyncSize))),
      output_(std::make_unique_for_overwrite<std::uint8_t[]>(kBlock + frame_)) {
  if (epoll_ < 0) {
    throw LoadError("epoll: " + reason(errno));
  }
  std::mt19937_64 random(options.size);
  for (std::uint8_t& byte : request_) {
    byte = static_cast<std::uint8_t>(random());
  }
  filling_ = hash_of(Bytes(request_).subspan(kHeaderSize + kBodyMin));
}

Load::~Load() {
  const linger reset{1, 0};
  for (const Link& link : links_) {
    if (link.fd >= 0) {
      setsockopt(link.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      close(link.fd);
    }
  }
  close(epoll_);
}

void Load::open(LoadResult& result) {
  begin(Mode::opening, links_.size(), kEcho);
  for (std::size_t i = 0; i < std::min(links_.size(), kOpening); ++i) {
    connect_next();
  }
  run(result);
}

void Load::echo(std::uint64_t count, std::uint64_t interval_ns, LoadResult& result) {
  begin(interval_ns == 0 ? Mode::closed_loop : Mode::open_loop, count, kEcho);
  interval_ns_ = interval_ns;
  next_due_ = 0;
  tickets_ = interval_ns == 0 ? count : 0;
  for (std::uint32_t i = 0; i < options_.depth && tickets_ > 0; ++i) {
    for (std::size_t number = 0; number < links_.size() && tickets_ > 0; ++number, --tickets_) {
      allow(number, start_ns_);
    }
  }
  if (mode_ == Mode::closed_loop) {
    for (std::size_t number = 0; number < links_.size(); ++number) {
      pump(number);
    }
  }
  run(result);
}

void Load::one_way(std::uint64_t count, LoadResult& result) {
  const std::uint64_t each = std::max<std::uint64_t>(count / links_.size(), 1);
  begin(Mode::one_way, links_.size(), kCount);
  for (std::size_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    link.allowed += each;
    link.tail.assign(kHeaderSize + StreamCheck::kSyncSize, 0);
    encode_header({kVersion, kSync, StreamCheck::kSyncSize}, link.tail.data());
    const std::uint64_t tag = make_tag(number, link.allowed);
    std::memcpy(link.tail.data() + kHeaderSize, &tag, sizeof tag);
    pump(number);
  }
  run(result);
  result.messages = each * links_.size();
  for (Link& link : links_) {
    link.answered = link.sent;
  }
}

void Load::publish(std::uint64_t count, LoadResult& result) {
  const std::uint64_t messages = std::max<std::uint64_t>((count + links_.size() - 1) / links_.size(), 1);
  begin(Mode::publishing, messages * links_.size(), kPublish);
  arrived_.assign(options_.depth, 0);
  tickets_ = messages;
  for (std::uint32_t i = 0; i < options_.depth && tickets_ > 0; ++i, --tickets_) {
    allow(0, start_ns_);
  }
  pump(0);
  run(result);
  for (Link& link : links_) {
    link.sent = link.allowed = links_[0].sent;  // the number of the next message is the same for all
  }
}

void Load::finish() {
  begin(Mode::finishing, links_.size(), kEcho);
  for (std::size_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    if (link.fd < 0) {
      ++done_;
    } else if (web_ != nullptr && !web_->farewell().empty()) {
      link.tail.assign(web_->farewell().begin(), web_->farewell().end());
      pump(number);
    } else {
      shutdown(link.fd, SHUT_WR);
    }
  }
  LoadResult result;
  run(result);
}

void Load::begin(Mode mode, std::uint64_t goal, std::uint32_t id) {
  mode_ = mode;
  goal_ = goal;
  done_ = 0;
  encode_header({kVersion, id, options_.size}, request_.data());
  output_link_ = ~std::size_t{0};
  for (Link& link : links_) {
    link.base = link.sent;
  }
  start_ns_ = seen_ns_ = busy_ns_ = now_ns();
}

void Load::run(LoadResult& result) {
  result_ = &result;
  result.trips.clear();
  std::array<epoll_event, 256> events{};
  while (done_ < goal_) {
    const std::uint64_t now = now_ns();
    if (mode_ == Mode::open_loop) {
      allow_due(now);
    }
    if (turn_ && now - turned_ns_ > kTurnNs) {
      turned_ns_ = now;
      turn_(now);
    }
    const bool polls = now - busy_ns_ < kAwakeNs || (mode_ == Mode::open_loop && next_due_ < goal_);
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), polls ? 0 : 1);
    if (count > 0) {
      busy_ns_ = now;
    }
    for (int i = 0; i < count; ++i) {
      const std::size_t number = events[static_cast<std::size_t>(i)].data.u64;
      if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
        block(number, false);
        pump(number);
      }
      if ((events[static_cast<std::size_t>(i)].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
        read(number);
      }
    }
    if (moved_ != seen_moved_ || (mode_ == Mode::open_loop && done_ == next_due_)) {
      seen_moved_ = moved_;
      seen_ns_ = now;
    } else if (now > seen_ns_ && now - seen_ns_ > std::uint64_t{options_.patience_ms} * 1'000'000) {
      throw LoadError("no progress for " + std::to_string(options_.patience_ms) + " ms, " +
                      std::to_string(goal_ - done_) + " of " + std::to_string(goal_) + " answers are missing");
    }
  }
  result.messages = goal_;
  result.seconds = static_cast<double>(now_ns() - start_ns_) / 1e9;
}

void Load::connect_next() {
  const std::size_t number = connected_++;
  if (!says_hello()) {
    allow(number, now_ns());
  }
  connect(number);
}

void Load::connect(std::size_t number) {
  Link& link = links_[number];
  link.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (link.fd < 0) {
    throw LoadError("connection " + std::to_string(number) + ": " + reason(errno) + "; see `ulimit -Hn`");
  }
  const int yes = 1;
  setsockopt(link.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(options_.port);
  if (web_ != nullptr && !web_->greeting().empty()) {
    link.greets = true;
    link.tail.assign(web_->greeting().begin(), web_->greeting().end());
  }
  if (::connect(link.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno != EINPROGRESS) {
    complain(number, "connect: " + reason(errno));
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.u64 = number;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, link.fd, &event);
  link.blocked = true;
}

// The server has ended a connection after its one answer.
void Load::renew(std::size_t number, std::uint64_t now) {
  Link& link = links_[number];
  close(link.fd);
  link.fd = -1;
  link.ends = false;
  settle(number, now);
  pump(number);
}

// A connection is ready: the next one is opened.
void Load::note_opened() {
  if (mode_ == Mode::opening && connected_ < links_.size()) {
    connect_next();
  }
}

void Load::allow(std::size_t number, std::uint64_t now) {
  Link& link = links_[number];
  due_[number * options_.depth + link.allowed % options_.depth] = now;
  ++link.allowed;
}

// Allows all requests that are due by now; those of one connection are written together.
void Load::allow_due(std::uint64_t now) {
  for (; next_due_ < goal_ && start_ns_ + next_due_ * interval_ns_ <= now; ++next_due_) {
    const std::size_t number = next_due_ % links_.size();
    ++links_[number].allowed;
    if (!links_[number].queued) {
      links_[number].queued = true;
      due_links_.push_back(number);
    }
  }
  for (const std::size_t number : due_links_) {
    links_[number].queued = false;
    pump(number);
  }
  due_links_.clear();
}

// Encodes frames from the next one to send; frames that are encoded already stay.
void Load::fill(std::size_t number) {
  const Link& link = links_[number];
  if (output_link_ == number && link.sent >= output_first_ && link.sent < output_end_) {
    return;
  }
  output_link_ = number;
  output_first_ = output_end_ = link.sent;
  const std::size_t room = std::max(kBlock / frame_, std::size_t{1});
  output_end_ += std::min<std::uint64_t>(link.allowed - link.sent, room);
  std::uint8_t* to = output_.get();
  for (std::uint64_t sequence = output_first_; sequence < output_end_; ++sequence, to += frame_) {
    const std::uint64_t tag = make_tag(number, sequence);
    if (web_ != nullptr) {
      web_->encode(tag, to);
      continue;
    }
    const std::uint64_t checksum = checksum_of(tag, filling_);
    std::memcpy(to, request_.data(), frame_);
    std::memcpy(to + kHeaderSize, &tag, sizeof tag);
    std::memcpy(to + kHeaderSize + 8, &checksum, sizeof checksum);
  }
}

void Load::pump(std::size_t number) {
  Link& link = links_[number];
  if (link.fd < 0) {
    if (link.sent < link.allowed) {
      connect(number);
    }
    return;
  }
  while (!link.blocked && !link.greets && link.sent < link.allowed) {
    fill(number);
    const std::size_t from = (link.sent - output_first_) * frame_ + link.sent_bytes;
    const std::size_t size = (output_end_ - output_first_) * frame_ - from;
    const ssize_t sent = send(link.fd, output_.get() + from, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      complain(number, "send: " + reason(errno));
    }
    const std::size_t bytes = link.sent_bytes + static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    moved_ += bytes;
    link.sent += bytes / frame_;
    link.sent_bytes = bytes % frame_;
    if (static_cast<std::size_t>(std::max<ssize_t>(sent, 0)) < size) {
      block(number, true);
    }
  }
  if (!link.blocked && !link.tail.empty()) {
    const ssize_t sent = send(link.fd, link.tail.data(), link.tail.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      complain(number, "send: " + reason(errno));
    }
    link.tail.erase(link.tail.begin(), link.tail.begin() + std::max<ssize_t>(sent, 0));
    if (!link.tail.empty()) {
      block(number, true);
    }
  }
}

void Load::block(std::size_t number, bool blocked) {
  Link& link = links_[number];
  if (link.blocked != blocked) {
    link.blocked = blocked;
    epoll_event event{};
    event.events = EPOLLIN | (blocked ? EPOLLOUT : 0U);
    event.data.u64 = number;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, link.fd, &event);
  }
}

void Load::read(std::size_t number) {
  Link& link = links_[number];
  const std::size_t before = link.part.size();
  std::copy(link.part.begin(), link.part.end(), input_.get());
  const ssize_t got = recv(link.fd, input_.get() + before, kBlock, 0);
  const std::uint64_t now = now_ns();
  if (got < 0) {
    if (errno == EAGAIN) {
      return;
    }
    complain(number, "recv: " + reason(errno));
  }
  if (got == 0 && link.ends && before == 0) {
    return renew(number, now);
  }
  if (got == 0) {
    if (mode_ != Mode::finishing || before > 0) {
      complain(number, "the server has closed it");
    }
    epoll_ctl(epoll_, EPOLL_CTL_DEL, link.fd, nullptr);
    ++done_;
    return;
  }
  moved_ += static_cast<std::size_t>(got);
  Bytes bytes(input_.get(), before + static_cast<std::size_t>(got));
  if (web_ != nullptr) {
    bytes = take_web(number, bytes, now);
  }
  while (web_ == nullptr && bytes.size() >= kHeaderSize) {
    const Header header = decode_header(bytes.data());
    if (header.version != kVersion || header.body_size > std::max<std::size_t>(options_.size, StreamCheck::kSyncSize)) {
      complain(number, "an answer has a wrong header");
    }
    if (bytes.size() < kHeaderSize + header.body_size) {
      break;
    }
    take(number, header, bytes.subspan(kHeaderSize, header.body_size), now);
    bytes = bytes.subspan(kHeaderSize + header.body_size);
  }
  link.part.assign(bytes.begin(), bytes.end());
  pump(number);
}

void Load::take(std::size_t number, const Header& header, Bytes body, std::uint64_t now) {
  Link& link = links_[number];
  if (mode_ == Mode::one_way) {
    take_sync(link, number, header, body);
    ++done_;
    return;
  }
  const bool published = mode_ == Mode::publishing;
  const std::size_t sender = published ? 0 : number;
  if (header.id != (published ? kPublish : kEcho) || body.size() != options_.size) {
    complain(number, "an answer has a wrong header");
  }
  if (!intact(body)) {
    complain(number, "an answer is damaged");
  }
  const std::uint64_t tag = tag_of(body);
  const std::uint64_t expected = make_tag(sender, link.answered);
  const bool unasked = link.answered == links_[sender].sent;
  if (tag != expected || unasked) {
    complain(number, tag >> 44U != sender ? "an answer to another connection"
                     : tag < expected     ? "an answer came twice or late"
                     : unasked            ? "an answer to nothing"
                                          : "an answer was lost or overtaken");
  }
  published ? settle_published(link.answered++, now) : settle(number, now);
}

// Takes answers of the web. Returns the bytes that are not a whole part yet.
Bytes Load::take_web(std::size_t number, Bytes bytes, std::uint64_t now) {
  Link& link = links_[number];
  if (mode_ == Mode::finishing && std::ranges::equal(bytes, web_->answer_to_farewell())) {
    shutdown(link.fd, SHUT_WR);
    return {};
  }
  const bool publishes = options_.style == WebStyle::publish;
  const std::size_t sender = publishes ? 0 : number;
  while (!bytes.empty()) {
    if (!link.greets && (link.ends || link.answered == links_[sender].sent)) {
      complain(number, "an answer to nothing");
    }
    const WebWire::Answer answer =
        link.greets ? web_->take_greeting(bytes) : web_->take(bytes, make_tag(sender, link.answered), link.passed);
    if (answer.fault != nullptr) {
      complain(number, answer.fault);
    }
    if (answer.used == 0) {
      break;
    }
    bytes = bytes.subspan(answer.used);
    if (link.greets) {
      link.greets = false;
      if (publishes) {
        ++done_;
        note_opened();
      }
    } else if (answer.whole) {
      link.passed = 0;
      if (publishes) {
        settle_published(link.answered++, now);
      } else if (options_.style == WebStyle::close) {
        link.ends = true;
      } else {
        settle(number, now);
      }
    }
  }
  return bytes;
}

// An answer was right.
void Load::settle(std::size_t number, std::uint64_t now) {
  Link& link = links_[number];
  const std::uint64_t due = mode_ == Mode::open_loop
                                ? start_ns_ + ((link.answered - link.base) * links_.size() + number) * interval_ns_
                                : due_[number * options_.depth + link.answered % options_.depth];
  result_->trips.add(now - due);
  ++link.answered;
  ++done_;
  if (mode_ == Mode::closed_loop && tickets_ > 0) {
    --tickets_;
    allow(number, now);
  }
  note_opened();
}

// A published message has come on one more connection.
void Load::settle_published(std::uint64_t message, std::uint64_t now) {
  result_->trips.add(now - due_[message % options_.depth]);
  ++done_;
  std::uint64_t& arrived = arrived_[message % options_.depth];
  if (++arrived == links_.size()) {
    arrived = 0;
    if (tickets_ > 0) {
      --tickets_;
      allow(0, now);
      pump(0);
    }
  }
}

void Load::take_sync(const Link& link, std::size_t number, const Header& header, Bytes body) const {
  if (header.id != kSync || body.size() != StreamCheck::kSyncSize || tag_of(body) != make_tag(number, link.allowed)) {
    complain(number, "a wrong answer at the end of a stream");
  }
  const auto count = load_word<std::uint64_t>(body.data() + kBodyMin);
  const auto bad = load_word<std::uint64_t>(body.data() + kBodyMin + 8);
  if (count != link.allowed - link.base || bad != 0) {
    complain(number, "of " + std::to_string(link.allowed - link.base) + " messages the server received " +
                         std::to_string(count) + ", " + std::to_string(bad) + " of them bad");
  }
}

void Load::complain(std::size_t number, const std::string& what) const {
  throw LoadError("connection " + std::to_string(number) + ": " + what + ", after " +
                  std::to_string(links_[number].answered) + " answers");
}

}  // namespace bench
