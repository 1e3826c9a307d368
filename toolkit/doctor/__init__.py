"""What this host can do: facts, rules over them, and a report for support."""
