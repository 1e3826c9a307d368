"""LZO1X blocks, decompressed in plain Python: no LZO library has wheels for every Python that ctk supports.

Source of the format: Linux, Documentation/staging/lzo.rst.
"""

from __future__ import annotations


def decompress_lzo(data: bytes, limit: int) -> bytes:
    """One raw LZO1X block. Raises ValueError if it is no such block, or is larger than `limit` bytes."""
    try:
        return _decompress_lzo(data, limit)
    except IndexError as error:
        raise ValueError("an LZO block is truncated") from error


def _decompress_lzo(data: bytes, limit: int) -> bytes:
    output = bytearray()
    position = 0
    # How many literals the instruction before copied (4 stands for "4 or more"): it decides what a low code means.
    state = 0
    if data[0] > 17:
        length = data[0] - 17
        position = _copy_literals(data, 1, length, output, limit)
        state = min(length, 4)
    while True:
        code = data[position]
        position += 1
        if code < 16 and state == 0:
            length, position = _lzo_length(data, position, code, 15)
            position = _copy_literals(data, position, length + 3, output, limit)
            state = 4
            continue
        if code < 16:
            distance = (code >> 2) + (data[position] << 2) + (1 if state < 4 else 2049)
            length = 2 if state < 4 else 3
            position += 1
            state = code & 3
        elif code >= 64:
            distance = ((code >> 2) & 7) + (data[position] << 3) + 1
            length = (code >> 5) + 1
            position += 1
            state = code & 3
        else:
            mask = 31 if code >= 32 else 7
            length, position = _lzo_length(data, position, code & mask, mask)
            length += 2
            tail = data[position] | data[position + 1] << 8
            position += 2
            distance = (tail >> 2) + 1
            if code < 32:
                distance += 16383 + ((code & 8) << 11)
                if distance == 16384:
                    return bytes(output)
            state = tail & 3
        _copy_match(output, distance, length, limit)
        position = _copy_literals(data, position, state, output, limit)


def _lzo_length(data: bytes, position: int, length: int, mask: int) -> tuple[int, int]:
    if length:
        return length, position
    length = mask
    while data[position] == 0:
        length += 255
        position += 1
    return length + data[position], position + 1


def _copy_literals(data: bytes, position: int, length: int, output: bytearray, limit: int) -> int:
    end = position + length
    if end > len(data):
        raise ValueError("a compressed block is truncated")
    if len(output) + length > limit:
        raise ValueError("a compressed block exceeds its maximum size")
    output += data[position:end]
    return end


def _copy_match(output: bytearray, distance: int, length: int, limit: int) -> None:
    start = len(output) - distance
    if distance == 0 or start < 0:
        raise ValueError("a compressed block has an invalid back-reference")
    if len(output) + length > limit:
        raise ValueError("a compressed block exceeds its maximum size")
    if distance >= length:
        output += output[start : start + length]
    else:
        pattern = bytes(output[start:])
        output += (pattern * (length // distance + 1))[:length]
