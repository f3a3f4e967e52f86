// SPDX-License-Identifier: MIT
// From programs with REQ and DEALER to a service of the fleet.
#include <iterator>
#include <utility>
#include <vector>

#include "tools/weft/bridge/requests.h"
#include "tools/weft/bridge/unit.h"
#include "weft/sys/clock.h"

namespace weft::bridge {

namespace {

class Clients final : public Unit {
 public:
  Clients(Surroundings& around, Section section)
      : Unit(around, std::move(section)),
        room_(static_cast<std::size_t>(section_.pending), static_cast<std::size_t>(section_.pending_bytes)) {}

  void start(rt::TaskScope& scope) override {
    scope_ = &scope;
    (void)scope.spawn(take_each([this](std::vector<Message> frames) { admit(std::move(frames)); }));
  }
  [[nodiscard]] bool idle() override { return has_taken() && room_.requests() == 0 && statistics().queued_out == 0; }

 protected:
  [[nodiscard]] SocketType type() const noexcept override { return SocketType::router; }
  // Without `mandatory` a reply to a client that has gone would count as given.
  [[nodiscard]] Result<void> prepare(Socket& socket) override { return socket.set(option::router_mandatory, true); }

 private:
  void admit(std::vector<Message> frames) {
    const std::size_t bytes = bytes_of(frames);
    std::optional<Envelope> request = split_request(std::move(frames));
    if (!request) {
      counters_->dropped_malformed.add();
    } else if (request->body.empty()) {
      refuse(std::move(request->envelope), Errc::invalid_argument, counters_->dropped_malformed);
    } else if (!room_.take(bytes)) {
      refuse(std::move(request->envelope), Errc::resource_exhausted, counters_->failed_full);
    } else {
      counters_->pending.set(room_.requests());
      if (!scope_->spawn(ask(*std::move(request), bytes))) {
        give_back(bytes);
        counters_->dropped_refused.add();
      }
    }
  }

  rt::Task<void> ask(Envelope request, std::size_t bytes) {
    Headers headers;
    Result<TopicMessage> reply = Error(Errc::message_too_large, "further frames exceed the bound of headers");
    if (add_parts(headers, request.body)) {
      const Instant deadline = deadline_after(sys::now(), section_.deadline);
      reply = co_await around_.topics.request(section_.topic, std::move(request.body[0]), deadline, std::move(headers));
    }
    finish(std::move(request.envelope), std::move(reply));
    give_back(bytes);
  }

  void give_back(std::size_t bytes) {
    room_.give_back(bytes);
    counters_->pending.set(room_.requests());
  }

  void finish(std::vector<Message>&& envelope, Result<TopicMessage> reply) {
    if (!reply) {
      return refuse(std::move(envelope), reply.error(), failed(reply.error()));
    }
    std::optional<std::vector<Message>> body = body_of(*std::move(reply));
    if (!body || read_error(*body)) {  // a client would take it for an error of the bridge
      return refuse(std::move(envelope), Error(Errc::protocol_error, "the reply has no form for ZeroMQ"),
                    counters_->failed_other);
    }
    answer(std::move(envelope), *std::move(body), counters_->given);
  }

  [[nodiscard]] Counters::Number& failed(const Error& error) {
    switch (error.code()) {
      case Errc::unreachable: return counters_->failed_nobody;
      case Errc::timed_out: return counters_->failed_deadline;
      case Errc::resource_exhausted: return counters_->failed_full;
      case Errc::connection_closed: return counters_->failed_lost;
      default: return counters_->failed_other;
    }
  }

  void refuse(std::vector<Message>&& envelope, const Error& error, Counters::Number& counter) {
    answer(std::move(envelope), error_frames(error), counter);
  }

  // Counts the outcome, unless the client does not take it.
  void answer(std::vector<Message>&& envelope, std::vector<Message>&& body, Counters::Number& counter) {
    std::vector<Message> frames = std::move(envelope);
    std::move(body.begin(), body.end(), std::back_inserter(frames));
    const Result<void> sent = send(std::move(frames));
    (sent                                ? counter
     : sent.error() == Errc::would_block ? counters_->dropped_slow
     : sent.error() == Errc::unreachable ? counters_->dropped_gone
                                         : counters_->dropped_refused)
        .add();
  }

  Room room_;
  rt::TaskScope* scope_ = nullptr;
};

}  // namespace

std::unique_ptr<Unit> make_clients(Surroundings& around, Section section) {
  return std::make_unique<Clients>(around, std::move(section));
}

}  // namespace weft::bridge
