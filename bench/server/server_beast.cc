// SPDX-License-Identifier: MIT
// Boost.Beast: an io_context for each thread, no strand, no timer, one buffer for a connection.
#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <boost/version.hpp>
#include <charconv>
#include <optional>
#include <thread>

#include "bench/server/host.h"
#include "bench/server/web_wire.h"

namespace bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

const std::string& text() {
  static const std::string letters_of_all = letters(kBodyMax);
  return letters_of_all;
}

class WebSocketSession : public std::enable_shared_from_this<WebSocketSession> {
 public:
  WebSocketSession(tcp::socket socket, Tally& tally) : stream_(std::move(socket)), tally_(tally) {
    stream_.binary(true);
    stream_.auto_fragment(false);
    stream_.read_message_max(kBodyMax);
  }

  void start(http::request<http::empty_body> request) {
    request_ = std::move(request);
    stream_.async_accept(request_, [self = shared_from_this()](error_code error) {
      if (!error) {
        self->read();
      }
    });
  }

 private:
  void read() {
    stream_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) {
        self->tally_.add(Tally::messages);
        self->write();
      }
    });
  }

  void write() {
    stream_.async_write(buffer_.data(), [self = shared_from_this()](error_code error, std::size_t size) {
      if (!error) {
        self->buffer_.consume(size);
        self->read();
      }
    });
  }

  beast::websocket::stream<tcp::socket> stream_;
  Tally& tally_;
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(tcp::socket socket, Tally& tally) : socket_(std::move(socket)), tally_(tally) {}

  void read() {
    request_ = {};
    http::async_read(socket_, buffer_, request_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) {
        self->answer();
      }
    });
  }

 private:
  void answer() {
    if (beast::websocket::is_upgrade(request_)) {
      std::make_shared<WebSocketSession>(std::move(socket_), tally_)->start(std::move(request_));
      return;
    }
    tally_.add(Tally::messages);
    const auto target = request_.target();
    std::size_t size = 0;
    std::from_chars(target.data() + 1, target.data() + target.size(), size);
    answer_.emplace(http::status::ok, request_.version());
    answer_->set(http::field::content_type, "text/plain; charset=utf-8");
    answer_->body() = {text().data(), std::min(size, text().size())};
    answer_->keep_alive(request_.keep_alive());
    answer_->prepare_payload();
    http::async_write(socket_, *answer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error && self->request_.keep_alive()) {
        self->read();
      }
    });
  }

  tcp::socket socket_;
  Tally& tally_;
  beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  std::optional<http::response<http::span_body<const char>>> answer_;  // sends the text from where it is
};

// Thread n serves every connection that its own listener accepts.
void serve(asio::io_context& context, tcp::acceptor& acceptor, Tally& tally) {
  acceptor.async_accept([&](error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      tally.add(Tally::accepted);
      std::make_shared<HttpSession>(std::move(socket), tally)->read();
    }
    serve(context, acceptor, tally);
  });
}

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  (void)text();
  std::uint16_t port = 0;
  for (unsigned i = 0; i < options.threads; ++i) {
    // Both live as long as the program.
    auto* const context = new asio::io_context(1);
    auto* const acceptor = new tcp::acceptor(*context);
    acceptor->assign(tcp::v4(), listen_on(port, true));
    serve(*context, *acceptor, tallies[i]);
    std::thread([context] { context->run(); }).detach();
  }
  return {"Boost.Beast of Boost " BOOST_LIB_VERSION, port, {}};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start); }
