// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/json_fields.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "weft/base/text/base64.h"

#if __has_include(<nlohmann/json.hpp>)
#define WEFT_NATS_JSON
#include <nlohmann/json.hpp>
#endif

namespace weft::nats::jetstream {

#ifdef WEFT_NATS_JSON

namespace {

using Json = nlohmann::json;

constexpr std::size_t kOthersMax = 64;

}  // namespace

// Reader: takes the events of nlohmann/json's parser, which keeps no value and does not recurse. A function that
// returns false ends the parsing.
class JsonFields::Reader {
 public:
  explicit Reader(JsonFields& fields) noexcept : fields_(fields) {}

  bool null() { return !stack_.empty(); }
  bool boolean(bool read) {
    const Field* const field = expected();
    if (field == nullptr) {
      return skipped(read);
    }
    bool* const* const place = std::get_if<bool*>(&field->place);
    return place != nullptr && !in_array() && (**place = read, true);
  }
  bool number_integer(Json::number_integer_t read) { return number(read); }
  bool number_unsigned(Json::number_unsigned_t read) { return number(read); }
  bool number_float(Json::number_float_t /*read*/, const std::string& /*text*/) {
    return expected() == nullptr && skipped(true);
  }
  bool binary(Json::binary_t& /*read*/) { return expected() == nullptr && skipped(true); }
  bool string(std::string& read) {
    const Field* const field = expected();
    if (field == nullptr) {
      return skipped(!read.empty());
    }
    return std::visit([&](const auto& place) { return put_text(place, read); }, field->place);
  }
  bool start_object(std::size_t /*size*/) {
    const Field* const field = expected();
    if (field != nullptr) {
      Pairs* const* const pairs = std::get_if<Pairs*>(&field->place);
      if (pairs == nullptr || stack_.back().field != nullptr) {
        return false;
      }
      (*pairs)->clear();
    }
    return enter(field, stack_.empty() ? "" : in_array() ? "[]" : key_, false);
  }
  bool key(std::string& name) {
    key_ = std::move(name);
    field_ = nullptr;
    if (stack_.back().field != nullptr) {  // a member of Pairs
      return true;
    }
    for (const Field& each : fields_.fields_) {
      if (each.name == key_ && each.object == path_) {
        field_ = &each;
      }
    }
    for (const auto& each : fields_.others_) {
      if (each.object == path_) {
        others_ = each.place;
        other_ = field_ == nullptr ? key_ : std::string();
        other_depth_ = stack_.size();
      }
    }
    return true;
  }
  bool end_object() {
    for (const auto& each : fields_.ends_) {
      if (each.object == path_ && !each.take()) {
        return false;
      }
    }
    return leave();
  }
  bool start_array(std::size_t /*size*/) {
    if (stack_.empty()) {
      return false;
    }
    const Field* const field = expected();
    if (field != nullptr) {
      if (in_array()) {
        return false;
      }
      if (auto* const texts = std::get_if<std::vector<std::string>*>(&field->place); texts != nullptr) {
        (*texts)->clear();
      } else if (auto* const durations = std::get_if<std::vector<Duration>*>(&field->place); durations != nullptr) {
        (*durations)->clear();
      } else {
        return false;
      }
    }
    return enter(field, in_array() ? "[]" : key_, true);
  }
  bool end_array() { return leave(); }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/, const Json::exception& /*why*/) {
    return false;
  }

 private:
  struct Frame {
    std::size_t path_size = 0;     // of the frame around it
    const Field* field = nullptr;  // whose elements or members it has
    bool array = false;
  };

  [[nodiscard]] bool in_array() const noexcept { return !stack_.empty() && stack_.back().array; }
  // The place of the next value; null: it has none.
  [[nodiscard]] const Field* expected() const noexcept {
    return stack_.empty()                   ? nullptr
           : stack_.back().field != nullptr ? stack_.back().field
           : in_array()                     ? nullptr
                                            : field_;
  }
  // A value without a place. The whole text is one object.
  [[nodiscard]] bool skipped(bool has_value) {
    if (has_value) {
      note_other();
    }
    return !stack_.empty();
  }
  void note_other() {
    if (!other_.empty() && others_->size() < kOthersMax) {
      others_->push_back(std::exchange(other_, std::string()));
    }
  }
  [[nodiscard]] bool enter(const Field* field, std::string_view name, bool array) {
    stack_.push_back({path_.size(), field, array});
    path_.append(path_.empty() || name == "[]" ? "" : ".").append(name);
    field_ = nullptr;
    return stack_.size() <= kJsonDepthMax;
  }
  [[nodiscard]] bool leave() {
    path_.resize(stack_.back().path_size);
    stack_.pop_back();
    field_ = nullptr;
    if (stack_.size() < other_depth_) {
      other_.clear();
    }
    return true;
  }

