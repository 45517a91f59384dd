"""The formulas, read when one is first needed: `import mlgd` does not wait for sympy."""


class _Formulas:
    def __getattr__(self, name):
        from . import formulas

        return getattr(formulas, name)


formulas = _Formulas()
