"""What the checks of this folder count: values that are as somebody else computed
them, and those that are not."""


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def holds(self, where, ok, text):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print("%s: %s" % (where, text))

    def same(self, where, what, got, want):
        self.holds(where, got == want, "%s: got %s, want %s" % (what, got, want))

    def status(self):
        """For sys.exit: nothing compared is not good, either."""
        print("%d values agree, %d do not" % (self.passed, self.failed))
        return 1 if self.failed or not self.passed else 0
