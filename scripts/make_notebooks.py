"""Makes the notebooks of examples/ from the programs in scripts/notebooks/, and runs them.

`make notebooks` writes them with their outputs, so that they can be read where nothing runs. Sources are plain Python:
`# %%` begins a cell of code, `# %% [markdown]` one of text. What a machine says by the way (progress, compiling) is
left out, and so is everything that would differ from one run to the next.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "scripts" / "notebooks"
TARGET = ROOT / "examples"
CELL = re.compile(r"^# %%(?: \[(markdown)\])?\n", flags=re.MULTILINE)
SECONDS = 600  # for one cell, with all that it may have to compile


def cells(text: str) -> list[tuple[str, str]]:
    """(kind, content) of every cell; what stands before the first one is for readers of the source."""
    parts = CELL.split(text)[1:]
    found = []
    for kind, content in zip(parts[::2], parts[1::2], strict=True):
        if kind == "markdown":
            lines = [line.removeprefix("#").removeprefix(" ") for line in content.strip().splitlines()]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", content.strip()))
    return found


def small(picture: str) -> str:
    """The same picture with 64 colours: a fourth of the size, and nobody sees it."""
    from PIL import Image

    kept = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        image.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(kept, format="png", optimize=True)
    return base64.b64encode(kept.getvalue()).decode()


def make(source: Path, target: Path) -> None:
    """Runs a notebook in an empty folder and writes it with what it shows."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, (kind, content) in enumerate(cells(source.read_text()), 1):
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        notebook.cells.append(new(content, id=f"cell-{number}"))
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", record_timing=False, resources=resources
        ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
            cell.metadata = {}
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = small(output.data["image/png"])
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.validate(notebook)
    target.write_text(nbformat.writes(notebook) + "\n")


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as own:
        # Nothing of the user's own Jupyter is read or written: the kernel is the one of this Python.
        for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            os.environ[name] = str(Path(own) / name.lower())
        for source in sorted(SOURCES.glob("*.py")):
            make(source, folder / f"{source.stem}.ipynb")
            print(f"{source.stem}.ipynb")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
