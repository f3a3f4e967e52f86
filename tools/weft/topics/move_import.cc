// SPDX-License-Identifier: MIT
#include "tools/weft/topics/move_import.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "tools/weft/topics/move_file.h"
#include "tools/weft/topics/move_stored.h"
#include "tools/weft/topics/move_target.h"
#include "weft/base/bytes.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"
#include "weft/topic/kept/stream_core.h"

namespace weft::cli {

namespace {

using topic::HubLink;
using topic::StreamCore;

constexpr Duration kImportShowEvery = std::chrono::milliseconds(250);

// Whether the file can be read twice.
bool is_regular(const std::string& name) {
  struct stat file = {};
  return name != "-" && ::stat(name.c_str(), &file) == 0 && S_ISREG(file.st_mode);
}

// Import: the messages of one file. Affinity: one thread.
class Import {
 public:
  Import(Console& console, const ImportOptions& options) : console_(console), options_(options) {}

  int run() {
    check_options();
    if (is_regular(options_.file)) {
      check_file();
    }
    file_ = std::make_unique<MovedFile>(options_.file);
    const MovedHeader& header = file_->header();
    if (header.bucket != options_.bucket) {
      throw Failure(printable(options_.file) + " has " +
                    (header.bucket ? "a bucket: `weft kv" : "a stream: `weft stream") + " import` takes it");
    }
    name_ = options_.as.empty() ? header.name : options_.as;
    what_ = (header.bucket ? "the bucket " : "the stream ") + printable(name_);
    kept_.emplace(options_.fleet);
    open_target();
    check_target();
    began_ = sys::now();
    try {
      publish_all();
    } catch (...) {
      console_.progress("");
      console_.note("at least " + std::to_string(already_ + stored_) + " messages of the file are in " + what_ +
                    ": the same command continues after them");
      throw;
    }
    console_.progress("");
    tell();
    return 0;
  }

 private:
  struct Sent {
    PendingPublish answer;
    MovedMessage message;
    bool renamed;  // it has another id
  };

  void check_options() const {
    if (options_.window == 0 || options_.window > kMoveWindowMax) {
      throw Usage("--window is 1 to 1024");
    }
    if (!options_.survives.empty() && !survives_of(options_.survives)) {
      throw Usage("--survives is nothing, process, machine or power");
    }
    if (options_.bucket && options_.as.find_first_of(".*>=") != std::string::npos) {
      throw Usage("a bucket's name is one token, without '.', '=' and wildcards");
    }
  }

  // A damaged file changes nothing.
  void check_file() {
    MovedFile file(options_.file);
    MovedMessage message;
    MovedFile::Got got = MovedFile::Got::cut;
    while ((got = file.next(message)) == MovedFile::Got::message) {
      show("checked", file.messages());
    }
    if (got == MovedFile::Got::cut) {
      refuse_cut(file);
    }
    total_ = file.messages();
  }

  void refuse_cut(const MovedFile& file) const {
    if (!options_.incomplete) {
      throw Failure(file.place() + ": the file ends before its last line, after " + std::to_string(file.messages()) +
                    " messages: the export did not end. `weft stream export --resume` continues it; --incomplete "
                    "imports it as it is");
    }
  }

  StreamSettings settings_of(const MovedHeader& header) const {
    StreamSettings settings = header.settings;
    if (!options_.survives.empty()) {
      settings.survives = *survives_of(options_.survives);
    }
    if (!options_.topics.empty()) {
      settings.topics = options_.topics;
    }
    settings.bytes_max = options_.bytes_max.value_or(settings.bytes_max);
    settings.same_id_window = options_.id_window ? seconds(*options_.id_window) : settings.same_id_window;
    if (header.bucket) {
      settings.topics = {wire_ + ".>"};
      return settings;
    }
    for (std::string& topic : settings.topics) {
      topic = need(kept_->link()->names().filter(topic), "the topic " + printable(topic)).text();
    }
    return settings;
  }

