"""The command line: the only room that parses arguments, prints or exits."""
