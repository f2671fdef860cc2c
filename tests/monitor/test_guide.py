"""The guide shows what its code prints."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "monitor.md"


def test_the_guide_shows_what_its_code_prints(capsys):
    text = GUIDE.read_text(encoding="utf-8")
    shown, scope = 0, {}
    for code, printed in re.findall(
        r"^```python\n(.*?)^```\n(?:```\n(.*?)^```)?", text, re.M | re.S
    ):
        exec(compile(code, GUIDE.name, "exec"), scope)
        found = capsys.readouterr().out
        assert found == printed
        shown += bool(printed)
    assert shown == 3
