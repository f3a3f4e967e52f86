// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/server.h"

#include <set>

#include "weft/msg/socket/socket_core.h"
#include "weft/topic/gate/gate.h"
#include "weft/topic/hub/test_hub.h"

namespace weft::topic {
namespace {

// A descriptor that is cleared while the server reads, as by a message that came while the server found none: the ops
// that the turn leaves have no other sign.
TEST(JetStreamServer, OpsThatATurnLeavesAreTakenInTheNextOne) {
  Context context;
  Socket router = *context.socket(SocketType::router);
  ASSERT_TRUE(router.set(option::send_high_water_mark, 0));
  ASSERT_TRUE(router.set(option::receive_high_water_mark, 0));
  ASSERT_TRUE(router.bind("inproc://ops"));
  const auto core = router.core();
  TestMember member(context, "inproc://ops");
  std::set<std::uint32_t> asked;
  for (int i = 0; i < 4096; ++i) {
    asked.insert(member.send({.kind = OpKind::probe}));
  }
  const auto server = JetStreamServer::start(std::move(router), {.servers = "nats://127.0.0.1:1"});
  ASSERT_TRUE(server) << server.error().message();
  const Instant end = deadline_after(sys::now(), TestMember::kPatience);
  for (OwnedOp op; !asked.empty(); asked.erase(op.op.id)) {
    ASSERT_TRUE(member.receive(op, end)) << asked.size() << " ops have no answer";
    (void)core->readiness({true, false});
  }
}

}  // namespace
}  // namespace weft::topic
