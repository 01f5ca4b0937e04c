"""Build the tutorial: its page, its notebook and its pictures, all from `adult/adult.py`.

    python docs/tutorial/build.py --data adult.parquet    run the code, then write all of it; needs Chromium
    python docs/tutorial/build.py                         write page and notebook again, with the old outputs

`adult.py` is a script in cells: `# %% [markdown]` begins text, `# %%` code. The value of a cell's last line
is its output. `# %% picture="name.png" height=900` says that this output is a picture: a chart, or a page of
which the browser shows that many pixels. The text that follows begins with the picture and its caption.
"""

import argparse
import ast
import base64
import contextlib
import functools
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE / "adult" / "adult.py"
NOTEBOOK = HERE / "adult" / "adult.ipynb"
COUNTS = HERE / "adult" / "counts.csv"
PAGE = HERE.parent / "tutorial_adult.md"
PICTURES = HERE.parent / "images" / "tutorial"
WIDTH = 1000  # of a browser's window, in pixels
DOWNLOAD = "[Download this page as a notebook](tutorial/adult/adult.ipynb).\n"

Output = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One cell of the source; `picture` and `height` are those of a code cell that draws."""

    kind: str
    text: str
    picture: str = ""
    height: int = 0


def read_cells(text: str) -> list[Cell]:
    """Cut a script at its `# %%` lines; what stands before the first is for readers of the script."""
    cells = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = [re.sub("^# ?", "", line) for line in body.strip().splitlines()]
            cells.append(Cell("markdown", "\n".join(lines)))
            continue
        picture, height = re.search('picture="(.+?)"', head), re.search(r"height=(\d+)", head)
        name, pixels = picture[1] if picture else "", int(height[1]) if height else 0
        cells.append(Cell("code", body.strip(), name, pixels))
    return cells


def run(
    cells: list[Cell], data: list[str], *, draw: bool = True
) -> tuple[list[list[Output]], dict[str, Any]]:
    """Run the code in an empty folder, with the data of a file; give every cell's outputs, and all names."""
    from fado import datasets

    download, home = datasets.fetch_adult, Path.cwd()
    paths = [str(Path(path).resolve()) for path in data]
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        datasets.fetch_adult = functools.partial(download, paths)  # the page says `fetch_adult()`
        os.chdir(folder)
        try:
            return [_run_cell(cell, names, draw) if cell.kind == "code" else [] for cell in cells], names
        finally:
            os.chdir(home)
            datasets.fetch_adult = download


def _run_cell(cell: Cell, names: dict[str, Any], draw: bool) -> list[Output]:
    start = time.perf_counter()
    body = ast.parse(cell.text).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "adult.py", "exec"), names)  # noqa: S102 (our own script)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "adult.py", "eval"), names)  # noqa: S307
    print(f"{time.perf_counter() - start:6.1f} s  {cell.text.splitlines()[0]}", file=sys.stderr)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None and not cell.picture:
        outputs.append(_result({"text/plain": repr(value), **_table(value)}))
    if cell.picture and draw:
        picture = base64.b64encode(_draw(value, cell.height)).decode()
        outputs.append(_result({"image/png": picture, "text/plain": cell.picture}))
    return outputs


def _result(data: dict[str, str]) -> Output:
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _table(value: Any) -> dict[str, str]:
    """Give a frame or a column as a table of Markdown."""
    import pandas as pd

    if isinstance(value, pd.Series):
        value = value.to_frame()
    if not isinstance(value, pd.DataFrame):
        return {}
    frame = value
    if not isinstance(value.index, pd.RangeIndex):
        frame = value.reset_index(names=[name or "" for name in value.index.names])
    columns = [_entries(frame.iloc[:, place].tolist()) for place in range(frame.shape[1])]
    marks = ["---:" if dtype.kind in "if" else "---" for dtype in frame.dtypes]
    rows = [map(str, frame.columns), marks, *zip(*columns, strict=True)]
    return {"text/markdown": "\n".join(f"| {' | '.join(row)} |" for row in rows)}


def _entries(values: list[Any]) -> list[str]:
    """Write a column: numbers with equally many digits, NaN as nothing."""
    known = [value for value in values if value == value]
    if known and all(isinstance(value, float) for value in known):
        digits = max(len(str(value).partition(".")[2]) for value in known)
        return [f"{value:,.{digits}f}" if value == value else "" for value in values]
    texts = [f"{value:,}" if type(value) is int else str(value) for value in values]
    return [text.replace("|", "\\|").replace("<", "&lt;") for text in texts]


