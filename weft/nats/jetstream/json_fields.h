// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/wall_time.h"

namespace weft::nats::jetstream {

// JsonFields: the places of the values of a JSON object, and its reader. A place is named by the path of its object and
// the name of its member: "" is the whole text, "state" its member of that name, "cluster.replicas[]" each object of an
// array in the member `replicas` of `cluster`.
// Owner: a reader's call; the paths, the names and the places live as long. Affinity: one thread. Cost: each member is
// compared with each place.
// Invariants:
//   1. A member that has a place has the place's type, or is null, which leaves the place as it is.
//   2. A member without a place is skipped, whatever it is.
//   3. A text, an array and the depth keep to the bounds of api.h, and no number is cut.
class JsonFields {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  template <typename Place>
  void add(std::string_view object, std::string_view name, Place& place) {
    fields_.push_back({object, name, &place});
  }
  // A text that is longer is cut.
  void add_cut(std::string_view object, std::string_view name, std::string& place) {
    fields_.push_back({object, name, Cut{&place}});
  }
  // Bytes in base64, of any length.
  void add_base64(std::string_view object, std::string_view name, std::string& place) {
    fields_.push_back({object, name, Base64{&place}});
  }
  // One of these texts: the place becomes its index; their number if it is another text, of a newer server.
  template <typename Enum, std::size_t kCount>
  void add_choice(std::string_view object, std::string_view name, const std::string_view (&texts)[kCount],
                  Enum& place) {
    static_assert(sizeof(Enum) == 1);
    fields_.push_back({object, name, Choice{texts, reinterpret_cast<std::uint8_t*>(&place)}});
  }
  // Whether the member is this text.
  void add_equal(std::string_view object, std::string_view name, std::string_view text, bool& place) {
    fields_.push_back({object, name, Equal{text, &place}});
  }
  // The names of the object's members that have a value and no place.
  void add_others(std::string_view object, std::vector<std::string>& place) { others_.push_back({object, &place}); }
  // A member that is one of the others unless it is this text.
  void add_usual(std::string_view object, std::string_view name, std::string_view text) {
    fields_.push_back({object, name, Usual{text}});
  }
  // Each object of the array becomes an item, whose members are read into `scratch`.
  template <typename Item>
  void add_items(std::string_view object, Item& scratch, std::vector<Item>& items) {
    ends_.push_back({object, [&scratch, &items] {
                       if (items.size() == kItemsMax) {
                         return false;
                       }
                       items.push_back(std::exchange(scratch, Item()));
                       return true;
                     }});
  }

  // Errors: those of read_done().
  [[nodiscard]] Result<void> read(std::string_view json, std::size_t size_max = kJsonMax);

 private:
  class Reader;
  struct Cut {
    std::string* place;
  };
  struct Base64 {
    std::string* place;
  };
  struct Choice {
    std::span<const std::string_view> texts;
    std::uint8_t* place;
  };
  struct Equal {
    std::string_view text;
    bool* place;
  };
  struct Usual {
    std::string_view text;
  };
  struct Field {
    std::string_view object;
    std::string_view name;
    std::variant<std::string*, bool*, std::uint64_t*, std::int64_t*, std::uint32_t*, Duration*, WallTime*,
                 std::vector<std::string>*, std::vector<Duration>*, Pairs*, Cut, Base64, Choice, Equal, Usual>
        place;
  };
  struct Others {
    std::string_view object;
    std::vector<std::string>* place;
  };
  struct End {
    std::string_view object;
    std::function<bool()> take;
  };

  std::vector<Field> fields_;
  std::vector<Others> others_;
  std::vector<End> ends_;
};

// An answer of the API. add(fields, value) names the places of its value; is_whole(value): whether it has the members
// of each answer of its kind.
template <typename T, typename Add, typename IsWhole>
[[nodiscard]] Result<Reply<T>> read_reply(std::string_view json, const Add& add, const IsWhole& is_whole,
                                          std::size_t size_max = kJsonMax) {
  try {
    Reply<T> reply;
    JsonFields fields;
    std::uint32_t code = 0;
    fields.add("error", "code", code);
    fields.add("error", "err_code", reply.failure.number);
    fields.add_cut("error", "description", reply.failure.description);
    add(fields, reply.value);
    WEFT_TRY(fields.read(json, size_max));
    reply.failure.code = code;
    if (reply.ok() && !is_whole(reply.value)) {
      return Error(Errc::protocol_error, "the answer of JetStream is of another kind");
    }
    return Result<Reply<T>>(std::in_place, std::move(reply));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory to read an answer of JetStream");
  }
}

}  // namespace weft::nats::jetstream
