# `paceline report`: a page of a sweep. What is in it is read back from the file; what it does is looked at in a browser where there
# is one (Debian's chromium), at the widths of a desk and of a phone.
bats_require_minimum_version 1.5.0

setup_file() {
  : "${PACELINE:=$BATS_TEST_DIRNAME/../../.build/release/paceline}"
  export PACELINE
  cd "$BATS_FILE_TMPDIR"
  "$PACELINE" sweep --platform amp-homogeneous --model gpt2-345m --gbs 32 --pp 1,2,4 -o sweep.h5 --quiet
  "$PACELINE" report sweep.h5 -o sweep.html >said
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

refuses() { # 'MESSAGE' WORD ...
  local message="paceline report: $1"
  shift
  run -2 --separate-stderr "$PACELINE" report "$@"
  [[ -z $output && $stderr == "$message" ]] || { printf 'wanted: %s\nsaid:   %s\n' "$message" "$output$stderr"; return 1; }
}

@test "the page has every row, as the file has it, and what it is of" {
  grep -qx "written to sweep.html (open it in a browser)" said
  "$PACELINE" show sweep.h5 --where true --columns all --json >all.json
  /usr/bin/python3 - <<'PYTHON'
import json, re
page = open("sweep.html").read()
data = json.loads(re.search(r"const data = (\{.*?\});\n", page, re.S).group(1))
rows = sorted(json.load(open("all.json"))["rows"], key=lambda row: row["candidate"])
assert data["n_rows"] == len(rows) > 1000
for name, column in data["columns"].items():
    assert len(column) == len(rows), name
    for value, row in zip(column, rows):
        wanted = row[name]
        assert value == wanted or (isinstance(wanted, (int, float)) and abs(value - wanted) <= 1e-6 * abs(wanted)) or (wanted in (True, False) and value == int(wanted)), (name, value, wanted)
assert data["title"] == "gpt2-345m on amp-homogeneous"
assert data["command"].startswith("paceline sweep --platform amp-homogeneous --model gpt2-345m --gbs 32 --pp 1,2,4")
# Nothing is fetched, and nothing may be: no address, a policy that forbids it.
page = page.replace("http://www.w3.org/2000/svg", "") # the name of SVG's vocabulary, no address
assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page)
assert "default-src 'none'" in page and 'name="viewport"' in page
PYTHON
}

@test "of a sweep that was killed the page has what is computed, and says how much is not" {
  /usr/bin/python3 -c 'import h5py' || skip "no h5py"
  cp sweep.h5 half.h5
  /usr/bin/python3 - <<'PYTHON'
import h5py, math
with h5py.File("half.h5", "r+") as f:
    for name, column in f.items():
        if len(column) > 500: column[500:] = math.nan if column.dtype.kind == "f" else b"" if column.dtype.kind == "S" else 0 if name == "status" else -1
PYTHON
  "$PACELINE" report half.h5 -o half.html
  /usr/bin/python3 - <<'PYTHON'
import json, re
data = lambda path: json.loads(re.search(r"const data = (\{.*?\});\n", open(path).read(), re.S).group(1))
whole, half = data("sweep.html"), data("half.html")
assert whole["n_pending"] == 0 and half["n_rows"] == 500 and half["n_pending"] == whole["n_rows"] - 500
for name, column in half["columns"].items():
    assert column == whole["columns"][name][:500], name
PYTHON
  command -v chromium >/dev/null || return 0
  browse 1280 half.html >dom
  grep -qE '<p[^>]* id="facts">[^<]* of [0-9,]* strategies are not computed yet<' dom
  grep -qE '500 were simulated, [0-9]+ do not fit or failed; [0-9,]* of [0-9,]* strategies are not computed yet\.' dom
  browse 1280 sweep.html >dom
  ! grep -qE 'id="facts">[^<]*not computed|[0-9] do not fit or failed; ' dom
  "$PACELINE" sweep --platform dgx-a100-16 --model gpt3-175b --gbs 1536 --seq 2048 --pp 8 --tmp 4 --skip-oom -o skipped.h5 --quiet
  "$PACELINE" report skipped.h5 -o skipped.html
  browse 1280 skipped.html | grep -qE '>[0-9]+ of [^<]*; ([0-9]+) were simulated, ([0-9]+) do not fit or failed, of which \2 have no times\.<'
}

@test "what the MFU is a share of: of fp8's peak where products are in fp8" {
  "$PACELINE" sweep --platform dgx-h100:1 --model llama-3.1-8b --fp8 --gbs 16 --seq 2048 --pp 4 --dp 2 --tmp 1 --mbs 1 --schedule 1f1b --zero 0 --recompute none --overlap on -o fp8.h5 --quiet
  "$PACELINE" report fp8.h5 -o fp8.html >said8
  grep -q "\"peak\":\"of the GPUs' peaks, fp8 products at theirs\"" fp8.html
  grep -q '"bf16 with fp8 products (86.8 % of their work; the MFU counts each at its own peak)"' fp8.html
  grep -q "\"peak\":\"of the GPUs' peak\"" sweep.html
  grep -q 'MFU: ${data.peak}, recomputation' fp8.html
}

