"""The rules of the audit: each takes facts and yields findings, and reads no file.

`docs/findings.md` explains every code; a test holds the page against the rules.
"""
