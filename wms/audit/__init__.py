"""The auditor: checks what the services wrote into the database against the invariants of the design. It shares no rules with the services' code."""

from wms.audit.auditor import audit
from wms.audit.report import AuditReport, Check

__all__ = ["AuditReport", "Check", "audit"]
