"""What an audit found."""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule held against everything that it speaks of."""

    name: str
    invariant: int
    """Its number among the invariants of the design."""
    checked: int
    """How many things it was held against; 0 means that nothing was proven."""
    violations: tuple[str, ...] = ()
    """The first of them in words; empty when the rule holds."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one audit, of one moment of the database."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """Figures that are no violation, for whoever reads the report."""

    @property
    def ok(self) -> bool:
        """Whether no check found anything."""
        return not any(check.violations for check in self.checks)

    def text(self, *, brief: bool = False) -> str:
        """Return the report for people: a line a check (when brief, a broken one), its violations below it."""
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
