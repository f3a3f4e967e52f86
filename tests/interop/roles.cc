// SPDX-License-Identifier: MIT
#include "tests/interop/roles.h"

#include <algorithm>
#include <map>

#include "tests/interop/side.h"

namespace weft::interop {

namespace {

constexpr int kDealers = 3;
constexpr std::uint64_t kReplies = 10;  // stream of a reply = stream of its request + this

// A name for each dealer except the last, which is named by the router.
std::string dealer_name(int dealer) { return dealer + 1 < kDealers ? "dealer-" + std::to_string(dealer) : ""; }

std::uint64_t at(int sequence) { return static_cast<std::uint64_t>(sequence); }

void run_push(Side& side) {
  Socket socket = side.open(SocketType::push);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    for (int i = 0; i < side.job().count; ++i) {
      side.send(socket, {0, at(i)});
    }
  }
  side.check_balance({&socket});
}

void run_pull(Side& side) {
  Socket socket = side.open(SocketType::pull);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    for (int i = 0; i < side.job().count; ++i) {
      side.expect(socket, {0, at(i)});
    }
  }
  side.check_balance({&socket});
}

// Expects that no further message comes: an unexpected one would be received next.
void need_quiet(Socket& socket) {
  const auto extra = socket.try_recv();
  need(!extra && extra.error() == Errc::would_block, "something more arrived");
}

void run_req(Side& side) {
  Socket socket = side.open(SocketType::req);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    for (int i = 0; i < side.job().count; ++i) {
      side.send(socket, {0, at(i)});
      if (i == 0) {
        need(socket.send("out of turn").error() == Errc::invalid_state, "REQ sends twice");
      }
      side.expect(socket, {kReplies, at(i)});
    }
    need(socket.try_recv().error() == Errc::invalid_state, "REQ receives without a request");
  }
  side.check_balance({&socket});
}

void run_rep(Side& side) {
  Socket socket = side.open(SocketType::rep);
  side.join({&socket});
  need(socket.send("out of turn").error() == Errc::invalid_state, "REP sends without a request");
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    for (int i = 0; i < side.job().count; ++i) {
      side.expect(socket, {0, at(i)});
      if (i == 0) {
        need(socket.try_recv().error() == Errc::invalid_state, "REP receives twice");
      }
      side.send(socket, {kReplies, at(i)});
    }
  }
  side.check_balance({&socket});
}

// Sends in bursts and takes the replies to each.
void ask_in_bursts(Side& side, Socket& socket, std::uint64_t stream) {
  constexpr int kBurst = 16;
  for (int i = 0; i < side.job().count; i += kBurst) {
    const int end = std::min(i + kBurst, side.job().count);
    for (int j = i; j < end; ++j) {
      side.send(socket, {stream, at(j)});
    }
    for (int j = i; j < end; ++j) {
      side.expect(socket, {stream + kReplies, at(j)});
    }
  }
}

void run_pair(Side& side) {
  Socket socket = side.open(SocketType::pair);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    ask_in_bursts(side, socket, 0);
  }
  need_quiet(socket);
  side.check_balance({&socket});
}

void run_echo(Side& side) {
  Socket socket = side.open(SocketType::pair);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round);
    for (int i = 0; i < side.job().count; ++i) {
      side.expect(socket, {0, at(i)});
      side.send(socket, {kReplies, at(i)});
    }
  }
  side.check_balance({&socket});
}

void run_dealers(Side& side) {
  std::vector<Socket> sockets;
  std::vector<Socket*> all;
  for (int i = 0; i < kDealers; ++i) {
    sockets.push_back(side.open(SocketType::dealer));
    need(sockets.back().set(option::routing_id, dealer_name(i)), "routing_id");
  }
  for (Socket& socket : sockets) {
    all.push_back(&socket);
  }
  side.join(all);
  in_threads(kDealers, [&](int i) {
    Socket& socket = sockets[static_cast<std::size_t>(i)];
    for (int round = 0; round < side.job().rounds; ++round) {
      side.begin_round(socket, round);
      ask_in_bursts(side, socket, at(i));
    }
    need_quiet(socket);
  });
  side.check_balance(all);
}

int dealer_of(std::string_view routing_id) {
  for (int i = 0; i + 1 < kDealers; ++i) {
    if (routing_id == dealer_name(i)) {
      return i;
    }
  }
  need(!routing_id.empty() && routing_id[0] == '\0', "unexpected routing id " + std::string(routing_id));
  return kDealers - 1;
}

void run_router(Side& side) {
  Socket socket = side.open(SocketType::router);
  side.join({&socket});
  for (int round = 0; round < side.job().rounds; ++round) {
    side.begin_round(socket, round, kDealers);
    std::map<int, std::uint64_t> next;  // dealer -> sequence
    for (int i = 0; i < kDealers * side.job().count; ++i) {
      std::vector<Message> parts = side.receive(socket);
      need(parts.size() > 1, "a message without a routing id");
      const std::string id(parts.front().text());
      parts.erase(parts.begin());
      const int dealer = dealer_of(id);
      const std::uint64_t sequence = next[dealer]++;
      const std::string wrong = check_message(side.job().shape, {at(dealer), sequence}, {}, parts);
      need(wrong.empty(), wrong);
      side.count_received();
      side.send(socket, {at(dealer) + kReplies, sequence}, {}, id);
    }
  }
  need_quiet(socket);
  side.check_balance({&socket});
}

struct Row {
  const char* role;
  const char* partner;
  void (*run)(Side& side);
};
constexpr Row kRows[] = {
    {"push", "pull", run_push},        {"pull", "push", run_pull},       {"pub", "sub", run_publisher},
    {"sub", "pub", run_subscribers},   {"xpub", "xsub", run_xpub},       {"xsub", "xpub", run_xsub},
    {"dealer", "router", run_dealers}, {"router", "dealer", run_router}, {"req", "rep", run_req},
    {"rep", "req", run_rep},           {"pair", "echo", run_pair},       {"echo", "pair", run_echo},
};

const Row* find_row(const std::string& role) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.role == role; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool is_role(const std::string& name) { return find_row(name) != nullptr; }
std::string partner_of(const std::string& role) { return find_row(role)->partner; }

Outcome run_role(Context& context, const Job& job, Link& link) {
  Outcome outcome;
  Side side(context, job, link);
  try {
    find_row(job.role)->run(side);
    need(side.balanced(), "the role ended without a balance");
  } catch (const Failure& failure) {
    outcome.error = job.role + ": " + failure.what();
  }
  outcome.sent = side.sent();
  outcome.received = side.received();
  outcome.handed = side.handed();
  outcome.arrived = side.arrived();
  return outcome;
}

}  // namespace weft::interop
