// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"

namespace weft::serve {

// CoreHealth: requests an answer from each core of a runtime, and returns the cores that owe one.
// Owner: shared with the cores that owe an answer. The runtime outlives the calls.
// Affinity: one thread; the answers come from the cores.
// Cost: a question is a job for each core that owes none; no allocation.
// Invariant: a core has at most one question at a time.
class CoreHealth : public std::enable_shared_from_this<CoreHealth> {
 public:
  explicit CoreHealth(rt::Runtime& runtime);
  CoreHealth(const CoreHealth&) = delete;
  CoreHealth& operator=(const CoreHealth&) = delete;

  void ask(Instant now);
  // Whether an answer is due that was requested less than `timeout` ago: no request waits again for a late core.
  [[nodiscard]] bool waits(Instant now, Duration timeout) const noexcept;
  // A line for each core that has not answered, or has ended.
  [[nodiscard]] std::string complaints(Instant now) const;
  struct Standing {
    bool answered = false;
    bool ended = false;
    Duration silent{};  // without an answer: since the question
    std::string doing;  // "game::Room on_frame (frame 7)", of a turn that is not young; empty: none
  };
  [[nodiscard]] Standing standing(unsigned core, Instant now) const;
  [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(count_); }
  [[nodiscard]] rt::Core& core(unsigned index) const noexcept { return *questions_[index].core; }

 private:
  struct Question final : rt::CoreJob {
    Question() noexcept;
    void answer() noexcept;

    rt::Core* core = nullptr;
    Instant asked;                        // belongs to the asking thread
    std::shared_ptr<CoreHealth> keep;     // while the core has the question
    std::atomic<bool> pending{false};     // release at the answer pairs with the acquires of the asking thread
    std::atomic<bool> core_ended{false};  // relaxed: before `pending`
  };

  std::unique_ptr<Question[]> questions_;
  std::size_t count_;
};

}  // namespace weft::serve
