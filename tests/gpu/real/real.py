"""Programs with a deadline beside others, under one way of sharing a GPU: see real.sh.

usage: real.py cells LIST FOLDER COLUMN              what the column still lacks of the list: a cell a line
       real.py programs LIST CELL...                 the programs of cells: NAME KIND PERIOD_MS DEADLINE_MS COMMAND
       real.py drive LIST FOLDER COLUMN CELL... <COMMANDS
       real.py summary LIST FOLDER
CELL: URGENT+OTHER[+OTHER...]; in column alone one program. COMMANDS: a line for each program, its name, a space, its
command; all start at the same time. A cell gets a line in FOLDER/real.csv. $LEAD_S: the program with a deadline works
alone for so long before the others begin, from when on its frames count; $SECONDS_MIN: so long at least, else by the
list's number of frames; $ROUNDS: each cell so often, one after the other. With $REAL_CTL, the command of sbeetctl, the task
of the program with a deadline gets its period and deadline for its cell. Results are compared with those of column alone.
"""
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frameworks"))
from scenario import Program, quantile  # noqa: E402

LEAD_S = float(os.environ.get("LEAD_S", "1"))
SECONDS_MIN = float(os.environ.get("SECONDS_MIN", "6"))
ROUNDS = int(os.environ.get("ROUNDS", "1"))
FIELDS = ["column", "cell", "round", "seconds", "frames", "late", "skipped", "p50_ms", "p99_ms", "max_ms", "kept_after_s",
          "rates", "results"]


class List:
    def __init__(self, path):
        self.urgent, self.other, self.cells = {}, {}, []
        for line in Path(path).read_text().splitlines():
            what, *words = line.split() or ["#"]
            if what == "urgent":
                period, deadline, frames = float(words[1]), float(words[2]), int(words[3])
                self.urgent[words[0]] = (period, deadline, frames, " ".join(words[4:]))
            elif what == "other":
                self.other[words[0]] = " ".join(words[1:])
            elif what == "cell":
                self.cells.append("+".join(words))

    def seconds(self, name):
        if name not in self.urgent:
            return SECONDS_MIN
        period, _, frames, _ = self.urgent[name]
        return max(SECONDS_MIN, frames * period / 1e3)

    def of(self, column):
        """Its cells: in column alone each program that any cell has."""
        return list(dict.fromkeys(p for c in self.cells for p in c.split("+"))) if column == "alone" else self.cells


def rows_of(folder):
    path = Path(folder, "real.csv")
    return list(csv.DictReader(path.open())) if path.exists() else []


def rounds_left(folder, column, cell):
    have = {row["round"] for row in rows_of(folder) if (row["column"], row["cell"]) == (column, cell)}
    return [number for number in range(1, ROUNDS + 1) if str(number) not in have]


def missing(chosen, folder, column):
    return [cell for cell in chosen.of(column) if rounds_left(folder, column, cell)]


def control(words):
    if os.environ.get("REAL_CTL"):
        subprocess.run(f"{os.environ['REAL_CTL']} {words}", shell=True, timeout=10, check=True)


def compare(folder, column, answers):
    """equal, or the programs whose results differ from those of column alone, which are kept."""
    path = Path(folder, "results.json")
    alone = json.loads(path.read_text()) if path.exists() else {}
    if column == "alone":
        alone.update(answers)
        path.write_text(json.dumps(alone))
    wrong = []
    for name, results in answers.items():
        known = alone.get(name, {})
        if "varies" in results.values() or any(known.get(i, result) != result for i, result in results.items()):
            wrong.append(name)
        elif not set(known) & set(results):  # a slow program may not have had all inputs
            wrong.append(f"{name}?")
    return "+".join(wrong) or "equal"


def judge(frames, deadline, seconds):
    """How many frames were late, and for how many seconds after the others had begun some were."""
    late = [(at, ms) for at, ms in zip(frames["at"], frames["ms"]) if ms > deadline]
    kept = max((at + ms / 1e3 for at, ms in late), default=0.0)
    return len(late) + frames["skipped"], f"{kept:.1f}" if kept < 0.8 * seconds else "never"


