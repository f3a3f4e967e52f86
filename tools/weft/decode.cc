// SPDX-License-Identifier: MIT
#include "tools/weft/decode.h"

#include <algorithm>

#include "weft/base/text/utf8.h"
#include "weft/zmtp/command.h"
#include "weft/zmtp/wire_type.h"

namespace weft::cli {

namespace {

constexpr std::size_t kNameMax = 256;  // bytes of an encrypted frame that name it

// The front of a value of `size` bytes that is text; a character that the cut took apart is left out. Empty and `size`
// > 0: it is not text.
std::string_view text_front(std::string_view front, std::uint64_t size) {
  std::string_view left = front;
  while (!left.empty()) {
    const std::size_t step = utf8_size(left);
    const auto byte = static_cast<unsigned char>(left[0]);
    if (step == 0) {
      const bool is_cut = front.size() < size && left.size() < 4 && byte >= 0xC0;
      return is_cut ? front.substr(0, front.size() - left.size()) : std::string_view();
    }
    if (byte == 0x7F || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r')) {
      return {};
    }
    left.remove_prefix(step);
  }
  return front;
}

// A value whose first bytes are known: `"text"` or `hex 00ff`, with `...` when there is more.
std::string shown(std::string_view front, std::uint64_t size) {
  const std::string_view text = text_front(front, size);
  if (text.empty() && !front.empty()) {
    return "hex " + to_hex(front) + (front.size() < size ? "..." : "");
  }
  return "\"" + printable(text) + "\"" + (text.size() < size ? "..." : "");
}

void append_value(Record& record, const char* name, std::string_view front, std::uint64_t size) {
  const std::string_view text = text_front(front, size);
  if (text.empty() && !front.empty()) {
    record.emplace_back("hex", to_hex(front));
  } else {
    record.emplace_back(name, std::string(text));
  }
}

Said value_of(const char* kind, const char* name, Bytes value) {
  const std::string_view text = as_text(value);
  Said said{kind, shown(text, text.size()), {}};
  append_value(said.details, name, text, text.size());
  return said;
}

std::string size_text(std::uint64_t size) { return std::to_string(size) + (size == 1 ? " byte" : " bytes"); }

// The properties of READY and INITIATE. Returns false if it is malformed.
bool add_properties(Bytes metadata, Said& said, bool& subscribes) {
  std::vector<Object> list;
  while (!metadata.empty()) {
    zmtp::Property property;
    if (zmtp::take_property(metadata, property) != weft::ParseStatus::complete) {
      return false;
    }
    const std::string_view value = as_text(property.value);
    said.text += " " + printable(property.name) + "=" + shown(value, value.size());
    Record each{{"name", std::string(property.name)}};
    append_value(each, "value", value, value.size());
    list.push_back({std::move(each)});
    if (zmtp::same_name(property.name, "Socket-Type")) {
      subscribes = value == "SUB" || value == "XSUB";
    }
  }
  said.details.emplace_back("properties", std::move(list));
  return true;
}

bool add_ping(Bytes data, Said& said) {
  zmtp::Ping ping;
  if (zmtp::parse_ping(data, ping) != weft::ParseStatus::complete) {
    return false;
  }
  said.text += " ttl " + format("%g", ping.ttl_deciseconds / 10.0) + " s, context " +
               shown(as_text(ping.context), ping.context.size());
  said.details.emplace_back("ttl_seconds", ping.ttl_deciseconds / 10.0);
  append_value(said.details, "context", as_text(ping.context), ping.context.size());
  return true;
}

bool add_pong(Bytes data, Said& said) {
  Bytes context;
  if (zmtp::parse_pong(data, context) != weft::ParseStatus::complete) {
    return false;
  }
  said.text += " context " + shown(as_text(context), context.size());
  append_value(said.details, "context", as_text(context), context.size());
  return true;
}

bool add_error(Bytes data, Said& said) {
  std::string_view reason;
  if (zmtp::parse_error(data, reason) != weft::ParseStatus::complete) {
    return false;
  }
  said.text += " " + shown(reason, reason.size());
  append_value(said.details, "reason", reason, reason.size());
  return true;
}

// HELLO of PLAIN: the name, and never the password.
bool add_login(Bytes data, Said& said) {
  if (data.empty() || data.size() < std::size_t{1} + data[0]) {
    return false;
  }
  const std::string_view user = as_text(data.subspan(1, data[0]));
  said.text += " user " + shown(user, user.size()) + ", a password";
  append_value(said.details, "user", user, user.size());
  return true;
}

bool add_filter(Bytes data, Said& said) {
  static constexpr const char* kKinds[] = {"", "exact", "tokens", "prefix", "glob"};
  FilterView filter{};
  if (zmtp::parse_filter(data, filter) != weft::ParseStatus::complete) {
    return false;
  }
  const char* kind = kKinds[static_cast<std::size_t>(filter.kind)];
  said.text += " " + std::string(kind) + " " + shown(filter.text, filter.text.size());
  said.details.emplace_back("filter", std::string(kind));
  append_value(said.details, "text", filter.text, filter.text.size());
  return true;
}

}  // namespace

void Conversation::feed(int direction, Bytes bytes) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  if (side.phase == Phase::greeting) {
    // A greeting is short: the rest of the bytes follows when its version is known.
    while (!bytes.empty() && side.phase == Phase::greeting) {
      side.pending += static_cast<char>(bytes[0]);
      bytes = bytes.subspan(1);
      greet(direction);
    }
    const int other = 1 - direction;
    if (sides_[static_cast<std::size_t>(other)].phase == Phase::greeting) {
      greet(other);  // this side's version may settle the version of that one
    }
  }
  if (!bytes.empty()) {
    take_frames(direction, bytes);
  }
}

