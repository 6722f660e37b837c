"""docs/reliability.md: sections that the campaign and the soak write, each between its own marks."""

from pathlib import Path

__all__ = ["put_section"]

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"


def put_section(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Replace what stands between the two marks of a section; the document must have them."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = document.read_text().split(begin)
    _old, after = rest.split(end)
    document.write_text(f"{before}{begin}{text.strip()}\n{end}{after}")
