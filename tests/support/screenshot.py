#!/usr/bin/python3
"""Compares a browser's screenshot (PNG) with a reference of tests/cli/screenshots: `screenshot.py SHOT REFERENCE COLOUR...`.

The reference is the picture in cells of CELL pixels, a hexadecimal digit of brightness each: fonts, smoothing and figures change a
cell by little, a lost style sheet, a box in another place or an empty plot change many by much. Every COLOUR (#rrggbb) must be on
MARKED pixels: marks are visible. With PACELINE_UPDATE_GOLDEN set the reference is written. Nothing but the standard library."""
import os
import struct
import sys
import zlib

CELL, APART, MARKED = 20, 0.1, 60


def unfiltered(data, height, stride, step):
    """Rows of a PNG of 8 bits a channel (its filters 0 to 4)."""
    before, at = bytearray(stride), 0
    for _ in range(height):
        kind, row = data[at], bytearray(data[at + 1:at + 1 + stride])
        at += 1 + stride
        for i in range(stride):
            left, up = row[i - step] if i >= step else 0, before[i]
            corner = before[i - step] if i >= step else 0
            if kind == 1:
                row[i] = (row[i] + left) & 255
            elif kind == 2:
                row[i] = (row[i] + up) & 255
            elif kind == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                row[i] = (row[i] + near[2]) & 255
        yield row
        before = row


def pixels(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    step = {2: 3, 6: 4}[colour]
    assert depth == 8
    return width, height, step, list(unfiltered(zlib.decompress(packed), height, width * step, step))


def main():
    shot, reference, *colours = sys.argv[1:]
    width, height, step, rows = pixels(shot)
    sums = [[0] * (width // CELL) for _ in range(height // CELL)]
    wanted = {tuple(bytes.fromhex(colour[1:])): 0 for colour in colours}
    for y, row in enumerate(rows[:len(sums) * CELL]):
        for x in range(len(sums[0]) * CELL):
            pixel = tuple(row[x * step:x * step + 3])
            sums[y // CELL][x // CELL] += sum(pixel)
            if pixel in wanted:
                wanted[pixel] += 1
    cells = [[int(15.999 * cell / (3 * 255 * CELL * CELL)) for cell in line] for line in sums]
    text = "\n".join("".join(f"{cell:x}" for cell in line) for line in cells) + "\n"
    if os.environ.get("PACELINE_UPDATE_GOLDEN"):
        open(reference, "w").write(text)
    lines = open(reference).read().split()
    assert len(lines) == len(cells) and len(lines[0]) == len(cells[0]), "another size of picture"
    pairs = [(a, int(b, 16)) for line, own in zip(lines, cells) for a, b in zip(own, line)]
    # Of all ink of both, what the other has not at that place: 0 the same, 1 nothing in common.
    apart = sum(abs(a - b) for a, b in pairs) / max(1, sum(30 - a - b for a, b in pairs))
    for colour, count in wanted.items():
        assert count >= MARKED, f"{shot}: #{bytes(colour).hex()} is on {count} pixels only"
    assert apart <= APART, f"{shot}: {apart:.2f} of what is seen is not what {reference} has there, more than {APART}"
    print(f"{shot}: {apart:.4f} apart from {reference}")


main()
