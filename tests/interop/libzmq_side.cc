// SPDX-License-Identifier: MIT
// One side of the cells of libzmq_matrix.py, on zmq.h alone. LD_LIBRARY_PATH selects the libzmq.so.5 that it runs on. A
// cell is a line of input, `cell bind|connect TYPE PEER MECHANISM HEARTBEATS ENDPOINT SERVER_KEY`; the answers are
// lines, too.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "capi/zmq.h"

namespace {

using Message = std::vector<std::string>;  // its parts

constexpr int kMessages = 12;
constexpr int kMessagesWithHeartbeats = 60;  // enough that heartbeats come between them
constexpr int kPatience = 20'000;            // milliseconds for anything that must happen

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error(what + ": " + zmq_strerror(zmq_errno()));
}

// The messages of a cell: parts of every kind of length, one to three of them.
Message message_of(int index) {
  constexpr std::array<std::size_t, 8> kSizes{0, 1, 112, 255, 256, 1000, 8192, 70'000};
  Message message(static_cast<std::size_t>(1 + index % 3));
  for (std::size_t part = 0; part < message.size(); ++part) {
    message[part].resize(kSizes[(static_cast<std::size_t>(index) + 3 * part) % kSizes.size()]);
    for (std::size_t i = 0; i < message[part].size(); ++i) {
      message[part][i] = static_cast<char>(i * 7 + part * 31 + static_cast<std::size_t>(index));
    }
  }
  return message;
}

// How many messages, and a checksum of their parts' lengths and bytes, in order.
struct Tally {
  int count = 0;
  std::uint64_t sum = 14'695'981'039'346'656'037U;

  void add(const Message& message) {
    ++count;
    for (const std::string& part : message) {
      mix(part.size());
      for (const char c : part) {
        mix(static_cast<unsigned char>(c));
      }
    }
    mix(message.size());
  }

 private:
  void mix(std::uint64_t value) { sum = (sum ^ value) * 1'099'511'628'211U; }
};

// Lines from standard input, whole ones, with or without waiting.
class Input {
 public:
  bool has_line(long patience) {
    while (buffered_.find('\n') == std::string::npos) {
      zmq_pollitem_t item{nullptr, STDIN_FILENO, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, patience) <= 0) {
        return false;
      }
      std::array<char, 4096> block;
      const ssize_t got = read(STDIN_FILENO, block.data(), block.size());
      if (got <= 0) {
        return ended_ = true;
      }
      buffered_.append(block.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  std::string line() {
    if (!has_line(-1) || ended_) {
      return "";
    }
    const std::size_t end = buffered_.find('\n');
    const std::string text = buffered_.substr(0, end);
    buffered_.erase(0, end + 1);
    return text;
  }

 private:
  std::string buffered_;
  bool ended_ = false;
};

// An authenticator that accepts every client: libzmq's servers with users or keys need one.
void authenticate(void* socket) {
  std::array<char, 256> request_id;
  std::array<char, 256> rest;
  for (;;) {
    int more = 1;
    int id_size = 0;
    for (int part = 0; more != 0; ++part) {
      std::size_t size = sizeof more;
      const int got = zmq_recv(socket, part == 1 ? request_id.data() : rest.data(), rest.size(), 0);
      if (got < 0 || zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) {
        zmq_close(socket);
        return;  // the context ends
      }
      id_size = part == 1 ? got : id_size;
    }
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, request_id.data(), static_cast<std::size_t>(id_size), ZMQ_SNDMORE);
    for (const char* part : {"200", "OK", "user"}) {
      zmq_send(socket, part, std::strlen(part), ZMQ_SNDMORE);
    }
    zmq_send(socket, "", 0, 0);
  }
}

class Side {
 public:
  Side(void* socket, Input& input, int type, int peer) : socket_(socket), input_(input), type_(type), peer_(peer) {
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, kPatience);
    set(ZMQ_SNDTIMEO, kPatience);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() { zmq_close(socket_); }

  struct Keys {
    std::array<char, 41> public_key;
    std::array<char, 41> secret_key;
  };

  void secure(const std::string& mechanism, bool serves, const Keys& keys, const std::string& server_key) {
    if (mechanism == "plain" && serves) {
      set(ZMQ_PLAIN_SERVER, 1);
    } else if (mechanism == "plain") {
      set(ZMQ_PLAIN_USERNAME, "user");
      set(ZMQ_PLAIN_PASSWORD, "password");
    } else if (mechanism == "curve" && serves) {
      set(ZMQ_CURVE_SERVER, 1);
      set(ZMQ_CURVE_SECRETKEY, keys.secret_key.data());
    } else if (mechanism == "curve") {
      set(ZMQ_CURVE_PUBLICKEY, keys.public_key.data());
      set(ZMQ_CURVE_SECRETKEY, keys.secret_key.data());
      set(ZMQ_CURVE_SERVERKEY, server_key);
    }
  }

  void beat() {
    messages_ = kMessagesWithHeartbeats;
    set(ZMQ_HEARTBEAT_IVL, 1);
    set(ZMQ_HEARTBEAT_TTL, kPatience);
    set(ZMQ_HEARTBEAT_TIMEOUT, kPatience);
  }

  void join(bool binds, const std::string& endpoint) {
    if (type_ == ZMQ_ROUTER && peer_ == ZMQ_ROUTER) {
      set(ZMQ_ROUTING_ID, binds ? "bound" : "connected");
      set(ZMQ_ROUTER_MANDATORY, 1);
    }
    if (type_ == ZMQ_SUB) {
      set(ZMQ_SUBSCRIBE, "data");
      set(ZMQ_SUBSCRIBE, "sync");
    }
    if ((binds ? zmq_bind : zmq_connect)(socket_, endpoint.c_str()) != 0) {
      give_up(binds ? "bind" : "connect");
    }
    if (type_ == ZMQ_XSUB) {
      send({"\1data"});
      send({"\1sync"});
    }
    if (binds) {
      std::array<char, 256> bound;
      std::size_t size = bound.size();
      if (zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound.data(), &size) != 0) {
        give_up("last endpoint");
      }
      std::printf("at %s\n", bound.data());
    }
  }

  void play(bool binds) {
    switch (type_) {
      case ZMQ_PUSH: return send_all({});
      case ZMQ_PULL: return receive_all(0);
      case ZMQ_PUB:
      case ZMQ_XPUB: return publish();
      case ZMQ_SUB:
      case ZMQ_XSUB: return subscribe();
      case ZMQ_REQ: return request();
      case ZMQ_REP: return echo(0);
      case ZMQ_ROUTER: return peer_ == ZMQ_ROUTER && !binds ? ask({"bound"}) : echo(peer_ == ZMQ_REQ ? 2 : 1);
      case ZMQ_DEALER: return peer_ == ZMQ_REP ? ask({""}) : peer_ == ZMQ_ROUTER || !binds ? ask({}) : echo(0);
      default: return binds ? echo(0) : ask({});
    }
  }

  void report() const {
    std::printf("done %d %016jx %d %016jx\n", sent_.count, static_cast<std::uintmax_t>(sent_.sum), received_.count,
                static_cast<std::uintmax_t>(received_.sum));
  }

 private:
  void set(int option, int value) { set(option, &value, sizeof value); }
  void set(int option, const std::string& value) { set(option, value.data(), value.size()); }
  void set(int option, const void* value, std::size_t size) {
    if (zmq_setsockopt(socket_, option, value, size) != 0) {
      give_up("option " + std::to_string(option));
    }
  }

  // Retries a message that cannot be sent because the peer is not connected yet.
  void send(const Message& message) {
    for (std::size_t i = 0; i < message.size(); ++i) {
      const int flags = i + 1 < message.size() ? ZMQ_SNDMORE : 0;
      while (zmq_send(socket_, message[i].data(), message[i].size(), flags) < 0) {
        if (zmq_errno() != EHOSTUNREACH || input_.has_line(1)) {
          give_up("send");
        }
      }
    }
  }
  Message receive() {
    Message message;
    for (int more = 1; more != 0;) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      if (zmq_msg_recv(&part, socket_, 0) < 0) {
        give_up("receive, after " + std::to_string(received_.count));
      }
      message.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
      more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    return message;
  }

  void send_one(const Message& envelope, const Message& body) {
    Message message = envelope;
    message.insert(message.end(), body.begin(), body.end());
    send(message);
    sent_.add(body);
  }
  void receive_one(std::size_t envelope, Message* taken = nullptr) {
    Message body = receive();
    if (body.size() <= envelope) {
      throw std::runtime_error("received " + std::to_string(body.size()) + " parts");
    }
    const auto end = body.begin() + static_cast<std::ptrdiff_t>(envelope);
    const Message head(body.begin(), end);
    body.erase(body.begin(), end);
    received_.add(body);
    if (taken != nullptr) {
      send_one(head, *taken = body);
    }
  }

  void send_all(const Message& envelope) {
    for (int i = 0; i < messages_; ++i) {
      send_one(envelope, message_of(i));
    }
  }
  void receive_all(std::size_t envelope) {
    for (int i = 0; i < messages_; ++i) {
      receive_one(envelope);
    }
  }
  void ask(const Message& envelope) {
    send_all(envelope);
    receive_all(envelope.size());
  }
  void request() {
    for (int i = 0; i < messages_; ++i) {
      send_one({}, message_of(i));
      receive_one(0);
    }
  }
  void echo(std::size_t envelope) {
    Message body;
    for (int i = 0; i < messages_; ++i) {
      receive_one(envelope, &body);
    }
  }

  // Publishes until the other side reports, through the script, that messages arrive. Unsubscribed topics must not
  // arrive.
  void publish() {
    while (!input_.has_line(1)) {
      send({"sync"});
    }
    (void)input_.line();
    for (int i = 0; i < messages_; ++i) {
      send({"noise", "nobody wants it"});
      send_one({"data"}, message_of(i));
    }
  }
  void subscribe() {
    if (receive() != Message{"sync"}) {
      throw std::runtime_error("not what is published first");
    }
    std::puts("synced");
    while (received_.count < messages_) {
      Message message = receive();
      const std::string topic = message.front();
      message.erase(message.begin());
      if (topic == "data") {
        received_.add(message);
      } else if (topic != "sync") {
        throw std::runtime_error("heard " + topic);
      }
    }
  }

  void* const socket_;
  Input& input_;
  const int type_;
  const int peer_;
  int messages_ = kMessages;
  Tally sent_;
  Tally received_;
};

void run_cell(std::istringstream& words, void* context, Input& input, const Side::Keys& keys) {
  std::string how;
  std::string mechanism;
  std::string endpoint;
  std::string server_key;
  int type = 0;
  int peer = 0;
  bool heartbeats = false;
  words >> how >> type >> peer >> mechanism >> heartbeats >> endpoint >> server_key;
  const bool binds = how == "bind";
  Side side(zmq_socket(context, type), input, type, peer);
  side.secure(mechanism, binds, keys, server_key);
  if (heartbeats) {
    side.beat();
  }
  side.join(binds, endpoint);
  side.play(binds);
  side.report();
  (void)input.line();  // the other side has done too
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Side::Keys keys{};
  zmq_curve_keypair(keys.public_key.data(), keys.secret_key.data());
  void* const context = zmq_ctx_new();
  void* const authenticator = zmq_socket(context, ZMQ_REP);
  if (zmq_bind(authenticator, "inproc://zeromq.zap.01") != 0) {
    return 2;
  }
  void* const thread = zmq_threadstart(authenticate, authenticator);
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  const char* const whose = dlsym(RTLD_DEFAULT, "weft_version") != nullptr ? "weft" : "libzmq";
  std::printf("ready %s %d.%d.%d %s\n", whose, major, minor, patch, keys.public_key.data());
  Input input;
  int status = 0;
  for (std::string line = input.line(); !line.empty(); line = input.line()) {
    try {
      std::istringstream words(line.substr(std::strlen("cell ")));
      run_cell(words, context, input, keys);
    } catch (const std::exception& error) {
      std::printf("failed %s\n", error.what());
      status = 1;
      break;
    }
  }
  zmq_ctx_shutdown(context);
  zmq_threadclose(thread);
  zmq_ctx_term(context);
  return status;
}