// A newer peer goes down to the version of an older one.
void Conversation::greet(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  const zmtp::Version other = sides_[static_cast<std::size_t>(1 - direction)].version;
  if (side.pending.empty()) {
    return;
  }
  const zmtp::Recognition seen = zmtp::recognize_version(as_bytes(side.pending));
  side.version = seen.version;
  if (seen.version == zmtp::Version::foreign) {
    give_up(direction, "foreign", seen.problem.c_str());
  } else if (zmtp::is_old(seen.version)) {
    take_old_greeting(direction, seen.version);
  } else if (zmtp::is_old(other)) {
    take_old_greeting(direction, other);
  } else if (side.pending.size() == zmtp::kGreetingSize) {
    take_new_greeting(direction);
  }
}

void Conversation::take_new_greeting(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  const zmtp::GreetingResult read = zmtp::parse_greeting(as_bytes(side.pending));
  if (read.status != weft::ParseStatus::complete) {
    give_up(direction, "malformed", read.problem.c_str());
    return;
  }
  side.pending.clear();
  side.phase = Phase::header;
  const std::string version = std::to_string(read.greeting.major) + "." + std::to_string(read.greeting.minor);
  const std::string mechanism(read.greeting.mechanism());
  if (mechanism_.empty() || mechanism_ == "NULL") {
    mechanism_ = mechanism;
  }
  const bool is_sealed = mechanism != "NULL" && mechanism != "PLAIN";
  say(direction, {"greeting",
                  "ZMTP " + version + ", " + printable(mechanism) + (read.greeting.as_server ? ", server" : "") +
                      (is_sealed ? "; the rest is encrypted" : ""),
                  {{"version", version}, {"mechanism", mechanism}, {"as_server", read.greeting.as_server}}});
}

