"""A gate for a pipeline: fails if a model needs a repair, or has become worse.

    python examples/gate.py [audit of the last release]

Exits with 1 if the gate is not passed. Writes audit.json for the next time.
"""

import sys

import varcal as vc

COLUMNS = ("age", "education-num", "hours-per-week", "occupation", "sex")


def main(earlier: str | None = None) -> int:
    """Audit the predictions for held-out rows, and return the exit code."""
    rows = vc.datasets.load_income().part("test")  # the predictions of the model to release
    columns = {name: rows[name] for name in COLUMNS}
    audit = vc.audit(rows.y, rows.p, columns)
    audit.save("audit.json")

    failed = [audit.sentence] if audit.verdict == "repair" else []
    if earlier is not None:
        changes = audit.since(vc.load(earlier)).columns
        both = zip(changes["variable"], changes["verdict"], strict=True)
        failed += [f"{name} became worse" for name, verdict in both if verdict == "worse"]
    print(*failed, sep="\n")
    print("FAILED" if failed else "PASSED")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
