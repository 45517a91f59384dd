"""The script that mutates the library: what it draws is one small change each, and valid Python."""

import ast

import mutate

SOURCE = '''
"""A docstring with 1 < 2."""


def f(x: "int < 3", y=-1) -> float:
    if not (x <= 2 and y == 0):
        raise ValueError("less than 1")
    return x**2 / (y + 0.5) if x // 3 > 1 else f"{x + 1}" + (True or y)
'''


def test_every_mutation_is_one_small_change_that_python_can_read(tmp_path):
    (tmp_path / "part.py").write_text(SOURCE)
    found = mutate.mutations(tmp_path / "part.py", "mlgd/part.py")
    for m in found:
        changed = SOURCE[: m.start] + m.new + SOURCE[m.end :]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE)), m
        assert m.line[m.column :].startswith(m.old), m
    drawn = {(m.old, m.new) for m in found}
    assert {("not", ""), ("-", ""), ("<=", "<"), ("and", "or"), ("==", "!="), ("**", "*"), ("/", "*")} <= drawn
    assert {("0.5", "0.55"), ("True", "False"), ("or", "and"), ("//", "/"), (">", ">="), ("2", "3")} <= drawn
    assert len({m.key for m in found}) == len(found)
    assert not any("docstring" in m.line or "raise" in m.line for m in found)


def test_a_known_equivalent_mutation_has_a_reason():
    with open(mutate.EQUIVALENT, encoding="utf-8") as handle:
        header, *rows = handle.read().splitlines()
    assert header.split("\t") == ["file", "line", "column", "old", "new", "why"]
    assert all(len(row.split("\t")) == 6 and row.split("\t")[5].strip() for row in rows)
