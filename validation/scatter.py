"""Predicted against measured as an SVG that stands alone: log-log, identity, a band of 25 %, an inset where points crowd.

Its own background and a dark palette of its own, because a picture in a README cannot know what page it lies on."""

import html
import math

WIDTH, HEIGHT = 640, 640
STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  .plot { fill: #ffffff; stroke: #6e7781; }
  .back { fill: #ffffff; }
  .grid { stroke: #eaeef2; }
  .band { fill: #8c959f; fill-opacity: 0.18; }
  .identity { stroke: #57606a; stroke-width: 1.2; }
  .zoom { fill: none; stroke: #8c959f; stroke-dasharray: 3 3; }
  .first { fill: #0969da; stroke: #ffffff; }
  .second { fill: #d4580a; stroke: #ffffff; }
  text { fill: #1f2328; font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
  .small { font-size: 11px; fill: #57606a; }
  .head { font-size: 15px; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d; }
    .plot { fill: #0d1117; stroke: #8b949e; }
    .back { fill: #0d1117; }
    .grid { stroke: #21262d; }
    .identity { stroke: #b1bac4; }
    .first { fill: #58a6ff; stroke: #0d1117; }
    .second { fill: #f0883e; stroke: #0d1117; }
    text { fill: #e6edf3; }
    .small { fill: #9ea7b3; }
  }
"""


class Panel:
    """A square of the picture with the same logarithmic axis, low to high seconds, in both directions."""

    def __init__(self, name, left, top, size, low, high, ticks):
        self.name, self.left, self.top, self.size, self.low, self.high, self.ticks = name, left, top, size, low, high, ticks

    def along(self, seconds):
        return self.size * math.log(seconds / self.low) / math.log(self.high / self.low)

    def x(self, seconds):
        return self.left + self.along(seconds)

    def y(self, seconds):
        return self.top + self.size - self.along(seconds)

    def holds(self, *seconds):
        return all(self.low <= s <= self.high for s in seconds)


def frame(panel, label_class):
    """Background, band, grid, identity and numbers at the ticks."""
    right, bottom = panel.left + panel.size, panel.top + panel.size
    out = [f'<clipPath id="{panel.name}"><rect x="{panel.left}" y="{panel.top}" width="{panel.size}" height="{panel.size}"/>'
           "</clipPath>",
           f'<rect class="plot" x="{panel.left}" y="{panel.top}" width="{panel.size}" height="{panel.size}"/>']
    for tick in panel.ticks:
        x, y = panel.x(tick), panel.y(tick)
        out.append(f'<path class="grid" d="M{x:.1f} {panel.top + 1}V{bottom - 1}M{panel.left + 1} {y:.1f}H{right - 1}"/>')
        out.append(f'<text class="{label_class}" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
        out.append(f'<text class="{label_class}" x="{panel.left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    ends = [(panel.low, 0.75), (panel.high, 0.75), (panel.high, 1.25), (panel.low, 1.25)]
    band = " ".join(f"{panel.x(s):.1f},{panel.y(s * factor):.1f}" for s, factor in ends)
    out.append(f'<polygon class="band" clip-path="url(#{panel.name})" points="{band}"/>')
    out.append(f'<path class="identity" d="M{panel.left} {bottom}L{right} {panel.top}"/>')
    return out


def marker(x, y, kind, colour, title=""):
    tip = f"<title>{html.escape(title)}</title>" if title else ""
    if kind == "circle":
        return f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="5.5">{tip}</circle>'
    if kind == "square":
        return f'<rect class="{colour}" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{tip}</rect>'
    return f'<path class="{colour}" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z">{tip}</path>'


def points(panel, cases, colours):
    out = []
    for case in cases:
        if not panel.holds(case["measured_s"], case["predicted_s"]):
            continue
        kind = "diamond" if case["zero"] == 3 else "square" if case["gpu"] == "V100" else "circle"
        title = (f"{case['model']} on {case['n_gpus']} {case['gpu']}: measured {case['measured_s']:.4g} s,"
                 f" predicted {case['predicted_s']:.4g} s ({case['error_pct']:+.0f} %)")
        out.append(marker(panel.x(case["measured_s"]), panel.y(case["predicted_s"]), kind, colours[case["family"]], title))
    return out


def legend(left, top, lines):
    out = [f'<rect class="back" x="{left - 14}" y="{top - 13}" width="{WIDTH - left - 36}" height="{21 * len(lines) + 6}"/>']
    for i, (kind, colour, text) in enumerate(lines):
        y = top + 21 * i
        if kind == "line":
            out.append(f'<path class="identity" d="M{left - 9} {y}h18"/>')
        elif kind == "band":
            out.append(f'<rect class="band" x="{left - 9}" y="{y - 6}" width="18" height="12"/>')
        else:
            out.append(marker(left, y, kind, colour))
        out.append(f'<text x="{left + 17}" y="{y + 4.5}">{html.escape(text)}</text>')
    return out


def write(path, cases, families):
    colours = dict(zip(families, ("first", "second")))
    titles = list(families.values())
    main = Panel("main", 74, 56, 520, 0.7, 400, (1, 2, 5, 10, 20, 50, 100, 200))
    inset = Panel("inset", 112, 72, 176, 0.85, 1.55, (0.9, 1, 1.2, 1.4))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
           ' role="img" aria-label="Predicted against measured iteration times">', f"<style>{STYLE}</style>",
           f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
           f'<text class="head" x="{main.left}" y="34">Iteration time: predicted, uncalibrated, against measured</text>']
    out += frame(main, "")
    corner = main.x(inset.low), main.y(inset.high)
    side = main.x(inset.high) - corner[0]
    out.append(f'<path class="zoom" d="M{corner[0]:.1f} {corner[1]:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z'
               f'M{corner[0]:.1f} {corner[1]:.1f}L{inset.left} {inset.top + inset.size}'
               f'M{corner[0] + side:.1f} {corner[1]:.1f}L{inset.left + inset.size} {inset.top + inset.size}"/>')
    out += points(main, [c for c in cases if not inset.holds(c["measured_s"], c["predicted_s"])], colours)
    out += [f'<g opacity="0.55">{mark}</g>' for mark in
            points(main, [c for c in cases if inset.holds(c["measured_s"], c["predicted_s"])], colours)]
    out += frame(inset, "small")
    out += points(inset, cases, colours)
    out += legend(main.left + 262, main.top + main.size - 124,
                  [("circle", "first", titles[0] + ", A100"), ("square", "first", titles[0] + ", V100"),
                   ("circle", "second", titles[1] + ", tensor + pipeline"), ("diamond", "second", titles[1] + ", ZeRO-3"),
                   ("line", "", "predicted = measured"), ("band", "", "within 25 %")])
    middle = main.left + main.size / 2
    out.append(f'<text x="{middle}" y="{main.top + main.size + 40}" text-anchor="middle">measured, s</text>')
    out.append(f'<text x="22" y="{main.top + main.size / 2}" text-anchor="middle"'
               f' transform="rotate(-90 22 {main.top + main.size / 2})">predicted, s</text>')
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))
