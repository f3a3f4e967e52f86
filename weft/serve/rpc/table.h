// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<flatbuffers/flatbuffers.h>)
#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/rpc/body.h"

// Requests and responses that are tables of FlatBuffers. Optional: the header is empty where FlatBuffers is not
// installed.
namespace weft::serve::rpc {

// Table: the bytes of a table of FlatBuffers: `rpc::Method<"calc.add", rpc::Table<Sum>, rpc::Table<Total>>`.
// A handler and a caller read it in place: `request->a()`.
// Owner: a move-only value. Affinity: one thread at a time. Cost: a copy of the bytes into a pooled block, which has
// the alignment of every scalar; decode() also verifies them.
// Invariant: the bytes are a table that flatbuffers::Verifier accepted, or that this process built.
template <typename T>
class Table {
 public:
  static constexpr flatbuffers::uoffset_t kDepthMax = 32;
  static constexpr flatbuffers::uoffset_t kTablesMax = 10'000;

  // The table of a builder that has finished. Fails with resource_exhausted.
  [[nodiscard]] static Result<Table> of(const flatbuffers::FlatBufferBuilder& builder) {
    return copy_of({builder.GetBufferPointer(), builder.GetSize()});
  }
  // Fails with protocol_error if the bytes are not such a table.
  [[nodiscard]] static Result<Table> verify(Bytes bytes) {
    Table table = WEFT_TRY(copy_of(bytes));
    const Bytes own = table.bytes();
    flatbuffers::Verifier verifier(own.data(), own.size(), kDepthMax, kTablesMax);
    if (own.size() < kLeast || !verifier.VerifyBuffer<T>(nullptr)) {
      return Error(Errc::protocol_error, "the body is not this table of FlatBuffers");
    }
    return table;
  }

  [[nodiscard]] const T& operator*() const noexcept { return *flatbuffers::GetRoot<T>(owned_.bytes().data()); }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }
  [[nodiscard]] Bytes bytes() const noexcept { return owned_.bytes(); }

 private:
  static constexpr std::size_t kLeast = sizeof(flatbuffers::uoffset_t) + sizeof(flatbuffers::soffset_t);

  Table() noexcept = default;
  static Result<Table> copy_of(Bytes bytes) {
    Table table;
    if (!table.owned_.assign(bytes)) {
      return Error(Errc::resource_exhausted, "no memory for the body of a call");
    }
    return table;
  }

  OwnedBytes owned_;
};

template <typename T>
struct Body<Table<T>> {
  static Result<Bytes> encode(const Table<T>& table, Scratch& /*scratch*/) noexcept { return table.bytes(); }
  static Result<Table<T>> decode(Bytes bytes) { return Table<T>::verify(bytes); }
};

}  // namespace weft::serve::rpc

#endif