@test "what is wrong with the request" {
  refuses "which results file? paceline report FILE -o PAGE"
  refuses "-o FILE is missing: the page to write, e.g. -o sweep.html" sweep.h5
  refuses "sweep.html exists; --force replaces it" sweep.h5 -o sweep.html
  refuses "sweep.h5: is an input of this command; choose another output file" sweep.h5 -o sweep.h5 --force
  run -2 "$PACELINE" report nosuch.h5 -o other.html
  [[ $output == *"nosuch.h5"* && ! -e other.html ]]
  head -c 3000 sweep.h5 >cut.h5
  run -2 "$PACELINE" report cut.h5 -o other.html
  [[ $output == "paceline report: cut.h5: "* && ! -e other.html ]]
}

@test "a title and a command cannot break out of their place" {
  "$PACELINE" report sweep.h5 -o evil.html --title '</script><script>alert(1)</script>' >out
  [[ $(grep -c '<script>' evil.html) -eq 1 && $(grep -c '</script>' evil.html) -eq 1 ]]
}

# browse WIDTH PAGE: the page after its script ran, as text.
browse() {
  timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" --virtual-time-budget=3000 \
    --window-size="$1,1400" --screenshot="$PWD/shot-$1.png" "$PWD/$2" >/dev/null 2>&1 || return 1
  timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=3000 --window-size="$1,900" \
    --dump-dom "$PWD/$2" 2>/dev/null
}

@test "in a browser: the best stands on top, the table and the filters are filled, nothing is wider than the window" {
  command -v chromium >/dev/null || skip "no chromium"
  best=$("$PACELINE" show sweep.h5 --top 1 --json | jq -r '.rows[0] | "pp=\(.pp),dp=\(.dp),tmp=\(.tmp),mbs=\(.mbs),schedule=\(.schedule)"')
  for width in 1280 390; do
    # The page says how wide it has become: an element wider than the window would scroll the whole page sideways.
    sed 's|document.body.dataset.ready = "1";|document.body.dataset.ready = document.documentElement.scrollWidth <= window.innerWidth ? "fits" : "too wide";|' sweep.html >probe.html
    # No window is narrower than 500 here; the page can be.
    ((width >= 500)) || sed -i -e 's|<body>|<body style="width: 390px">|' -e 's|document.documentElement.scrollWidth <= window.innerWidth|document.body.scrollWidth <= 390|' probe.html
    browse $width probe.html >dom
    grep -q 'data-ready="fits"' dom || { grep -o 'data-ready="[^"]*"' dom; return 1; }
    [[ $(grep -o "<code>[^<]*" dom | head -n 1) == "<code>$best,"* ]]
    # A line for each group of twins; the first has the interval of the fastest.
    (($(grep -o '<tr' dom | wc -l) >= 5)) && grep -q '<button type="button" class="more" aria-expanded="false">+ [0-9]* twin' dom
    low=$("$PACELINE" show sweep.h5 --top 1 --json | jq -r '.rows[0].iter_time_low_s * 1000 | round')
    [[ $(grep -o '<td>[0-9.]* ms to [0-9.]* ms' dom | head -n 1) == "<td>$low ms to "* ]]
    grep -q '<div class="box drawing" id="pipeline">' dom && grep -q '<div class="box drawing" id="platform">' dom
    grep -q '<button type="button" aria-pressed="true">interleaved</button>' dom
    # What is seen: boxes where they were, the bars of the iteration and the points of the plot in their colours.
    /usr/bin/python3 "$BATS_TEST_DIRNAME/../support/screenshot.py" shot-$width.png "$BATS_TEST_DIRNAME/screenshots/report-$width.txt" '#2f9e44' '#1c7ed6'
    # A double click keeps one value, a click takes another in again.
    only='const press = (name, kind) => [...document.querySelectorAll("#filters button")].find(b => b.textContent === name).dispatchEvent(new MouseEvent(kind));'
    sed "s|</body>|<script>$only press(\"interleaved\", \"dblclick\");</script></body>|" sweep.html >only.html
    browse $width only.html >only
    grep -q 'aria-pressed="false">1f1b<' only && grep -q 'aria-pressed="true">interleaved<' only
    [[ $(grep -o '<td>1f1b</td>' only | wc -l) -eq 0 && $(grep -o '<td>interleaved</td>' only | wc -l) -gt 0 ]]
    sed "s|</body>|<script>$only press(\"interleaved\", \"dblclick\"); press(\"1f1b\", \"click\");</script></body>|" sweep.html >both.html
    browse $width both.html | grep -q '<td>1f1b</td>'
  done
}

@test "the drawings: those of simulate and platform show; without the platform the page says that it lacks them" {
  /usr/bin/python3 - <<'PYTHON'
import json, re
from xml.etree import ElementTree
data = json.loads(re.search(r"const data = (\{.*?\});\n", open("sweep.html").read(), re.S).group(1))
for name in ("pipeline", "platform"):
    assert ElementTree.fromstring(data["drawings"][name]).tag.endswith("svg")
assert "stage 0" in data["drawings"]["pipeline"] and "16 GPUs in 4 nodes" in data["drawings"]["platform"]
PYTHON
  cp "${PACELINE%/*}/share/paceline/platforms/amp-homogeneous.xml" mine.xml
  cp -r "${PACELINE%/*}/share/paceline/platforms/devices" .
  "$PACELINE" sweep --platform mine.xml --model gpt2-345m --gbs 32 --pp 4 --dp 4 --mbs 1 -o mine.h5 --quiet
  rm mine.xml
  run -0 --separate-stderr "$PACELINE" report mine.h5 -o mine.html
  [[ $stderr == "paceline report: mine.html shows no drawing of platform and iteration: "*mine.xml* ]]
  grep -q '"drawings":{"pipeline":"",' mine.html
}
