"""What an audit found: its checks and notes, as values and as text."""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one rule of the auditor, checked on all rows to which it applies."""

    name: str
    invariant: int
    """The number of the invariant of the design that this rule checks."""
    checked: int
    """How many rows were checked; 0 means that the check proves nothing."""
    violations: tuple[str, ...] = ()
    """The first violations of the rule, as sentences; empty if the rule holds."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one audit, made on one snapshot of the database."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """Sentences with figures of the system, for information."""

    @property
    def ok(self) -> bool:
        """Whether no check found a violation."""
        return not any(check.violations for check in self.checks)

    def text(self, *, brief: bool = False) -> str:
        """Return the report for people: one line a check, and its violations below. With `brief`, only broken rules are shown."""
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
