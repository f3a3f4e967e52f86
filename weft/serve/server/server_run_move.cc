// SPDX-License-Identifier: MIT
// Sessions that move to another core: ServerRun as a SessionMover.
#include <memory>
#include <new>
#include <utility>

#include "weft/rt/core/core_job.h"
#include "weft/serve/server/server_run.h"

namespace weft::serve {

// Move: a job that two cores give to each other: reserve (there), answer (here), then arrive or release (there).
// Owner: itself, and the session between its answer and its end. It keeps the run.
// No lane carries it, so that no step needs room or memory: a session is never between two cores for lack of them.
class ServerRun::Move final : public rt::CoreJob, public SessionMove {
 public:
  Move(std::shared_ptr<ServerRun> run, SessionId session, std::size_t port, unsigned to) noexcept
      : rt::CoreJob([](rt::CoreJob& job) noexcept {
          auto& self = static_cast<Move&>(job);
          (self.*self.step_)();
        }),
        run_(std::move(run)),
        session_(session),
        port_(port),
        to_(to) {}

  void begin() noexcept { go(to_, &Move::reserve); }
  void carry(SessionRest rest) noexcept override {
    rest_ = std::move(rest);
    go(to_, &Move::arrive);
  }
  void cancel() noexcept override { go(to_, &Move::release); }

 private:
  void go(unsigned core, void (Move::*step)() noexcept) noexcept {
    step_ = step;
    run_->runtime_.core(core).give(*this);
  }
  [[nodiscard]] Shard* shard_on(unsigned core) const noexcept { return run_->parts_[core]->shard.get(); }

  void reserve() noexcept {
    Shard* const shard = shard_on(to_);
    granted_ = shard != nullptr && port_ < run_->parts_[to_]->ports.size() && shard->reserve();
    go(session_.core(), &Move::answer);
  }
  void answer() noexcept {
    Shard* const shard = shard_on(session_.core());
    if (shard != nullptr && shard->answer(session_, *this, granted_)) {
      return;
    }
    granted_ ? cancel() : delete this;
  }
  void arrive() noexcept {
    if (Shard* const shard = shard_on(to_); shard != nullptr) {
      const ServiceSlot* slot = nullptr;
      try {
        slot = &slot_of(*run_->parts_[to_]->ports[port_]);
      } catch (const std::bad_alloc&) {
        slot = &*run_->parts_[to_]->ports[port_]->slots.back();  // the older limits do
      }
      shard->arrive(*slot, std::move(rest_));
    } else {  // the core has ended
      run_->count_.give_back();
    }
    delete this;
  }
  void release() noexcept {
    if (Shard* const shard = shard_on(to_); shard != nullptr) {
      shard->release();
    }
    delete this;
  }

  const std::shared_ptr<ServerRun> run_;
  const SessionId session_;
  const std::size_t port_;
  const unsigned to_;
  void (Move::*step_)() noexcept = nullptr;
  bool granted_ = false;
  SessionRest rest_;
};

Result<SessionMove*> ServerRun::begin_move(SessionId session, std::size_t port, unsigned core) noexcept {
  if (core >= runtime_.size()) {
    return Error(Errc::invalid_argument, "there is no such core");
  }
  auto* const move = new (std::nothrow) Move(shared_from_this(), session, port, core);
  if (move == nullptr) {
    return Error(Errc::resource_exhausted, "no memory to move a session");
  }
  move->begin();
  return move;
}

}  // namespace weft::serve