  void open_target() {
    HubLink& link = *kept_->link();
    wire_ = need(link.names().encode(options_.bucket ? "kv." + name_ : name_), what_);
    const auto look = [&] {
      return kept_->ask(what_, [&]() -> Result<std::optional<StreamInfo>> {
        const auto call = WEFT_TRY(StreamCore::info_of(wire_));
        const Result<void> ran = link.run(call);
        if (!ran) {
          return ran.error() == Errc::not_found ? Result<std::optional<StreamInfo>>(std::optional<StreamInfo>())
                                                : ran.error();
        }
        core_ =
            std::make_shared<StreamCore>(kept_->link(), wire_, WEFT_TRY(StreamCore::read_info(*call, wire_)).settings);
        return std::optional(WEFT_TRY(core_->read_info(*call)));
      });
    };
    const StreamSettings settings = settings_of(file_->header());
    auto found = look();
    if (!found) {
      declare(settings);
      found = look();
    } else {
      tell_differences(settings, found->settings);
    }
    if (!found) {
      throw Failure(what_ + " was removed meanwhile");
    }
    info_ = *found;
    stream_.emplace(core_);
    ids_.emplace(info_.settings.same_id_window);
  }

  void declare(const StreamSettings& settings) {
    need(check_settings(settings), what_);
    if (settings.survives == Survives::nothing && !is_on_nats(options_.fleet)) {
      throw Failure(what_ +
                    " of the file survives nothing: at a hub it ends with this command. --survives process, or "
                    "power, keeps it");
    }
    StreamCore core(kept_->link(), wire_, settings);
    Error refused;
    try {
      kept_->ask(what_, [&]() -> Result<void> {
        const auto call = WEFT_TRY(core.declare(false));
        const Result<void> ran = kept_->link()->run(call);
        refused = ran.error();
        return ran;
      });
    } catch (const Failure& failure) {
      if (refused != Errc::not_supported && refused != Errc::invalid_argument) {
        throw;
      }
      throw Failure(std::string(failure.what()) +
                    "; --survives, --topic, --bytes-max and --id-window replace a setting of the file");
    }
  }

  void tell_differences(const StreamSettings& wanted, const StreamSettings& there) {
    StreamSettings compared = there;
    compared.survives = wanted.survives;
    compared.same_id_window = wanted.same_id_window;
    if (compared != wanted) {
      console_.note(what_ + " is there, with settings that differ from the file's: they stay");
    }
  }

  void check_target() {
    const std::uint64_t stored = info_.next - 1;
    if (stored == 0) {
      return;
    }
    if (options_.others && (info_.settings.keep != Keep::log || info_.first > 1)) {
      throw Failure(what_ + (info_.first > 1 ? " lost its oldest messages" : " is not a log") +
                    ": nothing shows how far an earlier import beside other messages came. --as NAME imports into "
                    "another stream");
    }
    TargetCheck check(*file_, what_, options_.others, [this](const MovedMessage& message, const KeptMessage& there) {
      return is_same(file_->header(), message, there, topic_of(there));
    });
    check.on_id = [this](const std::string& id) { ids_->add(id, sys::now()); };
    each_stored(*kept_, *stream_, info_, 0, what_, [&](const KeptMessage& there) {
      if (there.sequence() < info_.next) {
        check.take(there);
        show("compared", there.sequence());
      }
    });
    waiting_ = check.finish(stored, options_.resume);
    already_ = options_.others ? check.found() : stored;
    claimed_below_ = info_.next;
  }

  [[nodiscard]] std::string_view topic_of(const KeptMessage& there) const {
    return options_.bucket ? there.wire_topic().substr(std::min(there.wire_topic().size(), wire_.size() + 1))
                           : there.topic();
  }

