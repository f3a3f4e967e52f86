# SPDX-License-Identifier: MIT
"""The C interface of the library that the package carries, by ctypes."""

import ctypes
import os
from pathlib import Path
from typing import Any, Optional, Tuple

LIBRARY = Path(__file__).absolute().parent / "libzmq-weft.so"
lib: Any = ctypes.CDLL(str(LIBRARY), use_errno=True)

_P, _I, _S, _C = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
_SIZE = ctypes.POINTER(ctypes.c_size_t)


def _declare(name: str, result: Any, *arguments: Any) -> None:
    function = getattr(lib, name)
    function.restype = result
    function.argtypes = arguments


_declare("zmq_ctx_new", _P)
_declare("zmq_ctx_term", _I, _P)
_declare("zmq_ctx_get", _I, _P, _I)
_declare("zmq_socket", _P, _P, _I)
_declare("zmq_close", _I, _P)
_declare("zmq_bind", _I, _P, _C)
_declare("zmq_connect", _I, _P, _C)
_declare("zmq_unbind", _I, _P, _C)
_declare("zmq_disconnect", _I, _P, _C)
_declare("zmq_setsockopt", _I, _P, _I, _P, _S)
_declare("zmq_getsockopt", _I, _P, _I, _P, _SIZE)
_declare("zmq_send", _I, _P, _P, _S, _I)
_declare("zmq_msg_init", _I, _P)
_declare("zmq_msg_recv", _I, _P, _P, _I)
_declare("zmq_msg_data", _P, _P)
_declare("zmq_msg_size", _S, _P)
_declare("zmq_msg_more", _I, _P)
_declare("zmq_msg_close", _I, _P)
_declare("zmq_strerror", _C, _I)
_declare("zmq_poll", _I, _P, _I, ctypes.c_long)
_declare("zmq_socket_monitor", _I, _P, _C, _I)
_declare("zmq_curve_keypair", _I, _C, _C)
_declare("weft_last_error_text", _C)
_declare("weft_socket_statistics", _I, _P, ctypes.POINTER(ctypes.c_uint64), _S)
_declare("weft_socket_statistic_name", _C, _S)
_declare("weft_version", None, *[ctypes.POINTER(_I)] * 3)


class Msg(ctypes.Structure):
    """zmq_msg_t: 64 bytes, aligned as a pointer."""

    _fields_ = [("words", ctypes.c_void_p * (64 // ctypes.sizeof(ctypes.c_void_p)))]


def version() -> str:
    numbers = [ctypes.c_int() for _ in range(3)]
    lib.weft_version(*[ctypes.byref(number) for number in numbers])
    return ".".join(str(number.value) for number in numbers)


class _Buffer(ctypes.Structure):
    """Py_buffer of the stable ABI."""

    _fields_ = [("buf", _P), ("obj", _P), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t), ("readonly", _I),
                ("ndim", _I), ("format", _P), ("shape", _P), ("strides", _P), ("suboffsets", _P), ("internal", _P)]


class View:
    """The memory of an object with a contiguous buffer, until release()."""

    def __init__(self, of: Any) -> None:
        self._buffer = _Buffer()
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(of), ctypes.byref(self._buffer), 0)  # or raises BufferError
        self.address: Optional[int] = self._buffer.buf
        self.size: int = self._buffer.len

    def release(self) -> None:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self._buffer))


def last_error() -> Tuple[int, str]:
    """(errno, text with particulars) of the last call on this thread that failed."""
    number = ctypes.get_errno()
    text = lib.weft_last_error_text() or lib.zmq_strerror(number)
    return number, text.decode(errors="replace") if text else os.strerror(number)