  template <typename Number>
  [[nodiscard]] bool number(Number read) {
    const Field* const field = expected();
    if (field == nullptr) {
      return skipped(read != 0);
    }
    return std::visit([&](const auto& place) { return put_number(place, read); }, field->place);
  }
  template <typename Place, typename Number>
  [[nodiscard]] bool put_number(const Place& place, Number read) {
    if constexpr (std::is_same_v<Place, std::vector<Duration>*>) {
      if (!in_array() || place->size() == kItemsMax || !std::in_range<Duration::rep>(read)) {
        return false;
      }
      place->emplace_back(static_cast<Duration::rep>(read));
      return true;
    } else if constexpr (std::is_same_v<Place, std::uint64_t*> || std::is_same_v<Place, std::int64_t*> ||
                         std::is_same_v<Place, std::uint32_t*>) {
      using Value = std::remove_pointer_t<Place>;
      if (in_array() || !std::in_range<Value>(read)) {
        return false;
      }
      *place = static_cast<Value>(read);
      return true;
    } else if constexpr (std::is_same_v<Place, Duration*>) {
      if (in_array() || !std::in_range<Duration::rep>(read)) {
        return false;
      }
      *place = Duration(static_cast<Duration::rep>(read));
      return true;
    } else {
      return false;
    }
  }
  template <typename Place>
  [[nodiscard]] bool put_text(const Place& place, std::string& read) {
    if constexpr (std::is_same_v<Place, Base64>) {
      place.place->clear();
      return decode_base64(read, *place.place);
    } else if constexpr (std::is_same_v<Place, Cut>) {
      read.resize(std::min(read.size(), kTextMax));
      *place.place = std::move(read);
      return true;
    } else if (read.size() > kTextMax) {
      return false;
    } else if constexpr (std::is_same_v<Place, std::string*>) {
      *place = std::move(read);
      return true;
    } else if constexpr (std::is_same_v<Place, WallTime*>) {
      const auto time = read_wall_time(read);
      return time && (*place = *time, true);
    } else if constexpr (std::is_same_v<Place, std::vector<std::string>*>) {
      return in_array() && place->size() < kItemsMax && (place->push_back(std::move(read)), true);
    } else if constexpr (std::is_same_v<Place, Pairs*>) {
      return stack_.back().field != nullptr && key_.size() <= kTextMax && place->size() < kItemsMax &&
             (place->emplace_back(std::move(key_), std::move(read)), true);
    } else if constexpr (std::is_same_v<Place, Choice>) {
      const auto found = std::find(place.texts.begin(), place.texts.end(), read);
      *place.place = static_cast<std::uint8_t>(found - place.texts.begin());
      return true;
    } else if constexpr (std::is_same_v<Place, Equal>) {
      *place.place = read == place.text;
      return true;
    } else if constexpr (std::is_same_v<Place, Usual>) {
      if (read != place.text) {
        other_ = key_;
        note_other();
      }
      return true;
    } else {
      return false;
    }
  }

  JsonFields& fields_;
  std::vector<Frame> stack_;
  std::string path_;  // of the innermost frame
  std::string key_;
  const Field* field_ = nullptr;  // of the last key
  std::vector<std::string>* others_ = nullptr;
  std::string other_;  // a member of the others, if it has a value; empty: the last key has a place
  std::size_t other_depth_ = 0;
};

Result<void> JsonFields::read(std::string_view json, std::size_t size_max) {
  if (json.size() > size_max) {
    return Error(Errc::protocol_error, "the answer of JetStream is too long");
  }
  Reader reader(*this);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    return Error(Errc::protocol_error, "the answer of JetStream is malformed");
  }
  return {};
}

#else

Result<void> JsonFields::read(std::string_view /*json*/, std::size_t /*size_max*/) {
  return Error(Errc::not_supported, "this build has no nlohmann/json, which NATS needs");
}

#endif

}  // namespace weft::nats::jetstream
