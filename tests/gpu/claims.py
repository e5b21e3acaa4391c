"""What run_truth.py and run_owed.py share: claims are printed as they are looked at,
and one that does not hold makes the script end with status 1."""
import json
import sys

bad = []


def check(good, text):
    print("  %s %s" % ("." if good else "!", text))
    if not good:
        bad.append(text)


def load(path):
    with open(path) as file:
        return json.load(file)


def run(functions):
    """The function that the command line names, with the words behind it."""
    functions[sys.argv[1]](*sys.argv[2:])
    sys.exit(1 if bad else 0)
