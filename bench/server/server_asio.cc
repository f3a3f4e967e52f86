// SPDX-License-Identifier: MIT
// Boost.Asio, doing the same work. The default is the usual style, as in Asio's own chat example: the header is
// read, then the body; answers stand in a queue, and each is one write. `awaitable` is the same as coroutines.
// `tuned` is the best that the authors of this benchmark can do with Asio: all bytes that have arrived are read
// into a large buffer, and all answers to them are one write.
#define BOOST_ASIO_NO_DEPRECATED
#include <array>
#include <boost/asio.hpp>
#include <deque>
#include <thread>

#include "bench/server/host.h"

namespace bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Block = std::vector<std::uint8_t>;

bool acceptable(const Header& header) { return header.version == kVersion && header.body_size <= kBodyMax; }

// Appends the answer to a frame to `to`; nothing for a frame that is only counted.
void append_answer(StreamCheck& stream, const Header& header, Bytes body, Block& to) {
  if (header.id == kCount) {
    stream.take(body);
    return;
  }
  const std::size_t at = to.size();
  to.resize(at + kHeaderSize);
  encode_header(header, to.data() + at);
  to.insert(to.end(), body.begin(), body.end());
  if (header.id == kSync) {
    stream.answer(body, to.data() + at + kHeaderSize);
  }
}

class PlainSession : public std::enable_shared_from_this<PlainSession> {
 public:
  PlainSession(tcp::socket socket, Tally& tally) : socket_(std::move(socket)), tally_(tally) {}
  ~PlainSession() { tally_.add(Tally::closed); }
  PlainSession(const PlainSession&) = delete;
  PlainSession& operator=(const PlainSession&) = delete;
  void start() { read_header(); }

 private:
  void read_header() {
    asio::async_read(socket_, asio::buffer(header_), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) {
        return;
      }
      self->frame_ = decode_header(self->header_.data());
      if (acceptable(self->frame_)) {
        self->read_body();
      }
    });
  }

  void read_body() {
    body_.resize(frame_.body_size);
    asio::async_read(socket_, asio::buffer(body_), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) {
        return;
      }
      self->tally_.add(Tally::messages);
      Block answer;
      append_answer(self->stream_, self->frame_, self->body_, answer);
      if (!answer.empty()) {
        self->queue_.push_back(std::move(answer));
        if (self->queue_.size() == 1) {
          self->write();
        }
      }
      self->read_header();
    });
  }

  void write() {
    asio::async_write(socket_, asio::buffer(queue_.front()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) {
                          self->socket_.close(error);
                          return;
                        }
                        self->queue_.pop_front();
                        if (!self->queue_.empty()) {
                          self->write();
                        }
                      });
  }

  tcp::socket socket_;
  Tally& tally_;
  StreamCheck stream_;
  std::array<std::uint8_t, kHeaderSize> header_{};
  Header frame_;
  Block body_;
  std::deque<Block> queue_;
};

class TunedSession : public std::enable_shared_from_this<TunedSession> {
 public:
  TunedSession(tcp::socket socket, Tally& tally) : socket_(std::move(socket)), tally_(tally) {}
  ~TunedSession() { tally_.add(Tally::closed); }
  TunedSession(const TunedSession&) = delete;
  TunedSession& operator=(const TunedSession&) = delete;
  void start() {
    socket_.non_blocking(true);
    wait();
  }

 private:
  // Reads only after the socket is readable, into a block of the thread: an idle connection has no buffer, and no read
  // fails for lack of bytes.
  void wait() {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      if (!error) {
        self->read();
      }
    });
  }

  void read() {
    thread_local Block block(std::size_t{256} << 10U);
    if (block.size() < part_.size() + wanted_) {
      block.resize(part_.size() + wanted_);
    }
    std::copy(part_.begin(), part_.end(), block.begin());
    error_code error;
    const std::size_t got =
        socket_.read_some(asio::buffer(block.data() + part_.size(), block.size() - part_.size()), error);
    if (error && error != asio::error::would_block) {
      return;
    }
    if (!answer({block.data(), part_.size() + got})) {
      return;
    }
    std::size_t sent = answers_.empty() ? 0 : socket_.write_some(asio::buffer(answers_), error);
    if (sent == answers_.size()) {
      answers_.clear();
      wait();
      return;
    }
    asio::async_write(socket_, asio::buffer(answers_.data() + sent, answers_.size() - sent),
                      [self = shared_from_this()](error_code failure, std::size_t) {
                        if (!failure) {
                          self->answers_.clear();
                          self->wait();
                        }
                      });
  }

  bool answer(Bytes bytes) {
    std::uint64_t messages = 0;
    while (bytes.size() >= kHeaderSize) {
      const Header header = decode_header(bytes.data());
      if (!acceptable(header)) {
        return false;
      }
      if (bytes.size() < kHeaderSize + header.body_size) {
        wanted_ = kHeaderSize + header.body_size;
        break;
      }
      append_answer(stream_, header, bytes.subspan(kHeaderSize, header.body_size), answers_);
      bytes = bytes.subspan(kHeaderSize + header.body_size);
      ++messages;
    }
    tally_.add(Tally::messages, messages);
    part_.assign(bytes.begin(), bytes.end());
    return true;
  }

  tcp::socket socket_;
  Tally& tally_;
  StreamCheck stream_;
  Block part_;
  Block answers_;
  std::size_t wanted_ = 4096;
};

