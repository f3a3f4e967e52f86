// SPDX-License-Identifier: MIT
#include "weft/logging/output.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "weft/base/bytes.h"
#include "weft/sys/clock.h"

namespace weft::logging {

namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(50);  // at `give_up`, while a pipe is full
constexpr Duration kRetryRotation = std::chrono::seconds(1);

std::size_t count_lines(std::string_view lines) noexcept {
  return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
}

// Relaxed: a number stands alone.
void count(std::atomic<std::uint64_t>& number, std::uint64_t by = 1) noexcept {
  number.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

Result<Output> Output::open(std::string file) {
  if (file.empty()) {
    Output output{std::string(), sys::AppendFile::standard_error()};
    output.priorities_ = output.file_.leads_to_journal();
    return output;
  }
  sys::AppendFile opened = WEFT_TRY(sys::AppendFile::open(file));
  return Output(std::move(file), std::move(opened));
}

Result<void> Output::reopen() noexcept {
  if (!name_.empty()) {
    file_ = WEFT_TRY(sys::AppendFile::open(name_));
    torn_ = false;
  }
  return {};
}

void Output::write(std::string_view lines, const GiveUp& give_up, WriterCounters& counters) noexcept {
  if (function_) {
    try {
      function_(lines);
      count(counters.written, count_lines(lines));
      count(counters.written_bytes, lines.size());
    } catch (...) {
      count(counters.dropped_failed, count_lines(lines));
    }
    return;
  }
  while (!lines.empty()) {
    std::string_view part = lines;
    if (rotation_.bytes != 0 && file_.is_regular() && !name_.empty() && sys::now() >= retry_) {
      part = fitting(lines);
      if (part.empty() && file_.size() != 0) {
        rotate(counters);
        part = fitting(lines);
      }
      part = part.empty() ? lines.substr(0, lines.find('\n') + 1) : part;  // a line alone may exceed the bound
    }
    append(part, give_up, counters);
    lines.remove_prefix(part.size());
  }
}

std::string_view Output::fitting(std::string_view lines) const noexcept {
  const std::uint64_t room = rotation_.bytes - std::min(rotation_.bytes, file_.size());
  if (lines.size() <= room) {
    return lines;
  }
  const std::size_t end = room == 0 ? std::string_view::npos : lines.rfind('\n', room - 1);
  return end == std::string_view::npos ? std::string_view() : lines.substr(0, end + 1);
}

void Output::append(std::string_view lines, const GiveUp& give_up, WriterCounters& counters) noexcept {
  if (torn_ && append_bytes("\n", give_up) == 0) {
    return count(counters.dropped_failed, count_lines(lines));
  }
  torn_ = false;
  const std::size_t bytes = append_bytes(lines, give_up);
  const std::size_t written = count_lines(lines.substr(0, bytes));
  torn_ = bytes != 0 && lines[bytes - 1] != '\n';
  count(counters.written, written);
  count(counters.written_bytes, bytes);
  count(counters.dropped_failed, count_lines(lines) - written);
}

std::size_t Output::append_bytes(std::string_view bytes, const GiveUp& give_up) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const bool last = give_up();
    const auto some = file_.append(as_bytes(bytes.substr(done)), last ? Duration::zero() : kLookAgain);
    if (!some) {
      break;
    }
    done += *some;
    if (*some == 0 && (last || file_.is_regular())) {
      break;
    }
  }
  return done;
}

void Output::rotate(WriterCounters& counters) noexcept {
  Result<void> opened;
  try {
    opened = rename_chain();
  } catch (const std::bad_alloc&) {
    opened = Error(Errc::resource_exhausted, "no memory for the name of a file");
  }
  if (opened) {
    opened = reopen();
  }
  count(opened ? counters.rotations : counters.rotations_failed);
  if (!opened) {
    retry_ = deadline_after(sys::now(), kRetryRotation);
  }
}

// Renames the oldest first. A file that is not there leaves a gap.
Result<void> Output::rename_chain() const {
  const auto name_of = [this](std::uint32_t number) {
    return number == 0 ? name_ : name_ + "." + std::to_string(number);
  };
  for (std::uint32_t number = rotation_.files; number > 0; --number) {
    const auto renamed = sys::rename_file(name_of(number - 1), name_of(number));
    if (!renamed && !(renamed.error() == Errc::not_found)) {
      return renamed;
    }
  }
  return {};
}

}  // namespace weft::logging