void Conversation::take_old_greeting(int direction, zmtp::Version version) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  const bool bare = version == zmtp::Version::v1;
  if (!bare && side.pending.size() < zmtp::kOldGreetingSize) {
    return;
  }
  side.framing = version == zmtp::Version::v2 ? zmtp::Framing::v3 : zmtp::Framing::v1;
  side.identity_due = true;
  side.phase = Phase::header;
  Said said{"greeting", version == zmtp::Version::v2 ? "ZMTP 2.0" : "ZMTP 1.0", {}};
  said.details.emplace_back("version", std::string(version == zmtp::Version::v2 ? "2.0" : "1.0"));
  const std::string held = std::exchange(side.pending, {});
  std::size_t taken = 0;
  if (!bare) {
    taken = zmtp::kOldGreetingSize;
    const auto number = static_cast<unsigned char>(held[taken - 1]);
    const std::string type = number < zmtp::kSocketTypeCount
                                 ? std::string(zmtp::socket_type_name(static_cast<zmtp::WireType>(number)))
                                 : std::to_string(number);
    side.subscribes = type == "SUB" || type == "XSUB";
    said.text += ", " + type;
    said.details.emplace_back("socket_type", type);
  }
  say(direction, std::move(said));
  take_frames(direction, as_bytes(held).subspan(taken));
}

void Conversation::take_frames(int direction, Bytes bytes) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  while (side.phase != Phase::opaque) {
    if (side.phase == Phase::header && !take_header(direction, bytes)) {
      return;
    }
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(side.left, bytes.size()));
    const bool is_command = (side.frame.flags & zmtp::kCommand) != 0;
    const std::size_t room = is_command ? kCommandMax : sealed() || side.identity_due ? kNameMax : bodies_ + 1;
    const std::size_t kept = std::min(step, room - std::min(room, side.front.size()));
    side.front.append(as_text(bytes.first(kept)));
    bytes = bytes.subspan(step);
    side.left -= step;
    if (side.left > 0) {
      return;
    }
    side.phase = Phase::header;
    end_frame(direction);
  }
}

// Returns false if more bytes are needed, or the direction is not decoded any more.
bool Conversation::take_header(int direction, Bytes& bytes) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  while (!bytes.empty()) {
    side.pending += static_cast<char>(bytes[0]);
    bytes = bytes.subspan(1);
    const Bytes head = as_bytes(side.pending);
    const bool old = side.framing == zmtp::Framing::v1;
    const auto status =
        old ? zmtp::parse_frame_header_v1(head, side.frame) : zmtp::parse_frame_header(head, side.frame);
    if (status == weft::ParseStatus::malformed) {
      give_up(direction, "malformed", "a frame's header is hex " + to_hex(side.pending));
      return false;
    }
    if (status == weft::ParseStatus::complete) {
      side.pending.clear();
      side.front.clear();
      side.left = side.frame.body_size;
      side.phase = Phase::body;
      return true;
    }
  }
  return false;
}

void Conversation::give_up(int direction, const std::string& kind, const std::string& why) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  side.phase = Phase::opaque;
  side.pending.clear();
  say(direction, {kind, why + "; the bytes are passed on undecoded", {{"problem", why}}});
}

bool Conversation::cut_short(int direction) const noexcept {
  const Side& side = sides_[static_cast<std::size_t>(direction)];
  return !side.pending.empty() || side.phase == Phase::body || side.part_count > 0;
}

void Conversation::end_frame(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  if (side.identity_due) {
    side.identity_due = false;
    say(direction, value_of("identity", "value", as_bytes(side.front)));
  } else if (sealed()) {
    end_sealed(direction);
  } else if ((side.frame.flags & zmtp::kCommand) != 0) {
    end_command(direction);
  } else {
    end_part(direction);
  }
}

// Of an encrypted conversation the names of commands are plain, and the reason of an ERROR.
void Conversation::end_sealed(int direction) {
  const Side& side = sides_[static_cast<std::size_t>(direction)];
  zmtp::Command command;
  const bool named = zmtp::parse_command(as_bytes(side.front), command) == weft::ParseStatus::complete;
  if (named && command.name == "ERROR" && (side.frame.flags & zmtp::kCommand) != 0) {
    end_command(direction);
    return;
  }
  Said said{"encrypted", named ? printable(command.name) + ", " : "", {}};
  said.text += size_text(side.frame.body_size);
  if (named) {
    said.details.emplace_back("name", std::string(command.name));
  }
  said.details.emplace_back("size", side.frame.body_size);
  say(direction, std::move(said));
}

