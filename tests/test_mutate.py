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
    assert {
        ("not", ""),
        ("-", ""),
        ("<=", "<"),
        ("and", "or"),
        ("==", "!="),
        ("**", "*"),
        ("/", "*"),
    } <= drawn
    assert {
        ("0.5", "0.55"),
        ("True", "False"),
        ("or", "and"),
        ("//", "/"),
        (">", ">="),
        ("2", "3"),
    } <= drawn
    assert len({m.key for m in found}) == len(found)
    assert not any("docstring" in m.line or "raise" in m.line for m in found)


def test_a_known_equivalent_mutation_has_a_reason():
    with open(mutate.EQUIVALENT, encoding="utf-8") as handle:
        header, *rows = handle.read().splitlines()
    assert header.split("\t") == ["file", "line", "column", "old", "new", "why"]
    assert all(len(row.split("\t")) == 6 and row.split("\t")[5].strip() for row in rows)


def test_what_is_called_equivalent_is_a_mutation_of_the_library_as_it_is(root):
    drawn = {
        m.key for p in (root / "mlgd").glob("*.py") for m in mutate.mutations(p, f"mlgd/{p.name}")
    }
    assert mutate.equivalent() - drawn == set()


def test_tests_that_call_the_innermost_function_come_first():
    mutation = mutate.Mutation("mlgd/part.py", 0, 1, "1", "2", "", 0, number=12)
    called = [
        ["mlgd/part.py", 1, 30, ["slow", "outer"]],
        ["mlgd/part.py", 10, 14, ["slow", "quick"]],
        ["mlgd/other.py", 12, 12, ["no"]],
    ]
    reach = mutate.Reach({"slow": 2.0, "quick": 1.0, "outer": 0.1, "no": 0.0}, called)
    assert reach.tests(mutation) == ["quick", "slow"]
    outside = mutate.Mutation("mlgd/part.py", 0, 1, "1", "2", "", 0, number=40)
    assert reach.tests(outside) == ["outer", "quick", "slow"]
