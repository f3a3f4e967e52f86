// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weft/bridge/counters.h"
#include "tools/weft/bridge/settings.h"
#include "weft/base/result.h"
#include "weft/msg/async_socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task_scope.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/topics.h"

namespace weft::bridge {

inline constexpr const char* kViaProperty = "X-Weft-Via";  // of the handshake of a bridge's socket

// Surroundings: the objects that the sections of a bridge share. It outlives them.
struct Surroundings {
  rt::Loop& loop;
  Context& context;
  AsyncTopics& topics;
  std::string name;                              // of the bridge
  std::function<void(const std::string&)> tell;  // of a trouble that does not end the bridge; on its core
};

// Unit: a section that runs.
// Owner: the bridge. Affinity: the loop's thread, except counters().
class Unit {
 public:
  Unit(Surroundings& around, Section section);
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  virtual ~Unit();

  // Makes the socket, binds and connects. Returns the reason of a failure; empty: there is none.
  [[nodiscard]] std::string open();
  virtual void start(rt::TaskScope& scope) = 0;
  virtual void drain();                   // takes only the messages in its queue
  [[nodiscard]] virtual bool idle() = 0;  // after drain(): nothing is under way in the unit
  void close(Duration linger);

  [[nodiscard]] const Section& section() const noexcept { return section_; }
  [[nodiscard]] const std::vector<std::string>& endpoints() const noexcept { return endpoints_; }
  [[nodiscard]] const std::shared_ptr<Counters>& counters() const noexcept { return counters_; }
  [[nodiscard]] CounterSource socket_source() const { return socket_source_; }
  [[nodiscard]] Statistics statistics();  // of the socket

 protected:
  [[nodiscard]] virtual SocketType type() const noexcept = 0;
  [[nodiscard]] virtual Result<void> prepare(Socket& socket) = 0;  // before it binds and connects
  [[nodiscard]] AsyncSocket& socket() noexcept { return *socket_; }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }  // in Weft-Via
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  [[nodiscard]] bool may_take() noexcept;  // before each message of the socket; false ends its reader
  [[nodiscard]] bool has_taken();          // after drain(): everything that the socket's queue held
  // Calls handle(frames) for each message of the socket, until may_take() forbids the next one or the socket is closed.
  rt::Task<void> take_each(std::function<void(std::vector<Message>)> handle);
  // Sends all frames or none. Errors: those of try_send() for the first one.
  Result<void> send(std::vector<Message>&& frames);

  Surroundings& around_;
  Section section_;
  std::shared_ptr<Counters> counters_;

 private:
  [[nodiscard]] Result<void> secure(Socket& socket);

  std::string id_;
  std::vector<std::string> endpoints_;
  std::unique_ptr<AsyncSocket> socket_;
  CounterSource socket_source_;
  bool draining_ = false;
  std::uint64_t queued_ = 0;  // draining: messages of the socket that are still to be taken
};

[[nodiscard]] std::unique_ptr<Unit> make_publishers(Surroundings& around, Section section);
[[nodiscard]] std::unique_ptr<Unit> make_subscribers(Surroundings& around, Section section);
[[nodiscard]] std::unique_ptr<Unit> make_clients(Surroundings& around, Section section);
[[nodiscard]] std::unique_ptr<Unit> make_workers(Surroundings& around, Section section);

}  // namespace weft::bridge
