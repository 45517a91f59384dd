"""The reference pages: signatures and docstrings of the public names, read from the code itself."""

import html
import inspect
import pkgutil
from importlib import import_module

import mlgd

from .pieces import Html


def entry(name: str) -> tuple[str, str]:
    """Signature and docstring of a public name, and of its public methods where it is a class."""
    thing = found(name)
    parts = [(name, thing)]
    if inspect.isclass(thing):
        own = vars(thing)
        parts += [
            (f"{name}.{m}", getattr(thing, m))
            for m in own
            if not m.startswith("_") and callable(getattr(thing, m))
        ]
        parts = [(label, p) for label, p in parts if p is thing or not inspect.isclass(p)]
    markup, plain = [], []
    for label, part in parts:
        signature = f"{label}{_signature(part)}"
        doc = inspect.getdoc(part) or ""
        markup.append(
            f"<dt id='api-{label}'><code>{html.escape(signature)}</code></dt><dd><pre>{html.escape(doc)}</pre></dd>"
        )
        plain.append(f"{signature}\n{doc}")
    return "".join(markup), "\n\n".join(plain)


def found(name: str):
    """A public name of mlgd, or of the module of the library that defines it."""
    homes = (
        mlgd,
        *(
            import_module(f"mlgd.{m.name}")
            for m in pkgutil.iter_modules(mlgd.__path__)
            if not m.ispkg
        ),
    )
    home = next((m for m in homes if hasattr(m, name)), None)
    if home is None:
        raise ValueError(f"no module of mlgd has the name {name!r}")
    return getattr(home, name)


def _signature(thing) -> str:
    """The call as a reader would write it: names and defaults; the types are in the source."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = [
        p.replace(annotation=p.empty)
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return str(inspect.Signature(bare))


def reference(*names: str) -> Html:
    """The entries of several names, as a definition list."""
    entries = [entry(name) for name in names]
    return Html(
        "<dl class='mlgd-api'>" + "".join(m for m, _ in entries) + "</dl>",
        "\n\n".join(p for _, p in entries),
    )
