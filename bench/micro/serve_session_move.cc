// SPDX-License-Identifier: MIT
// A session that moves to the other core with each frame, and answers there; beside the same by hand on Boost.Asio with
// one io_context per thread: the socket is released, posted, and assigned again.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/rt/core/core.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/topology.h"

#if __has_include(<boost/asio/io_context.hpp>)
#define WEFT_RIVAL_ASIO_MOVE
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#endif

namespace {

using Codec = weft::serve::DelimiterCodec;
using Session = weft::serve::SessionOf<Codec>;

constexpr unsigned kCores = 2;

// The client of one connection: a line goes there, and a line comes back.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      std::abort();
    }
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { ::close(fd_); }

  void ask() const {
    char answer[2];
    if (::write(fd_, "m\n", 2) != 2 || ::recv(fd_, answer, sizeof answer, MSG_WAITALL) != 2) {
      std::abort();
    }
  }

 private:
  int fd_;
};

// Answers a frame on the core on which it arrived, or on the other one.
template <bool kMoves>
struct Answerer {
  void on_open(Session& session) const {
    if (session.state<bool>() != nullptr) {
      (void)session.send({}, weft::as_bytes("m"));
    }
  }
  void on_frame(Session& session, const Codec::Frame& frame) const {
    if constexpr (kMoves) {
      (void)session.template make_state<bool>(true);
      if (!session.move_to(1 - weft::rt::Core::current()->index())) {
        std::abort();
      }
    } else {
      (void)session.send({}, frame.body);
    }
  }
};

template <bool kMoves>
void run_weft(benchmark::State& state) {
  weft::rt::RuntimeOptions options;
  options.cores = kCores;
  options.wait_mode = weft::sync::WaitMode::eco;  // the client needs a processor, too
  const auto runtime = std::move(weft::rt::Runtime::start(options)).value();
  const auto server = std::move(weft::serve::Server::make(*runtime)).value();
  const std::string endpoint =
      server->listen<Codec>("tcp://127.0.0.1:0", {}, [] { return Answerer<kMoves>(); }).value();
  const Peer peer(static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1))));
  for (auto _ : state) {
    peer.ask();
  }
}

#ifdef WEFT_RIVAL_ASIO_MOVE
namespace asio = boost::asio;

class AsioServer {
 public:
  explicit AsioServer(bool moves) : moves_(moves), acceptor_(contexts_[0], {asio::ip::address_v4::loopback(), 0}) {
    acceptor_.async_accept([this](const boost::system::error_code& failed, asio::ip::tcp::socket socket) {
      if (!failed) {
        socket_ = std::make_unique<asio::ip::tcp::socket>(std::move(socket));
        read();
      }
    });
    for (auto& context : contexts_) {
      threads_.emplace_back([&context] { context.run(); });
    }
  }
  ~AsioServer() {
    for (auto& context : contexts_) {
      context.stop();
    }
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void read() {
    asio::async_read(*socket_, asio::buffer(line_), [this](const boost::system::error_code& failed, std::size_t) {
      if (!failed) {
        moves_ ? move() : answer();
      }
    });
  }
  void move() {
    at_ = 1 - at_;
    asio::post(contexts_[at_], [this, fd = socket_->release()] {
      socket_ = std::make_unique<asio::ip::tcp::socket>(contexts_[at_], asio::ip::tcp::v4(), fd);
      answer();
    });
  }
  void answer() {
    asio::async_write(*socket_, asio::buffer(line_), [this](const boost::system::error_code& failed, std::size_t) {
      if (!failed) {
        read();
      }
    });
  }

  const bool moves_;
  std::array<asio::io_context, kCores> contexts_;
  std::array<asio::executor_work_guard<asio::io_context::executor_type>, kCores> guards_{
      asio::make_work_guard(contexts_[0]), asio::make_work_guard(contexts_[1])};
  asio::ip::tcp::acceptor acceptor_;
  std::unique_ptr<asio::ip::tcp::socket> socket_;
  std::size_t at_ = 0;
  std::array<char, 2> line_{};
  std::vector<std::thread> threads_;
};

template <bool kMoves>
void run_asio(benchmark::State& state) {
  const AsioServer server(kMoves);
  const Peer peer(server.port());
  for (auto _ : state) {
    peer.ask();
  }
}
#endif

// The threads of the servers work beside: the row has two threads, so that its instructions are not counted.
bench::Body in_thread_0(bench::Body body) {
  return [body = std::move(body)](benchmark::State& state) {
    if (state.thread_index() == 0) {
      return body(state);
    }
    for (auto _ : state) {
    }
  };
}

template <bool kMoves>
bench::RowBuilder move_row(const char* name) {
  auto row = bench::row(name);
  row.run_threads("weft", 2, in_thread_0(run_weft<kMoves>));
#ifdef WEFT_RIVAL_ASIO_MOVE
  row.run_threads("asio", 2, in_thread_0(run_asio<kMoves>));
#endif
  return row;
}

const auto kMoved = move_row<true>("Session_RoundTrip/moves_each_time");
const auto kStays = move_row<false>("Session_RoundTrip/stays");

}  // namespace
