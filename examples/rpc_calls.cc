// SPDX-License-Identifier: MIT
// Calls with types: a shop that prices an order, and asks a warehouse within the time and the trace of the call. Errors
// with a code, deadlines, and cancellation that reaches the warehouse.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace rpc = serve::rpc;

// [types]
struct Order {
  std::string item;
  std::int64_t pieces = 0;
};

template <>
struct serve::rpc::Body<Order> {
  static Result<Bytes> encode(const Order& order, Scratch& scratch) {
    const MutableBytes room = WEFT_TRY(scratch.take(8 + order.item.size()));
    store_big_endian(room.data(), order.pieces);
    copy_bytes(room.data() + 8, as_bytes(order.item));
    return Bytes(room);
  }
  static Result<Order> decode(Bytes bytes) {
    if (bytes.size() < 8) {
      return Error(Errc::protocol_error, "an order has at least 8 bytes");
    }
    return Order{std::string(as_text(bytes.subspan(8))), load_big_endian<std::int64_t>(bytes.data())};
  }
};

using Price = rpc::Method<"shop.price", Order, std::int64_t>;
using Stock = rpc::Method<"warehouse.stock", std::string, std::int64_t, 1>;  // sent as the number 1
// [types]

// [handlers]
rpc::Methods warehouse() {
  rpc::Methods methods;
  (void)methods.add<Stock>([](const std::string& item, rpc::Call& call) -> rt::Task<Result<std::int64_t>> {
    if (item == "piano") {
      WEFT_CO_TRY(co_await rt::sleep(1h));  // fails when the caller gives up, and at its deadline
    }
    if (item != "kettle") {
      co_return call.refuse(404, "no shelf has a " + item);  // the caller gets the code and the text
    }
    co_return 12;
  });
  return methods;
}

rpc::Methods shop(std::shared_ptr<rpc::Client> stock) {
  rpc::Methods methods;
  (void)methods.add<Price>([stock](const Order& order, rpc::Call& call) -> rt::Task<Result<std::int64_t>> {
    const rpc::CallOptions within{.within = &call};  // the rest of this call's time, and its trace
    WEFT_CO_TRY(co_await stock->connected(call.deadline()));
    WEFT_CO_TRY(const std::int64_t pieces, co_await stock->call<Stock>(order.item, within));
    if (order.pieces > pieces) {
      co_return call.refuse(1, "only " + std::to_string(pieces) + " left");
    }
    co_return order.pieces * 30;
  });
  return methods;
}
// [handlers]

// [client]
rt::Task<Result<void>> buy(std::string shop_at) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, rpc::Client::open(host, shop_at));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  const Order kettles{"kettle", 3}, too_many{"kettle", 300}, piano{"piano", 1};
  WEFT_CO_TRY(const std::int64_t price, co_await client->call<Price>(kettles));
  const auto refused = co_await client->call<Price>(too_many);
  const rpc::CallOptions hurry{.timeout = 50ms};
  const auto late = co_await client->call<Price>(piano, hurry);
  std::printf("3 kettles: %lld; 300: %s; a piano: %s\n", static_cast<long long>(price), refused.error().text(),
              late.error().message().c_str());
  const bool right = price == 90 && refused.error().value() == 1 && late.error() == Errc::timed_out;
  const auto closed = co_await client->close(sys::now() + 10s);
  co_return right ? closed : Error(Errc::protocol_error, "the calls went wrong");
}
// [client]

Result<void> run() {
  // [server]
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const rpc::Service stock(warehouse());
  const std::string stock_at = WEFT_TRY(rpc::listen(*server, "tcp://127.0.0.1:0", stock));

  // Each core has its own handlers, with a client of that core.
  const auto prices = rpc::Service::of_cores([stock_at](rt::Core& core) {
    return shop(rpc::Client::open(std::make_shared<serve::ClientHost>(core), stock_at).value());
  });
  const std::string shop_at = WEFT_TRY(rpc::listen(*server, "tcp://127.0.0.1:0", prices));
  // [server]
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), buy(shop_at)).get());
  return server->stop(sys::now() + 10s);
}

int main() {
  if (const auto result = run(); !result) {
    std::fprintf(stderr, "rpc_calls: %s\n", result.error().message().c_str());
    return 1;
  }
}