  void publish_all() {
    MovedMessage message;
    for (; !waiting_.empty(); waiting_.pop_front()) {
      publish(std::move(waiting_.front()));
    }
    MovedFile::Got got = MovedFile::Got::cut;
    while ((got = file_->next(message)) == MovedFile::Got::message) {
      publish(std::move(message));
    }
    settle_to(0);
    if (got == MovedFile::Got::cut) {
      refuse_cut(*file_);
    }
  }

  void publish(MovedMessage message) {
    show("stored", already_ + stored_);
    if (message.id.empty() || !remembers()) {
      send(std::move(message), message.id.empty());
      return;
    }
    // A message whose id another one may have is alone under way, so that its place in the order stays.
    const bool alone = ids_->has(message.id);
    ids_->add(message.id, sys::now());
    if (alone) {
      settle_to(0);
    }
    send(std::move(message), false);
    if (alone) {
      settle_to(0);
    }
  }

  [[nodiscard]] bool remembers() const noexcept { return info_.settings.same_id_window != Duration::zero(); }

  void send(MovedMessage message, bool renamed) {
    const std::size_t size = message.body.size() + message.headers.size();
    if (pending_.size() >= options_.window || pending_bytes_ + size > kMoveBytesMax) {
      while (!pending_.empty() &&
             (pending_.size() > options_.window / 2 || pending_bytes_ + size > kMoveBytesMax / 2)) {
        settle_first();
      }
    }
    HubLink& link = *kept_->link();
    const std::string own = renamed && remembers() ? moved_id(file_->header(), message) : message.id;
    PublishOptions how;
    how.id = own;
    how.headers = message.headers;
    const std::string context = describe(message);
    const std::string topic =
        options_.bucket ? wire_ + '.' + message.topic : need(link.names().encode(message.topic), context);
    auto call = need(core_->append_wire(topic, as_bytes(message.body), how, {.erased = message.erased}), context);
    const auto start = [&] { return link.in_lock(), link.start(call); };
    Result<void> started = link.locked(start);
    if (!started && started.error() == Errc::would_block) {
      kept_->once(context, [&] { return link.wait(link.place(), call->deadline, start); });
      started = {};
    }
    need(started, context);
    pending_bytes_ += size;
    ++sent_;
    pending_.push_back({PendingPublish(kept_->link(), std::move(call)), std::move(message), renamed});
  }

  [[nodiscard]] std::string describe(const MovedMessage& message) const {
    return what_ + ", message " + std::to_string(message.sequence) + " of the file";
  }

  void settle_to(std::size_t count) {
    while (pending_.size() > count) {
      settle_first();
    }
  }

  Sent take(std::deque<Sent>::iterator at) {
    Sent sent = std::move(*at);
    pending_.erase(at);
    pending_bytes_ -= sent.message.body.size() + sent.message.headers.size();
    return sent;
  }

  void settle_first() { settle(take(pending_.begin())); }

  Published answer_of(Sent& sent) {
    auto done = sent.answer.try_result();
    Error refused = done ? Error() : done.error();
    try {
      if (refused == Errc::would_block) {
        return kept_->once(describe(sent.message), [&] {
          done = sent.answer.wait();
          refused = done ? Error() : done.error();
          return done;
        });
      }
      return need(done, describe(sent.message));
    } catch (const Failure& failure) {
      if (refused != Errc::resource_exhausted) {
        throw;
      }
      throw Failure(std::string(failure.what()) + "; --bytes-max of `weft stream add --redeclare` gives it more room");
    }
  }

  void settle(Sent sent) {
    const Published kept_as = answer_of(sent);
    if (kept_as.duplicate && is_of_another(kept_as.sequence, sent)) {
      // The id is that of another message, which the target still remembers.
      if (sent.renamed) {
        throw Failure(describe(sent.message) + ": another message has its id " +
                      printable(moved_id(file_->header(), sent.message)));
      }
      ++renamed_;
      send(std::move(sent.message), true);
      settle(take(std::prev(pending_.end())));
      return;
    }
    if (!options_.others && kept_as.sequence >= info_.next + sent_) {
      throw Failure(what_ +
                    " gets messages of other programs meanwhile. Stop them and import into a new stream; into "
                    "a log, --beside-others imports beside them");
    }
    claim(kept_as.sequence);
    ++stored_;
  }

