# SPDX-License-Identifier: MIT
"""Small pictures for tests, made without a library for pictures: PNG files of any kind, and JPEG files of 16 x 16 pixels
whose left half is red, (200, 30, 40), and whose right half is blue, (30, 60, 210)."""
import base64
import struct
import zlib

RED, BLUE = (200, 30, 40), (30, 60, 210)

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeX"
    "BkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAQ"
    "ABADAREAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAwX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABgT/xA"
    "AUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCQkKAGIUcONQGIU//Z")
JPEG_CMYK = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAQCwwODAoQDg0OEhEQExgoGhgWFhgxIyUdKDozPTw5Mzg3QEhcTkBEV0U3OFBtUVdfYmdoZz5NcXlwZH"
    "hcZWdj/8AAFAgAEAAQBEMRAE0RAFkRAEsRAP/EABcAAQADAAAAAAAAAAAAAAAAAAcABAb/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oADgRDAE0A"
    "WQBLAAA/ANIxzJkAVL5VQqqAqQVL5VR//9k=")
GREY, COLOUR, PALETTE, GREY_ALPHA, COLOUR_ALPHA = 0, 2, 3, 4, 6


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(pixels, kind=COLOUR, palette=()):
    """A PNG file of uint8 or uint16 pixels, [height, width] or [height, width, channels]."""
    height, width = pixels.shape[:2]
    bits = 8 * pixels.dtype.itemsize
    rows = b"".join(b"\0" + row.astype(f">u{bits // 8}").tobytes() for row in pixels)
    colours = chunk(b"PLTE", bytes(palette)) if palette else b""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + colours + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bomb(width, height):
    """A PNG file that claims to be of this size."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, COLOUR, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
