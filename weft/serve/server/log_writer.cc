// SPDX-License-Identifier: MIT
#include "weft/serve/server/log_writer.h"

#include <cstdio>
#include <utility>

#include "weft/sys/clock.h"
#include "weft/sys/signals.h"

namespace weft::serve {

Result<std::shared_ptr<LogWriter>> LogWriter::make(LogWriterOptions options) {
  if (!options.output) {
    options.output = [](std::string_view lines) { (void)std::fwrite(lines.data(), 1, lines.size(), stderr); };
  }
  std::shared_ptr<LogWriter> writer(new LogWriter(std::move(options)));
  const sys::SignalsBlocked blocked;
  writer->thread_ =
      WEFT_TRY(sys::Thread::start([](void* self) { static_cast<LogWriter*>(self)->run(); }, writer.get()));
  return writer;
}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogWriter::write(const LogRecord& record) {
  const Instant now = sys::now();
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.size() >= options_.pending_max || !bucket_.try_take(options_.lines, now)) {
      ++suppressed_;
      return;
    }
    first = pending_.empty();
    report_suppressed(record.time);
    append_line(record, pending_);
  }
  if (first) {
    changed_.notify_one();
  }
}

void LogWriter::report_suppressed(std::chrono::system_clock::time_point time) {
  if (const std::uint64_t lines = suppressed_ - std::exchange(reported_, suppressed_); lines != 0) {
    append_suppressed_line(time, lines, pending_);
  }
}

std::uint64_t LogWriter::suppressed() const {
  const std::lock_guard lock(mutex_);
  return suppressed_;
}

void LogWriter::run() {
  sys::set_up_thread("log", {});
  std::string lines;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !pending_.empty() || ending_; });
    if (ending_) {
      report_suppressed(std::chrono::system_clock::now());
    }
    if (pending_.empty()) {
      return;
    }
    lines.clear();
    lines.swap(pending_);
    lock.unlock();
    try {
      options_.output(lines);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no output is left for a report
    }
    lock.lock();
  }
}

Result<LogSink> log_to_stderr(LogWriterOptions options) {
  const auto writer = WEFT_TRY(LogWriter::make(std::move(options)));
  return LogSink([writer](const LogRecord& record) { writer->write(record); });
}

}  // namespace weft::serve