asio::awaitable<void> serve(tcp::socket socket, Tally& tally) {
  StreamCheck stream;
  std::array<std::uint8_t, kHeaderSize> bytes{};
  Block body;
  Block answer;
  try {
    for (;;) {
      co_await asio::async_read(socket, asio::buffer(bytes), asio::use_awaitable);
      const Header header = decode_header(bytes.data());
      if (!acceptable(header)) {
        break;
      }
      body.resize(header.body_size);
      co_await asio::async_read(socket, asio::buffer(body), asio::use_awaitable);
      tally.add(Tally::messages);
      answer.clear();
      append_answer(stream, header, body, answer);
      if (!answer.empty()) {
        co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
      }
    }
  } catch (const boost::system::system_error&) {
    // The peer has closed or failed.
  }
  tally.add(Tally::closed);
}

enum class Variant { plain, tuned, awaitable };

// One context for each thread; the first one accepts for all of them in turns.
class Server {
 public:
  Server(unsigned threads, Variant variant, std::vector<Tally>& tallies) : variant_(variant), tallies_(tallies) {
    for (unsigned i = 0; i < threads; ++i) {
      contexts_.push_back(std::make_unique<asio::io_context>(1));
    }
    acceptor_ = std::make_unique<tcp::acceptor>(*contexts_[0]);
    std::uint16_t port = 0;
    acceptor_->assign(tcp::v4(), listen_on(port, false));
    pause_ = std::make_unique<asio::steady_timer>(*contexts_[0]);
    accept();
    for (const auto& context : contexts_) {
      std::thread([&context = *context] {
        const auto guard = asio::make_work_guard(context);
        context.run();
      }).detach();
    }
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_->local_endpoint().port(); }

 private:
  void accept() {
    const std::size_t turn = next_++ % contexts_.size();
    acceptor_->async_accept(*contexts_[turn], [this, turn](error_code error, tcp::socket socket) {
      if (error) {  // no more files: pause instead of burning a core
        pause_->expires_after(std::chrono::milliseconds(100));
        pause_->async_wait([this](error_code) { accept(); });
        return;
      }
      socket.set_option(tcp::no_delay(true), error);
      tallies_[0].add(Tally::accepted);
      asio::post(*contexts_[turn], [this, turn, held = std::make_shared<tcp::socket>(std::move(socket))] {
        begin(std::move(*held), tallies_[turn]);
      });
      accept();
    });
  }

  void begin(tcp::socket socket, Tally& tally) {
    if (variant_ == Variant::plain) {
      std::make_shared<PlainSession>(std::move(socket), tally)->start();
    } else if (variant_ == Variant::tuned) {
      std::make_shared<TunedSession>(std::move(socket), tally)->start();
    } else {
      const auto executor = socket.get_executor();
      asio::co_spawn(executor, serve(std::move(socket), tally), asio::detached);
    }
  }

  const Variant variant_;
  std::vector<Tally>& tallies_;
  std::vector<std::unique_ptr<asio::io_context>> contexts_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> pause_;
  std::size_t next_ = 0;
};

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  const Variant variant = options.variant == "tuned"       ? Variant::tuned
                          : options.variant == "awaitable" ? Variant::awaitable
                                                           : Variant::plain;
  auto* const server = new Server(options.threads, variant, tallies);  // lives as long as the program
  return {"Boost.Asio " BOOST_LIB_VERSION, server->port(), {}};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "plain, tuned, awaitable", bench::start); }
