"""The report of an audit."""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one rule on everything that it applies to."""

    name: str
    invariant: int
    """The rule's number among the invariants of the design."""
    checked: int
    """The number of things checked; 0 means that nothing was proven."""
    violations: tuple[str, ...] = ()
    """The first violations as text; empty when the rule holds."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one audit, on one snapshot of the database."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """Figures for information, which are no violations."""

    @property
    def ok(self) -> bool:
        """Whether no check found a violation."""
        return not any(check.violations for check in self.checks)

    def text(self, *, brief: bool = False) -> str:
        """Return the report for people: one line a check, its violations below it; with `brief`, only the broken checks."""
        lines = []
        for check in self.checks:
            if brief and not check.violations:
                continue
            mark = "FAIL" if check.violations else "ok"
            lines.append(f"{mark:4}  {check.invariant:2}  {check.name} ({check.checked:,} checked)")
            lines += [f"          {violation}" for violation in check.violations]
        lines += self.notes
        broken = sum(bool(check.violations) for check in self.checks)
        lines.append(f"{broken} of {len(self.checks)} checks FAILED" if broken else "all checks hold")
        return "\n".join(lines)
