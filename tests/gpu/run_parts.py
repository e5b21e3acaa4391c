"""Rows "PROGRAM VARIANT MICROSECONDS" of run_parts.sh, "PROGRAM round N" before each round:
medians, and what each variant added to the plain run of its own round (median, quartiles)."""
import statistics
import sys

rounds = {}
for line in open(sys.argv[1]):
    program, how, value = line.split()
    rows = rounds.setdefault(program, [])
    if how == "round":
        rows.append({})
    else:
        rows[-1][how] = float(value)
for program, rows in rounds.items():
    rows = [row for row in rows if "plain" in row] # else there is nothing to compare with
    print("%s: us, median; added in the same round: median (quartiles), of %d rounds" % (program, len(rows)))
    for how in rows[0] if rows else ():
        values = [row[how] for row in rows if how in row]
        added = [row[how] - row["plain"] for row in rows if how in row]
        low, middle, high = statistics.quantiles(added, n=4) if len(added) > 1 else added * 3
        print("  %-28s %9.3f   %+9.3f (%+.3f to %+.3f)" % (how, statistics.median(values), middle, low, high))
