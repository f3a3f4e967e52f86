// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/topics/move_file.h"
#include "weft/base/time.h"
#include "weft/topic/kept/kept_message.h"

// The parts of an import that decide which messages of a file its target has.
namespace weft::cli {

// The id of a message that has none, or whose id another message has.
[[nodiscard]] std::string moved_id(const MovedHeader& header, const MovedMessage& message);
// Whether both are the same message; `topic` is that of `there` in the form of the file.
[[nodiscard]] bool is_same(const MovedHeader& header, const MovedMessage& message, const KeptMessage& there,
                           std::string_view topic);

// Messages under way from an import. The servers of NATS may store them in another order after a leader was lost.
inline constexpr std::size_t kMoveWindowMax = 1024;
inline constexpr std::size_t kMoveBytesMax = std::size_t{4} << 20U;  // or one message

// TargetCheck: compares the messages of a target with a file, message by message.
// The file's message N has the sequence N in a target that has nothing else, or one that differs by less than the
// messages under way. So missing messages, which a consumer acknowledged or a bound dropped, do not matter.
// Owner: the import. Affinity: one thread. Memory: the messages under way, twice. Failure: the target is another one.
class TargetCheck {
 public:
  using Same = std::function<bool(const MovedMessage&, const KeptMessage&)>;
  // `others`: the target may have further messages.
  TargetCheck(MovedFile& file, std::string what, bool others, Same same);

  void take(const KeptMessage& there);
  // After all of them: `stored` sequences in all. Returns the messages that were read from the file, and that the
  // target does not have; those after them are still in the file. `resume`: the target may have lost all of its
  // messages.
  [[nodiscard]] std::deque<MovedMessage> finish(std::uint64_t stored, bool resume);
  [[nodiscard]] std::uint64_t found() const noexcept { return found_; }  // messages of the file in the target
  // Each id that was read.
  std::function<void(const std::string& id)> on_id{};

 private:
  struct Numbered {
    std::uint64_t number;
    MovedMessage message;
  };
  [[nodiscard]] bool load();
  [[nodiscard]] bool find(const KeptMessage& there);

  MovedFile& file_;
  const std::string what_;
  const bool others_;
  const Same same_;
  std::deque<Numbered> held_;  // read, and not found yet
  std::size_t held_bytes_ = 0;
  std::uint64_t read_ = 0;  // from the file
  std::uint64_t found_ = 0;
  std::uint64_t last_found_ = 0;  // the greatest number
  std::uint64_t present_ = 0;     // messages of the target
  bool ended_ = false;            // the file
};

// RecentIds: whether an id may have been added within the last `window`. Memory: 16 MiB. Affinity: one thread.
// A wrong yes is as rare as one of 10^3 up to 10^7 ids within the window, and more frequent beyond.
class RecentIds {
 public:
  explicit RecentIds(Duration window);
  [[nodiscard]] bool has(std::string_view id) const noexcept;
  void add(std::string_view id, Instant now);

 private:
  static constexpr std::size_t kBits = std::size_t{1} << 26U;
  Duration window_;
  Instant began_{};
  std::vector<std::uint64_t> now_;
  std::vector<std::uint64_t> before_;
};

}  // namespace weft::cli
