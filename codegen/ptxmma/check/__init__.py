"""Checks PTX: says of every matrix instruction in a module whether an assembler takes it, and what is doubtful about it.

>>> from ptxmma.check import check
>>> findings = check('''.version 8.0
... .target sm_90
... .entry kernel() { wgmma.fence.sync.aligned; }''')
>>> [(finding.line, finding.severity, finding.rule) for finding in findings]
[(3, 'error', 'target')]
"""

from ptxmma.check.checker import Checker, check
from ptxmma.check.findings import Finding, Findings, Severity

__all__ = ["Checker", "Finding", "Findings", "Severity", "check"]