def _draw(value: Any, height: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        picture, page = Path(folder) / "picture.png", Path(folder) / "page.html"
        if not height:
            value.save(picture, scale_factor=1.5)
            return picture.read_bytes()
        page.write_text(_page_of(value), encoding="utf-8")
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            raise SystemExit("The pictures of pages need Chromium, which is not on the path.")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{height}"]
        options += ["--virtual-time-budget=4000", f"--screenshot={picture}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)  # noqa: S603
        return picture.read_bytes()


def _page_of(value: Any) -> str:
    """Give the page that a notebook would show in a frame, or that a path names."""
    if isinstance(value, Path):
        return value.read_text(encoding="utf-8")
    return html.unescape(value._repr_html_().split('srcdoc="')[1].split('"')[0])


def notebook(cells: list[Cell], outputs: list[list[Output]]) -> dict[str, Any]:
    """Give the notebook: pictures are outputs with their text, and links lead out of this folder."""
    written = []
    for number, (cell, own) in enumerate(zip(cells, outputs, strict=True)):
        if cell.picture:
            (output,) = [one for one in own if "image/png" in one.get("data", {})]
            shown = re.match(r"!\[([^\]]+)\]\(images/tutorial/" + cell.picture, cells[number + 1].text)
            output["data"]["text/plain"] = shown[1]  # the text after a picture begins with it
        base: dict[str, Any] = {"id": f"cell-{number:02}", "cell_type": cell.kind, "metadata": {}}
        if cell.kind == "markdown":
            text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n\n", "", cell.text)
            text = re.sub(r"\]\((?!https?:|#)", "](../../", text)
            written.append(base | {"source": text})
        else:
            written.append(base | {"execution_count": None, "outputs": own, "source": cell.text})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def page(cells: list[Cell], outputs: list[list[Output]]) -> str:
    """Give the page: code, what it printed, tables as tables; a picture stands where the text names it."""
    blocks = []
    for cell, own in zip(cells, outputs, strict=True):
        blocks.append(cell.text if cell.kind == "markdown" else f"```python\n{cell.text}\n```")
        for output in own:
            if output["output_type"] == "stream":
                blocks.append(f"```text\n{output['text'].rstrip()}\n```")
            elif "text/markdown" in output["data"]:
                blocks.append(output["data"]["text/markdown"])
            elif "image/png" not in output["data"]:
                blocks.append(f"```text\n{output['data']['text/plain']}\n```")
    blocks.insert(1, DOWNLOAD.rstrip())
    return "\n\n".join(blocks) + "\n"


def _realign(cells: list[Cell], stored: dict[str, Any]) -> list[list[Output]]:
    """Give the stored outputs of the code to cells among which there may be other texts."""
    own = iter([cell["outputs"] for cell in stored["cells"] if cell["cell_type"] == "code"])
    return [next(own) if cell.kind == "code" else [] for cell in cells]


def count_decisions(names: dict[str, Any]) -> Any:
    """Count the test rows by group, label, and the decisions of the plain model and of the last one."""
    test = names["test"]
    decided = {
        "plain": names["plain"].predict_proba(names["X"][test])[:, 1] >= names["threshold"],
        "aimed": names["final"].predict(names["X"][test]),
    }
    frame = names["groups"][test].assign(over_50k=names["y"][test], **decided).astype(str)
    return frame.value_counts().sort_index().rename("rows").reset_index()


def outputs_of(stored: dict[str, Any]) -> list[list[Output]]:
    """Give the outputs of a notebook's cells."""
    return [cell.get("outputs", []) for cell in stored["cells"]]


def pictures_of(cells: list[Cell], outputs: list[list[Output]]) -> dict[str, bytes]:
    """Give every picture by its name."""
    found = {}
    for cell, own in zip(cells, outputs, strict=True):
        for output in own:
            if "image/png" in output.get("data", {}):
                found[cell.picture] = base64.b64decode(output["data"]["image/png"])
    return found


def main() -> None:
    """Read the options, and write what they ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", help="files of the Adult data, as `fetch_adult` reads them")
    data = parser.parse_args().data
    cells = read_cells(SOURCE.read_text(encoding="utf-8"))
    if data:
        start = time.perf_counter()
        outputs, names = run(cells, data)
        print(f"{time.perf_counter() - start:6.1f} s  in all", file=sys.stderr)
        count_decisions(names).to_csv(COUNTS, index=False)
        NOTEBOOK.write_text(json.dumps(notebook(cells, outputs), indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(PICTURES, ignore_errors=True)
        PICTURES.mkdir(parents=True)
        for name, picture in pictures_of(cells, outputs).items():
            (PICTURES / name).write_bytes(picture)
    else:
        stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        code = [cell["source"] for cell in stored["cells"] if cell["cell_type"] == "code"]
        if code != [cell.text for cell in cells if cell.kind == "code"]:
            raise SystemExit("The code has changed since it was run: run it again, with --data.")
        outputs = _realign(cells, stored)
        NOTEBOOK.write_text(json.dumps(notebook(cells, outputs), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(cells, outputs), encoding="utf-8")


if __name__ == "__main__":
    main()
