// SPDX-License-Identifier: MIT
#include "weft/msg/wire/datagram_stream.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/assert.h"

namespace weft::msg {

DatagramStream::DatagramStream(sys::Fd fd, Form form, const sys::SocketAddress& to, std::uint64_t part_max,
                               MessageDrops& drops)
    : fd_(std::move(fd)), form_(form), to_(to), part_max_(part_max), drops_(drops) {
  if (to.is_ip()) {
    return;  // without room every datagram is cut, and no message
  }
  rooms_ = std::make_unique_for_overwrite<std::uint8_t[]>(kRooms * kRoom);
  for (std::size_t i = 0; i < kRooms; ++i) {
    received_[i].room = MutableBytes(rooms_.get() + i * kRoom, kRoom);
  }
}

net::StreamState DatagramStream::state() const noexcept {
  net::StreamState state;
  state.datagrams = true;
  return state;
}

sys::IoResult DatagramStream::write(std::span<const Bytes> from) {
  zmtp::OutgoingFrames frames(from);
  zmtp::OutgoingFrames::Frame frame;
  Batch batch;
  std::size_t taken = 0;
  Bytes head(held_.data(), held_size_);
  bool room = true;
  while (room && frames.next(frame)) {
    if ((frame.header.flags & zmtp::kMore) != 0) {
      head = form_ == Form::grouped ? frame.header_and_body.subspan(1) : frame.body;  // with its length of one byte
      continue;
    }
    WEFT_ASSERT(!head.empty());
    sys::OutgoingDatagram& datagram = batch.datagrams[batch.count];
    datagram = form_ == Form::grouped ? sys::OutgoingDatagram{to_.raw(), to_.raw_size(), {head, frame.body}}
                                      : sys::OutgoingDatagram{head.data(), head.size(), {frame.body, Bytes()}};
    batch.ends[batch.count++] = frames.taken();
    head = {};
    room = batch.count < sys::kMaxDatagrams || send(batch, taken);
  }
  if (room && send(batch, taken)) {
    hold(head);
    taken = frames.taken();
  }
  return {taken == 0 ? sys::IoResult::Status::would_block : sys::IoResult::Status::done, taken, 0};
}

// Returns false if the kernel has no room for the rest. `taken`: the end of the sent bytes.
bool DatagramStream::send(Batch& batch, std::size_t& taken) noexcept {
  const std::size_t count = std::exchange(batch.count, 0);
  for (std::size_t gone = 0; gone < count;) {
    const sys::DatagramResult sent =
        sys::send_datagrams(fd(), {batch.datagrams.data() + gone, batch.datagrams.data() + count});
    if (sent.count == 0 && sys::would_block(sent.os_errno)) {
      return false;
    }
    if (sent.count == 0) {
      ++(sys::too_long(sent.os_errno) ? drops_.dropped_too_long : drops_.dropped_refused);
    }
    gone += std::max<std::size_t>(sent.count, 1);
    taken = batch.ends[gone - 1];
    held_size_ = 0;  // it was of the first
  }
  return true;
}

void DatagramStream::hold(Bytes head) noexcept {
  WEFT_ASSERT(head.size() <= kHeadMax);
  if (head.data() != held_.data()) {
    copy_bytes(held_.data(), head);
  }
  held_size_ = head.size();
}

sys::IoResult DatagramStream::read(std::span<MutableBytes> into) {
  if (ended_) {
    return {sys::IoResult::Status::end_of_stream, 0, 0};
  }
  sys::IoResult result;
  int calls = 0;
  for (MutableBytes room : into.first(std::min(into.size(), sys::kMaxReadVector))) {
    while (!room.empty()) {
      if (frames_.empty()) {
        if (next_ == count_ && !receive(calls)) {
          result.cut = calls >= kCallsMax && result.status == sys::IoResult::Status::done;
          return result;
        }
        translate(received_[next_++]);
      }
      const std::size_t size = frames_.take(room);
      room = room.subspan(size);
      result.status = sys::IoResult::Status::done;
      result.bytes += size;
    }
  }
  return result;
}

// Returns false if the kernel has none, or the call has received enough.
bool DatagramStream::receive(int& calls) noexcept {
  next_ = count_ = 0;
  while (count_ == 0) {
    if (calls++ >= kCallsMax) {
      return false;
    }
    received_[0].overflow = overflow_;
    const sys::DatagramResult got = sys::receive_datagrams(fd(), received_, form_ == Form::addressed);
    if (sys::would_block(got.os_errno)) {
      calls = 0;
      return false;
    }
    count_ = got.count;  // 0: an error of an earlier datagram, which the socket has now forgotten
  }
  const std::uint32_t overflow = received_[count_ - 1].overflow;
  drops_.dropped_overflow += overflow - overflow_;
  overflow_ = overflow;
  return true;
}

void DatagramStream::translate(const sys::IncomingDatagram& datagram) noexcept {
  const Bytes bytes(datagram.room.data(), datagram.size);
  if (datagram.cut) {
    frames_.put_malformed();
  } else if (form_ == Form::grouped) {
    frames_.put_grouped(bytes, part_max_);
  } else {
    try {
      const std::string address = datagram.from.to_text();
      frames_.put_addressed({reinterpret_cast<const std::uint8_t*>(address.c_str()), address.size() + 1}, bytes,
                            part_max_);
    } catch (const std::bad_alloc&) {
      frames_.put_malformed();
    }
  }
}

}  // namespace weft::msg
