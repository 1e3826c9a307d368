"""What this host can do: facts, rules over them, and a report that may be shown to others."""
