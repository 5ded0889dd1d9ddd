"""The auditor: reads what the services wrote and checks what was promised, by rules of its own."""

from wms.audit.auditor import audit
from wms.audit.report import AuditReport, Check

__all__ = ["AuditReport", "Check", "audit"]
