// SPDX-License-Identifier: MIT
// A process that sends and receives until it is stopped or killed. Every message has the generation of the process that
// sent it. A receiver prints a line when it gets the first message of a generation. kill_test.py starts and kills
// these.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "tests/interop/link.h"
#include "weft/base/endian.h"
#include "weft/weft.h"

namespace weft::interop {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // the longest wait of a call before the loop checks for a stop
constexpr std::uint64_t kInFlightMax = 64;      // requests of a DEALER without a reply
constexpr std::uint64_t kPacedEvery = 512;      // messages that a PUSH without a mark sends before it looks
constexpr std::uint64_t kQueuedMax = 2000;      // its messages that may wait
constexpr std::chrono::seconds kSettle{10};     // the longest time until the counters balance

// Every process has this pair of CURVE keys.
constexpr std::array<std::uint8_t, 32> kPublicKey{0x12, 0x91, 0x0a, 0x16, 0x2a, 0x00, 0xb5, 0x3f, 0x2c, 0x97, 0x12,
                                                  0x3e, 0x24, 0xd8, 0x32, 0x86, 0x2c, 0x6e, 0x86, 0x58, 0xdc, 0x1f,
                                                  0x65, 0x97, 0x43, 0x16, 0x3c, 0x63, 0x45, 0xbb, 0xb9, 0x21};
constexpr std::array<std::uint8_t, 32> kSecretKey{0x58, 0x74, 0x2b, 0xf0, 0x56, 0x09, 0x75, 0xac, 0xd6, 0xd6, 0x15,
                                                  0x8c, 0x06, 0xa3, 0xb1, 0x80, 0x20, 0x7c, 0x83, 0xba, 0x24, 0x54,
                                                  0x57, 0x05, 0x4e, 0x20, 0x54, 0x70, 0xa6, 0x80, 0x2f, 0xd3};

struct Options {
  std::string role;
  bool bind = false;
  std::string endpoint;
  std::uint64_t generation = 0;
  bool curve = false;
  bool unmarked = false;  // no high-water mark
};

// The messages that the application gave to the socket, and took from it.
struct Moved {
  std::uint64_t given = 0;
  std::uint64_t taken = 0;
};

[[noreturn]] void fail(const std::string& what) {
  std::printf("failed %s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

void need(const Result<void>& result, const char* what) {
  if (!result) {
    fail(what + (": " + result.error().message()));
  }
}

// [generation][sequence][filler]: mostly small, sometimes so large that a kill cuts it.
std::vector<std::uint8_t> make_note(std::uint64_t generation, std::uint64_t sequence) {
  std::vector<std::uint8_t> note(sequence % 50 == 49 ? 200'000 : 64, static_cast<std::uint8_t>(sequence));
  store_big_endian<std::uint64_t>(note.data(), generation);
  store_big_endian<std::uint64_t>(note.data() + 8, sequence);
  return note;
}

// Checks the messages of one sender: whole, in order, and without a gap unless its last partner may have got some.
class Listener {
 public:
  explicit Listener(bool gaps_allowed) : gaps_allowed_(gaps_allowed) {}

  void hear(Bytes note) {
    if (note.size() < 16) {
      fail("a note of " + std::to_string(note.size()) + " bytes");
    }
    const auto generation = load_big_endian<std::uint64_t>(note.data());
    const auto sequence = load_big_endian<std::uint64_t>(note.data() + 8);
    const std::vector<std::uint8_t> right = make_note(generation, sequence);
    if (!std::equal(note.begin(), note.end(), right.begin(), right.end())) {
      fail("note " + std::to_string(sequence) + " is damaged");
    }
    // Messages of a killed partner may still come between the first notes of its successor.
    const auto [sender, is_new] = next_.try_emplace(generation, sequence);
    if (is_new) {
      std::printf("from %llu\n", static_cast<unsigned long long>(generation));
      std::fflush(stdout);
    } else if (sequence < sender->second || (sequence > sender->second && !gaps_allowed_)) {
      fail("note " + std::to_string(sequence) + " instead of " + std::to_string(sender->second));
    }
    sender->second = sequence + 1;
  }

 private:
  const bool gaps_allowed_;
  std::map<std::uint64_t, std::uint64_t> next_;  // generation -> sequence
};

bool nothing_yet(const Error& error) { return error == Errc::timed_out || error == Errc::would_block; }

std::uint64_t queued_out(Socket& socket) {
  const auto numbers = socket.statistics();
  return numbers ? numbers->queued_out : 0;
}

void run_push(Socket& socket, const Options& options, const std::atomic<bool>& stop, Moved& moved) {
  for (std::uint64_t& sequence = moved.given; !stop;) {
    while (options.unmarked && sequence % kPacedEvery == 0 && queued_out(socket) > kQueuedMax && !stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto sent = socket.send(Bytes(make_note(options.generation, sequence)));
    if (sent) {
      ++sequence;
    } else if (!nothing_yet(sent.error())) {
      need(sent, "send");
    }
  }
}

void run_pull(Socket& socket, const Options& options, const std::atomic<bool>& stop, Moved& moved) {
  Listener listener(options.generation > 0);
  while (!stop) {
    const auto note = socket.recv();
    if (note) {
      ++moved.taken;
      listener.hear(note->bytes());
    } else if (!nothing_yet(note.error())) {
      fail("recv: " + note.error().message());
    }
  }
}

void run_dealer(Socket& socket, const Options& options, const std::atomic<bool>& stop, Moved& moved) {
  Listener listener(true);
  std::uint64_t& sequence = moved.given;
  std::uint64_t in_flight = 0;
  while (!stop) {
    while (in_flight < kInFlightMax && socket.try_send(Bytes(make_note(options.generation, sequence)))) {
      ++sequence;
      ++in_flight;
    }
    const auto note = socket.recv();
    if (note) {
      ++moved.taken;
      listener.hear(note->bytes());
      in_flight -= in_flight > 0 ? 1 : 0;
    } else if (nothing_yet(note.error())) {
      in_flight = 0;  // the partner is gone with them
    } else {
      fail("recv: " + note.error().message());
    }
  }
}

void run_router(Socket& socket, const Options& options, const std::atomic<bool>& stop, Moved& moved) {
  Listener listener(options.generation > 0);
  std::map<std::string, std::uint64_t> sequences;  // of the replies to each dealer
  while (!stop) {
    const auto parts = socket.recv_all();
    if (!parts) {
      if (!nothing_yet(parts.error())) {
        fail("recv: " + parts.error().message());
      }
      continue;
    }
    if (parts->size() != 2) {
      fail("a message of " + std::to_string(parts->size()) + " parts");
    }
    ++moved.taken;
    const std::string id((*parts)[0].text());
    listener.hear((*parts)[1].bytes());
    need(socket.send(id, More::yes), "send id");
    need(socket.send(Bytes(make_note(options.generation, sequences[id]++))), "send");
    ++moved.given;
  }
}

// Once the application has stopped: every message was handed over or delivered, or dropped and counted, or waits. The
// I/O thread may still move some, so wait until the counters agree.
void check_balance(Socket& socket, const Moved& moved) {
  const auto deadline = std::chrono::steady_clock::now() + kSettle;
  for (;;) {
    const auto now = socket.statistics();
    if (!now) {
      fail("statistics: " + now.error().message());
    }
    if (moved.given + now->arrived == now->sent + moved.taken + now->dropped + now->queued_out + now->queued_in) {
      std::printf("balance %llu\n", static_cast<unsigned long long>(now->dropped));
      std::fflush(stdout);
      return;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      fail("no balance: given " + std::to_string(moved.given) + ", arrived " + std::to_string(now->arrived) +
           ", sent " + std::to_string(now->sent) + ", taken " + std::to_string(moved.taken) + ", dropped " +
           std::to_string(now->dropped) + ", queued " + std::to_string(now->queued_out) + " and " +
           std::to_string(now->queued_in));
    }
    std::this_thread::yield();
  }
}

void secure(Socket& socket, const Options& options) {
  const std::string public_key(kPublicKey.begin(), kPublicKey.end());
  need(socket.set(option::curve_secret_key, std::string(kSecretKey.begin(), kSecretKey.end())), "curve_secret_key");
  need(options.bind ? socket.set(option::curve_server, true) : socket.set(option::curve_public_key, public_key),
       "curve_server, curve_public_key");
  need(options.bind ? Result<void>() : socket.set(option::curve_server_key, public_key), "curve_server_key");
}

int usage(std::FILE* to, int status) {
  std::fputs(
      "usage: kill_side push|pull|dealer|router --bind|--connect ENDPOINT --generation N [--curve] [--unmarked]\n"
      "  Says \"at ENDPOINT\", then \"from GENERATION\" whenever it hears from another partner. At the line \"stop\" "
      "it "
      "says \"balance DROPPED\" and ends.\n"
      "  Generation 0 survives; its partners come one after the other.\n"
      "exit status: 0 stopped, 1 something wrong was received, 2 wrong usage\n",
      to);
  return status;
}

int play(const Options& options) {
  const SocketType type = options.role == "push"     ? SocketType::push
                          : options.role == "pull"   ? SocketType::pull
                          : options.role == "dealer" ? SocketType::dealer
                                                     : SocketType::router;
  Context context;
  auto opened = context.socket(type);
  if (!opened) {
    fail(opened.error().message());
  }
  Socket socket = std::move(*opened);
  need(socket.set(option::send_timeout, kLook), "send_timeout");
  need(socket.set(option::receive_timeout, kLook), "receive_timeout");
  if (options.unmarked) {
    need(socket.set(option::send_high_water_mark, 0), "send_high_water_mark");
    need(socket.set(option::receive_high_water_mark, 0), "receive_high_water_mark");
  }
  if (options.curve) {
    secure(socket, options);
  }
  std::string exact = options.endpoint;
  if (options.bind) {
    const auto bound = socket.bind(options.endpoint);
    need(bound ? Result<void>() : bound.error(), "bind");
    exact = *bound;
  } else {
    need(socket.connect(options.endpoint), "connect");
  }
  std::printf("at %s\n", exact.c_str());
  std::fflush(stdout);

  std::atomic<bool> stop{false};
  std::thread listener([&] {
    Link link(STDIN_FILENO, STDOUT_FILENO, false);
    (void)link.wait_line("stop", std::chrono::hours(1));
    stop = true;
  });
  Moved moved;
  (type == SocketType::push     ? run_push
   : type == SocketType::pull   ? run_pull
   : type == SocketType::dealer ? run_dealer
                                : run_router)(socket, options, stop, moved);
  listener.join();
  check_balance(socket, moved);
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  if (argc == 2 && std::string(argv[1]) == "--help") {
    return usage(stdout, 0);
  }
  if (argc < 6) {
    return usage(stderr, 2);
  }
  for (int i = 6; i < argc; ++i) {
    const std::string argument = argv[i];
    options.curve |= argument == "--curve";
    options.unmarked |= argument == "--unmarked";
    if (argument != "--curve" && argument != "--unmarked") {
      return usage(stderr, 2);
    }
  }
  options.role = argv[1];
  options.bind = std::string(argv[2]) == "--bind";
  options.endpoint = argv[3];
  options.generation = std::strtoull(argv[5], nullptr, 10);
  if (options.role != "push" && options.role != "pull" && options.role != "dealer" && options.role != "router") {
    return usage(stderr, 2);
  }
  ::signal(SIGPIPE, SIG_IGN);
  return play(options);
}

}  // namespace
}  // namespace weft::interop

int main(int argc, char** argv) { return weft::interop::run(argc, argv); }