  // Of a message that the target stored before: whether it is another one.
  bool is_of_another(std::uint64_t sequence, const Sent& sent) {
    if (sequence < claimed_below_ || claimed_.contains(sequence)) {
      return true;
    }
    const auto there = kept_->ask(what_, [&]() -> Result<std::optional<KeptMessage>> {
      auto got = stream_->message(sequence);
      if (!got && got.error() != Errc::not_found) {
        return got.error();
      }
      // Without one a consumer acknowledged it.
      return got ? std::optional(*std::move(got)) : std::optional<KeptMessage>();
    });
    return there && !is_same(file_->header(), sent.message, *there, topic_of(*there));
  }

  // The sequence is that of a message of the file.
  void claim(std::uint64_t sequence) {
    claimed_.insert(sequence);
    while (claimed_.size() > 4 * kMoveWindowMax) {
      claimed_below_ = std::max(claimed_below_, *claimed_.begin() + 1);
      claimed_.erase(claimed_.begin());
    }
  }

  void show(const char* done, std::uint64_t count) {
    if (const Instant now = sys::now(); now >= show_at_) {
      throw_if_stopped();
      show_at_ = deadline_after(now, kImportShowEvery);
      console_.progress(std::string(done) + " " + std::to_string(count) +
                        (total_ == 0 ? " messages" : " of " + std::to_string(total_) + " messages"));
    }
  }

  void tell() {
    const StreamInfo now = kept_->ask(what_, [&] { return stream_->info(); });
    const double took = std::chrono::duration<double>(sys::now() - began_).count();
    const double rate = took > 0 ? static_cast<double>(stored_) / took : 0;
    if (now.settings.keep == Keep::log && now.first > info_.first) {
      console_.note(what_ + " dropped its oldest " + std::to_string(now.first - info_.first) +
                    " messages meanwhile: its bytes_max or age_max is too small for the file");
    }
    if (renamed_ != 0) {
      console_.note(std::to_string(renamed_) +
                    " messages got other ids: the file has their ids twice within the time for "
                    "which the stream remembers one");
    }
    if (console_.json) {
      console_.record({{"name", name_},
                       {"messages", already_ + stored_},
                       {"stored", stored_},
                       {"renamed", renamed_},
                       {"seconds", took},
                       {"messages_per_second", rate}});
      return;
    }
    console_.prose(std::to_string(stored_) + " messages stored in " + format("%.1f", took) + " s, " +
                       format("%.0f", rate) + " messages/s; " + std::to_string(already_) + " were there before",
                   4);
  }

  Console& console_;
  const ImportOptions& options_;
  std::string name_;
  std::string what_;
  std::string wire_;
  std::unique_ptr<MovedFile> file_;
  std::optional<KeptLink> kept_;
  std::shared_ptr<StreamCore> core_;
  std::optional<Stream> stream_;
  StreamInfo info_;  // before the import
  std::optional<RecentIds> ids_;
  std::deque<MovedMessage> waiting_;  // read, and not in the target
  std::deque<Sent> pending_;
  std::size_t pending_bytes_ = 0;
  std::set<std::uint64_t> claimed_;  // sequences of messages of the file
  std::uint64_t claimed_below_ = 0;  // each one below this is
  std::uint64_t total_ = 0;          // messages of the file; 0: unknown
  std::uint64_t already_ = 0;        // in the target before
  std::uint64_t sent_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t renamed_ = 0;
  Instant began_{};
  Instant show_at_{};
};

}  // namespace

int import_stream(Console& console, const ImportOptions& options) { return Import(console, options).run(); }

}  // namespace weft::cli
