"""Words in, words out: the only room that parses arguments, prints or exits."""
