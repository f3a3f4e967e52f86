// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/session/session_record.h"

namespace weft::serve {

enum class SurveyOrder : std::uint8_t {
  queued,    // most bytes that wait to be written first
  received,  // most half-received bytes first
  age,       // oldest first
  silent,    // longest without a byte of the peer first
};

// SurveyedSession: a session at the moment at which its core was asked.
struct SurveyedSession {
  SessionGlance glance;
  std::string peer;  // empty: it has ended meanwhile
};

// SessionSurvey: asks each core for the first sessions of a server in some order.
// Owner: shared with the cores that owe an answer. The runtime outlives the calls.
// Affinity: one thread; the cores answer on theirs.
// Cost: a core looks at kSlotsPerTurn places of sessions a turn, and keeps at most kMost of them. An answer is one
// message, and one allocation for each kept session.
// Invariants:
//   1. A core has at most one question at a time: a core that does not answer costs one, however often it is asked.
//   2. An answer to an earlier question is not taken for one to the last.
class SessionSurvey : public std::enable_shared_from_this<SessionSurvey> {
 public:
  static constexpr std::size_t kMost = 200;
  static constexpr std::uint32_t kSlotsPerTurn = 256;

  struct Answer {
    unsigned core = 0;
    bool answered = false;
    Duration silent{};       // otherwise: since the question
    std::size_t looked = 0;  // sessions of the core
    std::vector<SurveyedSession> sessions;
  };

  // Whether `a` comes before `b`. Of equals the smaller id, so that a page does not change without a reason.
  [[nodiscard]] static bool is_before(SurveyOrder order, const SessionGlance& a, const SessionGlance& b) noexcept;

  explicit SessionSurvey(rt::Runtime& runtime);
  SessionSurvey(const SessionSurvey&) = delete;
  SessionSurvey& operator=(const SessionSurvey&) = delete;

  // Asks the cores that owe no answer. `epoch`: of the server. `most`: at most kMost.
  void ask(Instant now, std::uint16_t epoch, SurveyOrder order, std::size_t most);
  // Whether an answer is due that was requested less than `timeout` ago.
  [[nodiscard]] bool waits(Instant now, Duration timeout) const noexcept;
  // The answers to the last question. Takes their sessions away.
  [[nodiscard]] std::vector<Answer> take(Instant now);

 private:
  struct Wanted {
    std::uint64_t number = 0;
    std::uint16_t epoch = 0;
    SurveyOrder order = SurveyOrder::queued;
    std::size_t most = 0;
  };
  struct Question final : rt::CoreJob {
    Question() noexcept;
    void look() noexcept;
    void look_on();
    void keep_glance(const SessionGlance& glance);
    void add_peers();

    rt::Core* core = nullptr;
    Instant asked;                        // belongs to the asking thread
    std::shared_ptr<SessionSurvey> keep;  // while the core has the question
    Wanted wanted;
    // The core writes these while `pending`, the asking thread reads them otherwise.
    std::uint32_t next = 0;  // slot
    std::size_t looked = 0;
    std::vector<SurveyedSession> found;  // a heap while the core looks: the last one in order is first
    std::atomic<bool> pending{false};    // release at the answer pairs with the acquires of the asking thread
  };

  const std::size_t cores_;
  const std::unique_ptr<Question[]> questions_;
  Wanted last_;
};

}  // namespace weft::serve