void Conversation::end_command(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  zmtp::Command command;
  if (zmtp::parse_command(as_bytes(side.front), command) != weft::ParseStatus::complete) {
    say(direction, {"command",
                    "without a name, " + size_text(side.frame.body_size),
                    {{"name", std::string()}, {"size", side.frame.body_size}}});
    return;
  }
  Said said{"command", printable(command.name), {{"name", std::string(command.name)}}};
  const std::string_view name = command.name;
  const std::string_view data = as_text(command.data);
  const std::uint64_t size = side.frame.body_size - (side.front.size() - data.size());
  Said decoded = said;
  bool good = size == data.size();
  if (!good) {
    // The front of a long command is shown like any other bytes.
  } else if (name == "READY" || name == "INITIATE") {
    good = add_properties(command.data, decoded, side.subscribes);
  } else if (name == "HELLO" && mechanism_ == "PLAIN") {
    good = add_login(command.data, decoded);
  } else if (name == "ERROR") {
    good = add_error(command.data, decoded);
  } else if (name == "PING") {
    good = add_ping(command.data, decoded);
  } else if (name == "PONG") {
    good = add_pong(command.data, decoded);
  } else if (name == "FILTER" || name == "UNFILTER") {
    good = add_filter(command.data, decoded);
  } else {
    good = false;
  }
  if (good) {
    say(direction, std::move(decoded));
    return;
  }
  // SUBSCRIBE, CANCEL, JOIN and LEAVE hold one value; others are shown as bytes.
  if (size > 0 && !(name == "HELLO" && mechanism_ == "PLAIN")) {
    const std::string_view front = data.substr(0, std::max<std::size_t>(bodies_, zmtp::kGroupMax));
    said.text += " " + shown(front, size);
    append_value(said.details, "data", front, size);
  }
  said.details.emplace_back("size", size);
  say(direction, std::move(said));
}

void Conversation::end_part(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  const bool more = (side.frame.flags & zmtp::kMore) != 0;
  const std::uint64_t size = side.frame.body_size;
  // Before ZMTP 3.1 a subscription is a message: 01 or 00, and the topic.
  if (side.subscribes && !more && side.part_count == 0 && size > 0 && static_cast<unsigned char>(side.front[0]) <= 1) {
    const std::string_view topic = std::string_view(side.front).substr(1);
    Said said{side.front[0] == '\1' ? "subscribe" : "cancel", shown(topic, size - 1), {}};
    append_value(said.details, "topic", topic, size - 1);
    say(direction, std::move(said));
    return;
  }
  ++side.part_count;
  side.message_size += size;
  if (side.parts.size() < kPartsMax) {
    side.parts.push_back({size, side.front.substr(0, bodies_)});
  }
  if (!more) {
    end_message(direction);
  }
}

void Conversation::end_message(int direction) {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  Said said{"message", std::to_string(side.part_count) + (side.part_count == 1 ? " part, " : " parts, "), {}};
  said.text += size_text(side.message_size);
  std::vector<Object> parts;
  for (const Part& part : side.parts) {
    said.text += "  [" + std::to_string(part.size) + "]";
    Record each{{"size", part.size}};
    if (bodies_ > 0) {
      said.text += " " + shown(part.front, part.size);
      append_value(each, "text", part.front, part.size);
    }
    parts.push_back({std::move(each)});
  }
  if (side.part_count > side.parts.size()) {
    said.text += "  and " + std::to_string(side.part_count - side.parts.size()) + " more";
  }
  said.details = {{"part_count", side.part_count}, {"size", side.message_size}, {"parts", std::move(parts)}};
  side.parts.clear();
  side.part_count = 0;
  side.message_size = 0;
  say(direction, std::move(said));
}

}  // namespace weft::cli
