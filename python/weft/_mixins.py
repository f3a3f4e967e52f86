# SPDX-License-Identifier: MIT
"""The calls that the objects of weft.topics and of weft.aio_topics have alike, because they do not wait."""

from __future__ import annotations

from . import _topics


class Named:
    """An object with a handle of the library, and with the name that its errors have."""

    _handle: int
    _name: str


class Filters(Named):
    """The filters of a subscription."""

    def add(self, *filters: str) -> None:
        """Receives the messages of these filters, too."""
        for each in filters:
            _topics.subscription_add(self._handle, each)

    def remove(self, *filters: str) -> None:
        """Receives no more messages of these filters, which were added exactly so."""
        for each in filters:
            _topics.subscription_remove(self._handle, each)

    @property
    def missed(self) -> int:
        """The number of messages that the subscription has lost so far."""
        return _topics.subscription_missed(self._handle, self._name)


class LiveReader(Named):
    @property
    def is_live(self) -> bool:
        """Whether all messages that were stored when the reader was opened have been taken: True a moment after the last of
        them, and from the first new message on."""
        return _topics.reader_is_live(self._handle, self._name)


class LiveWatch(Named):
    @property
    def is_live(self) -> bool:
        """Like Reader.is_live."""
        return _topics.watch_is_live(self._handle, self._name)