def run_cell(programs, chosen, folder, column, cell, number):
    names = cell.split("+")
    urgent = [name for name in names if name in chosen.urgent]
    others = [name for name in names if name in chosen.other]
    seconds = chosen.seconds(urgent[0] if urgent else "")
    frames = {"at": [], "ms": [], "skipped": 0}
    deadline, answers = 0, {}
    for name in urgent:
        period, deadline, _, _ = chosen.urgent[name]
        control(f"task set {name} --class realtime --period {period}ms --deadline {deadline}ms")
        programs[name].command(f"frames {period / 1e3} {LEAD_S} {seconds}")
        time.sleep(LEAD_S)
    for name in others:
        programs[name].command(f"steps {seconds}")
    for name in urgent:
        frames = json.loads(programs[name].answer(LEAD_S + seconds + 60))
        answers[name] = frames["results"]
        control(f"task set {name} --class best-effort --deadline none --period none")
    rates = []
    for name in others:
        answer = json.loads(programs[name].answer(seconds + 90))
        answers[name] = answer["results"]
        rates.append(f"{answer['rate']:.3f}")
    late, kept = judge(frames, deadline, seconds) if urgent else (0, "")
    ms = frames["ms"]
    row = [column, cell, number, f"{seconds:g}", len(ms) + frames["skipped"], late, frames["skipped"],
           *(f"{quantile(ms, q):.3f}" for q in (0.5, 0.99, 1)), kept, "+".join(rates), compare(folder, column, answers)]
    path = Path(folder, "real.csv")
    with path.open("a") as f:
        writer = csv.writer(f, lineterminator="\n")
        if f.tell() == 0:
            writer.writerow(FIELDS)
        writer.writerow(row)
    with Path(folder, f"frames-{column}.txt").open("a") as f:
        print(cell, number, *ms, file=f)
    print(f"{column} {cell}: {late} of {row[4]} late, p50 {row[7]} p99 {row[8]} ms, kept after {kept or '-'} s, "
          f"others {row[11] or '-'} /s, results {row[12]}", flush=True)


def drive(chosen, folder, column, cells):
    programs, failed = {}, False
    try:
        for line in sys.stdin:
            name, command = line.rstrip("\n").split(" ", 1)
            programs[name] = Program(folder, column, name, command)
        begin = time.monotonic()
        for name, program in list(programs.items()):
            try:
                if program.answer(max(1, begin + 150 - time.monotonic())) != "ready":
                    raise RuntimeError(f"{name} did not start")
            except RuntimeError as error:
                print(f"{column}: {error}", flush=True)
                failed = True
                del programs[name]
        print(f"{column}: {len(programs)} programs ready after {time.monotonic() - begin:.1f} s", flush=True)
        for cell in cells:
            if all(name in programs for name in cell.split("+")):
                for number in rounds_left(folder, column, cell):
                    run_cell(programs, chosen, folder, column, cell, number)
    except (RuntimeError, BrokenPipeError, subprocess.CalledProcessError) as error:
        for program in programs.values():
            program.process.kill()
        print(f"{column}: {error}", flush=True)
        failed = True
    finally:
        for program in programs.values():
            program.close()
        for program in programs.values():
            program.end()
    return failed


def share(rates, others, alone):
    """The rates of the others, of those alone, in %."""
    values = rates.split("+") if rates else []
    return ", ".join(f"{100 * float(r) / alone[o]:.0f} %" if alone.get(o) else f"{r} /s" for r, o in zip(values, others))


def summary(chosen, folder):
    rows = rows_of(folder)
    alone = {row["cell"]: float(row["rates"]) for row in rows if row["column"] == "alone" and row["rates"]}
    columns = list(dict.fromkeys(row["column"] for row in rows if row["column"] != "alone"))
    for cell in chosen.cells:
        urgent, *others = cell.split("+")
        period, deadline, _, _ = chosen.urgent[urgent]
        print(f"\n**{urgent}** each {period:g} ms, deadline {deadline:g} ms, beside {' and '.join(others)}")
        print("\n| column | late | p50 / p99 / longest, ms | kept after, s | others, of alone | results |\n|" + "---|" * 6)
        for column in ["alone", *columns]:
            for row in rows:
                if row["column"] == column and row["cell"] == (urgent if column == "alone" else cell):
                    name = column if row["round"] == "1" else f"{column}, again"
                    print(f"| {name} | {row['late']} of {row['frames']} | {row['p50_ms']} / {row['p99_ms']} / "
                          f"{row['max_ms']} | {row['kept_after_s']} | {share(row['rates'], others, alone)} | "
                          f"{row['results']} |")


def main(what, path, *words):
    chosen = List(path)
    if what == "cells":
        print("\n".join(missing(chosen, *words)))
    elif what == "programs":
        for name in dict.fromkeys(p for cell in words for p in cell.split("+")):
            if name in chosen.urgent:
                period, deadline, _, command = chosen.urgent[name]
                print(name, "urgent", f"{period:g}", f"{deadline:g}", command)
            else:
                print(name, "other", 0, 0, chosen.other[name])
    elif what == "drive":
        return drive(chosen, words[0], words[1], words[2:])
    else:
        summary(chosen, words[0])
    return False


sys.exit(main(*sys.argv[1:]))
