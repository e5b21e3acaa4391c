"""Say that a profile (first argument) is of format MAJOR (second) .MINOR (third).

SQLite keeps user_version, big-endian, at byte 60 of its file; sonde's is
1000 * major + minor.
"""
import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(60)
    file.write((1000 * int(sys.argv[2]) + int(sys.argv[3])).to_bytes(4, "big"))
