"""The languages of the schedulers: from a Job to the text that one of them reads."""
